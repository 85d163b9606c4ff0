/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rendezvous' machine relies on in its backend: get, compare-and-set and watch of the
 * record, as host/rendezvous_backend offers them over any store. As store_conformance:
 *
 *     record_conformance own | tcp HOST PORT | file [PATH] */
#include "store_under_test.h"

#include "base/memory.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/rendezvous/rendezvous_backend.h"

#define NODES 3
#define RAISES 100

struct node {
    struct job *job;
    struct rendezvous_backend *backend;
    struct rendezvous_state seen;
    bool is_connected;
    bool has_answer; /* to a fetch or a write … */
    bool has_record; /* … there is one */
    bool has_won;
    int changes;
    int64_t finished_count;
    bool is_roll_answered;
    char *trouble;
};

/* A job of its own in the store under test. */
struct job {
    struct store_under_test *store;
    char *run_id;
    struct node nodes[NODES];
};

static void connected(void *context, bool has_presence) {
    (void)has_presence;
    ((struct node *)context)->is_connected = true;
}

static void keep_trouble(struct node *node, const char *reason) {
    free(node->trouble);
    node->trouble = memory_duplicate_string(reason);
}

static void lost(void *context, const char *reason, bool is_silent) {
    (void)is_silent;
    keep_trouble(context, reason);
}

static void broken(void *context, const char *reason) {
    keep_trouble(context, reason);
}

static void record(void *context, const struct rendezvous_state *state) {
    struct node *node = context;
    node->has_answer = true;
    node->has_record = state != NULL;
    if (state != NULL) {
        rendezvous_state_copy(state, &node->seen);
    }
}

static void written(void *context, bool has_won, const struct rendezvous_state *state) {
    struct node *node = context;
    node->has_won = has_won;
    node->has_answer = true;
    if (!has_won) {
        record(context, state);
    }
}

static void changed(void *context) {
    ((struct node *)context)->changes++;
}

static void finished_count(void *context, int64_t count) {
    struct node *node = context;
    node->finished_count = count;
    node->has_answer = true;
}

static void roll_answered(void *context) {
    ((struct node *)context)->is_roll_answered = true;
}

/* What the backend tells, one kind of news after the other. */
static void told(void *context, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        connected(context, event->connected.has_presence);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        lost(context, event->lost.reason, event->lost.is_silent);
    } else if (event->kind == RENDEZVOUS_EVENT_RECORD) {
        record(context, event->state);
    } else if (event->kind == RENDEZVOUS_EVENT_WRITTEN) {
        written(context, event->written.has_won, event->written.state);
    } else if (event->kind == RENDEZVOUS_EVENT_CHANGED) {
        changed(context);
    } else if (event->kind == RENDEZVOUS_EVENT_FINISHED_COUNT) {
        finished_count(context, event->finished_count);
    } else if (event->kind == RENDEZVOUS_EVENT_ROLL_ANSWERED) {
        roll_answered(context);
    } else {
        assert_int_equal(event->kind, RENDEZVOUS_EVENT_BROKEN);
        broken(context, event->reason);
    }
}

static void turn_until(struct store_under_test *store, const bool *is_reached) {
    struct instant deadline = instant_after(event_loop_now(store->loop), PATIENCE);
    while (!*is_reached) {
        assert_true(instant_is_before(event_loop_now(store->loop), deadline));
        event_loop_run_ready(store->loop);
    }
}

static void connect_node(struct job *job, struct node *node, int maximum_nodes) {
    struct store_place place = store_under_test_place();
    struct rendezvous_backend_settings settings = {
        .path = place.path,
        .run_id = job->run_id,
        .minimum_nodes = 1,
        .maximum_nodes = maximum_nodes,
        .answer_timeout = PATIENCE,
        .observer = {.told = told, .context = node},
    };
    struct event_loop *loop = job->store->loop;
    node->job = job;
    node->backend = rendezvous_backend_new(loop, &settings);
    rendezvous_backend_connect(
        node->backend, &(struct rendezvous_backend_trying){.host = place.host,
                           .port = place.port,
                           .deadline = instant_after(event_loop_now(loop), PATIENCE)});
}

static void job_begin(struct job *job, struct store_under_test *store) {
    *job = (struct job){.store = store, .run_id = unused_key("a job/of its own")};
    for (int i = 0; i < NODES; i++) {
        connect_node(job, &job->nodes[i], NODES);
        turn_until(store, &job->nodes[i].is_connected);
        assert_null(job->nodes[i].trouble);
    }
}

static void job_end(struct job *job) {
    for (int i = 0; i < NODES; i++) {
        rendezvous_backend_free(job->nodes[i].backend);
        rendezvous_state_clear(&job->nodes[i].seen);
        free(job->nodes[i].trouble);
    }
    free(job->run_id);
}

static void fetch(struct node *node) {
    node->has_answer = false;
    rendezvous_backend_fetch(node->backend);
    turn_until(node->job->store, &node->has_answer);
}

static bool write_round(struct node *node, int64_t round, bool is_quiet) {
    struct rendezvous_state state = {.round = round};
    node->has_answer = false;
    rendezvous_backend_write(node->backend, &state, is_quiet);
    turn_until(node->job->store, &node->has_answer);
    return node->has_won;
}

static void await_change(struct node *node) {
    struct store_under_test *store = node->job->store;
    struct instant deadline = instant_after(event_loop_now(store->loop), PATIENCE);
    while (node->changes == 0) {
        assert_true(instant_is_before(event_loop_now(store->loop), deadline));
        event_loop_run_ready(store->loop);
    }
}

static void a_new_job_has_no_record_until_one_is_written(void **state) {
    struct job job;
    job_begin(&job, *state);
    fetch(&job.nodes[0]);
    assert_false(job.nodes[0].has_record);
    assert_true(write_round(&job.nodes[0], 7, true));
    fetch(&job.nodes[1]);
    assert_true(job.nodes[1].has_record);
    assert_int_equal(job.nodes[1].seen.round, 7);
    job_end(&job);
}

static void a_write_on_what_is_no_longer_so_changes_nothing_and_tells_what_is(void **state) {
    struct job job;
    job_begin(&job, *state);
    fetch(&job.nodes[0]);
    fetch(&job.nodes[1]);
    assert_true(write_round(&job.nodes[0], 1, true));
    assert_false(write_round(&job.nodes[1], 2, true));
    assert_int_equal(job.nodes[1].seen.round, 1);
    assert_true(write_round(&job.nodes[1], 2, true));
    fetch(&job.nodes[2]);
    assert_int_equal(job.nodes[2].seen.round, 2);
    job_end(&job);
}

static void a_change_wakes_every_other_watcher(void **state) {
    struct job job;
    job_begin(&job, *state);
    for (int i = 0; i < NODES; i++) {
        fetch(&job.nodes[i]);
    }
    assert_true(write_round(&job.nodes[0], 1, false));
    await_change(&job.nodes[1]);
    await_change(&job.nodes[2]);
    fetch(&job.nodes[1]);
    assert_int_equal(job.nodes[1].seen.round, 1);
    assert_int_equal(job.nodes[0].changes, 0);
    job_end(&job);
}

static void a_change_made_before_the_watch_began_is_not_missed(void **state) {
    struct job job;
    job_begin(&job, *state);
    fetch(&job.nodes[0]);
    assert_true(write_round(&job.nodes[0], 1, false));
    assert_true(write_round(&job.nodes[0], 2, false));
    fetch(&job.nodes[1]);
    assert_int_equal(job.nodes[1].seen.round, 2);
    assert_true(write_round(&job.nodes[0], 3, false));
    await_change(&job.nodes[1]);
    job_end(&job);
}

/* Each node raises the round, again and again, on what it saw last: no raise is lost, none counts
 * twice. As with PyTorch, who writes what is there already has won; so each writes its own. */
static void writers_that_race_lose_nothing(void **state) {
    struct job job;
    job_begin(&job, *state);
    int64_t raised = 0;
    for (int i = 0; i < NODES; i++) {
        fetch(&job.nodes[i]);
    }
    while (raised < RAISES) {
        for (int i = 0; i < NODES; i++) {
            struct rendezvous_state next = {.round = job.nodes[i].seen.round + 1};
            next.restarts = i;
            job.nodes[i].has_answer = false;
            job.nodes[i].has_won = false;
            rendezvous_backend_write(job.nodes[i].backend, &next, i == 0);
        }
        for (int i = 0; i < NODES; i++) {
            struct node *node = &job.nodes[i];
            turn_until(job.store, &node->has_answer);
            if (node->has_won) {
                node->seen.round++;
                raised++;
            }
        }
    }
    fetch(&job.nodes[0]);
    assert_int_equal(job.nodes[0].seen.round, raised);
    job_end(&job);
}

static void a_beat_finds_a_change_that_nobody_was_told_of(void **state) {
    struct job job;
    struct text changes = {0};
    job_begin(&job, *state);
    fetch(&job.nodes[0]);
    rendezvous_key_write_changes(job.run_id, &changes);
    struct answer answer;
    begin(job.store->first,
        &(struct store_request){.operation = STORE_ADD,
            .key = slice_from_string(text_string(&changes) + 1), /* the client adds the '/' */
            .number = 1},
        &answer);
    await(job.store, &answer);
    answer_clear(&answer);
    rendezvous_backend_beat(job.nodes[0].backend);
    await_change(&job.nodes[0]);
    text_clear(&changes);
    job_end(&job);
}

static void a_roll_is_answered_when_all_have_answered(void **state) {
    struct job job;
    job_begin(&job, *state);
    struct node *caller = &job.nodes[0];
    rendezvous_backend_call_roll(caller->backend, 7, NODES);
    for (int i = 0; i < NODES; i++) {
        rendezvous_backend_answer_roll(job.nodes[i].backend, 6, i); /* another round's */
        rendezvous_backend_answer_roll(job.nodes[i].backend, 7, NODES - 1 - i);
    }
    turn_until(*state, &caller->is_roll_answered);
    assert_null(caller->trouble);
    job_end(&job);
}

static void a_record_that_makes_no_sense_is_told_and_left(void **state) {
    struct job job;
    struct text key = {0};
    job_begin(&job, *state);
    rendezvous_key_write_record(job.run_id, &key);
    set(job.store, job.store->first, text_string(&key) + 1, "not a record");
    rendezvous_backend_fetch(job.nodes[0].backend);
    struct instant deadline = instant_after(event_loop_now(job.store->loop), PATIENCE);
    while (job.nodes[0].trouble == NULL) {
        assert_true(instant_is_before(event_loop_now(job.store->loop), deadline));
        event_loop_run_ready(job.store->loop);
    }
    expect_stored(job.store, job.store->first, text_string(&key) + 1, "not a record");
    text_clear(&key);
    job_end(&job);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_new_job_has_no_record_until_one_is_written),
    cmocka_unit_test(a_write_on_what_is_no_longer_so_changes_nothing_and_tells_what_is),
    cmocka_unit_test(a_change_wakes_every_other_watcher),
    cmocka_unit_test(a_change_made_before_the_watch_began_is_not_missed),
    cmocka_unit_test(writers_that_race_lose_nothing),
    cmocka_unit_test(a_beat_finds_a_change_that_nobody_was_told_of),
    cmocka_unit_test(a_roll_is_answered_when_all_have_answered),
    cmocka_unit_test(a_record_that_makes_no_sense_is_told_and_left),
};

int main(int argument_count, char **arguments) {
    if (!store_under_test_parse(argument_count, arguments)) {
        return 2;
    }
    return cmocka_run_group_tests_name(
        "record", tests, store_under_test_set_up, store_under_test_tear_down);
}
