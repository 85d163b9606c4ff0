/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_thread.h"
#include "host/network/tcp_listener.h"

struct fixture;

/* Two nodes of one job, and a bare client for requests that no node would make. They share one
 * store and one loop. */
struct node {
    struct fixture *fixture;
    struct rendezvous_backend *backend;
    struct rendezvous_state state; /* the state that was told last */
    bool has_state;
    bool has_presence;
    bool has_won;
    int changes;
    int64_t finished_count;
    int rolls_answered;
    bool goes_when_it_has_written;
    char *trouble;
    bool is_silent;
    bool is_inside; /* a call of the backend is under way */
    bool was_told_inside;
};

struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct node nodes[2];
    struct store_client *bare;
    struct text bare_answer;
    struct text gone;
    int awaited; /* number of reports after which the loop stops */
};

static void report(struct fixture *fixture) {
    if (--fixture->awaited == 0) {
        event_loop_stop(fixture->loop);
    }
}

static void await(struct fixture *fixture, int reports) {
    fixture->awaited = reports;
    event_loop_run(fixture->loop);
}

static void connected(void *context, bool has_presence) {
    struct node *node = context;
    node->has_presence = has_presence;
    report(node->fixture);
}

static void keep_trouble(struct node *node, const char *reason) {
    node->was_told_inside = node->is_inside;
    free(node->trouble);
    node->trouble = memory_duplicate_string(reason);
    report(node->fixture);
}

static void lost(void *context, const char *reason, bool is_silent) {
    ((struct node *)context)->is_silent = is_silent;
    keep_trouble(context, reason);
}

static void broken(void *context, const char *reason) {
    keep_trouble(context, reason);
}

static void record(void *context, const struct rendezvous_state *state) {
    struct node *node = context;
    node->has_state = state != NULL;
    if (state != NULL) {
        rendezvous_state_copy(state, &node->state);
    }
    report(node->fixture);
}

static void written(void *context, bool has_won, const struct rendezvous_state *state) {
    struct node *node = context;
    node->has_won = has_won;
    if (node->goes_when_it_has_written) {
        rendezvous_backend_disconnect(node->backend);
    }
    if (!has_won) {
        record(context, state);
    } else {
        report(node->fixture);
    }
}

static void changed(void *context) {
    struct node *node = context;
    node->changes++;
    report(node->fixture);
}

static void finished_count(void *context, int64_t count) {
    struct node *node = context;
    node->finished_count = count;
    report(node->fixture);
}

static void roll_answered(void *context) {
    struct node *node = context;
    node->rolls_answered++;
    report(node->fixture);
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

static void gone(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->gone, "%s %s;", name, value);
    report(fixture);
}

static struct rendezvous_backend *make_backend(struct node *node, int maximum_nodes) {
    struct rendezvous_backend_settings settings = {
        .host = "127.0.0.1",
        .port = store_thread_port(node->fixture->store),
        .run_id = "a job/with a name",
        .minimum_nodes = 1,
        .maximum_nodes = maximum_nodes,
        .silence_timeout = duration_from_seconds(3),
        .answer_timeout = duration_from_seconds(20),
        .observer = {told, node},
    };
    return rendezvous_backend_new(node->fixture->loop, &settings);
}

static void connect_node(struct node *node) {
    rendezvous_backend_connect(node->backend,
        instant_after(event_loop_now(node->fixture->loop), duration_from_seconds(20)),
        (struct duration){0});
    await(node->fixture, 1);
}

static void start_store(struct fixture *fixture, bool has_presence) {
    struct text prefix = {0};
    int fd;
    int port;
    rendezvous_key_write_presences("a job/with a name", &prefix);
    struct store_server_settings settings = {
        .presence_prefix = has_presence ? text_string(&prefix) : NULL,
        .observer = {.gone = gone, .context = fixture},
    };
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    text_clear(&prefix);
}

static void set_up(struct fixture *fixture, bool has_presence) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    start_store(fixture, has_presence);
    for (int i = 0; i < 2; i++) {
        struct node *node = &fixture->nodes[i];
        node->fixture = fixture;
        node->backend = make_backend(node, 4);
        connect_node(node);
        assert_null(node->trouble);
    }
    struct store_client_settings settings = {
        .host = "127.0.0.1",
        .port = store_thread_port(fixture->store),
        .connect_timeout = duration_from_seconds(20),
    };
    fixture->bare = store_client_new(fixture->loop, &settings);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < 2; i++) {
        rendezvous_backend_free(fixture->nodes[i].backend);
        rendezvous_state_clear(&fixture->nodes[i].state);
        free(fixture->nodes[i].trouble);
    }
    store_client_free(fixture->bare);
    store_thread_stop(fixture->store);
    text_clear(&fixture->gone);
    text_clear(&fixture->bare_answer);
    assert_true(event_loop_free(fixture->loop));
}

static void bare_answered(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    text_clear(&fixture->bare_answer);
    if (result->reply->kind == STORE_REPLY_BLOB) {
        text_append_bytes(&fixture->bare_answer, (const char *)result->reply->blob.data,
            result->reply->blob.length);
    }
    report(fixture);
}

static void ask_bare(struct fixture *fixture, struct store_request request) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = duration_from_seconds(20),
        .done = bare_answered,
        .context = fixture,
    };
    store_client_send(fixture->bare, &call);
    await(fixture, 1);
}

static void set_record(struct fixture *fixture, const char *value) {
    ask_bare(fixture, (struct store_request){.operation = STORE_SET,
                          .key = slice_from_string("/torch.rendezvous.a job/with a name"),
                          .value = slice_from_string(value)});
}

static void fetch(struct node *node) {
    rendezvous_backend_fetch(node->backend);
    await(node->fixture, 1);
}

/* Writes a record of the given round, based on the record seen last. Awaits that many reports. */
static void write_round(struct node *node, int64_t round, bool is_quiet, int reports) {
    struct rendezvous_state state = {.round = round};
    rendezvous_backend_write(node->backend, &state, is_quiet);
    await(node->fixture, reports);
}

static void a_job_that_has_just_begun_has_no_record(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    assert_false(fixture.nodes[0].has_state);
    tear_down(&fixture);
}

static void who_connects_in_vain_is_sent_to_where_the_store_is(void **state) {
    (void)state;
    struct fixture fixture;
    int fd;
    int port;
    set_up(&fixture, true);
    struct node *node = &fixture.nodes[0];
    rendezvous_backend_disconnect(node->backend);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    rendezvous_backend_redirect(node->backend, "127.0.0.1", port); /* no store listens there */
    rendezvous_backend_connect(node->backend,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(20)),
        (struct duration){0});
    (void)event_loop_run_ready(fixture.loop);
    rendezvous_backend_redirect(node->backend, "127.0.0.1", store_thread_port(fixture.store));
    await(&fixture, 1);
    assert_null(node->trouble);
    fetch(node);
    assert_false(node->has_state);
    close(fd);
    tear_down(&fixture);
}

static void of_two_writers_who_saw_the_same_one_wins_and_the_other_learns_what_is(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    fetch(&fixture.nodes[1]);
    write_round(&fixture.nodes[0], 1, true, 1);
    assert_true(fixture.nodes[0].has_won);
    write_round(&fixture.nodes[1], 2, true, 1);
    assert_false(fixture.nodes[1].has_won);
    assert_int_equal(fixture.nodes[1].state.round, 1);
    write_round(&fixture.nodes[1], 2, true, 1);
    assert_true(fixture.nodes[1].has_won);
    tear_down(&fixture);
}

static void others_are_told_of_a_change_and_the_writer_is_not(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    fetch(&fixture.nodes[1]);
    write_round(
        &fixture.nodes[0], 1, false, 2); /* the node's "written" and the other node's "changed" */
    assert_int_equal(fixture.nodes[1].changes, 1);
    fetch(&fixture.nodes[1]);
    assert_int_equal(fixture.nodes[1].state.round, 1);
    write_round(&fixture.nodes[1], 2, false, 2);
    assert_int_equal(fixture.nodes[0].changes, 1);
    assert_int_equal(fixture.nodes[1].changes, 1);
    tear_down(&fixture);
}

static void others_are_told_of_the_last_word_of_a_node_that_goes(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    fetch(&fixture.nodes[1]);
    fixture.nodes[0].goes_when_it_has_written = true;
    write_round(
        &fixture.nodes[0], 1, false, 2); /* the node's "written" and the other node's "changed" */
    assert_int_equal(fixture.nodes[1].changes, 1);
    tear_down(&fixture);
}

static void a_quiet_change_wakes_nobody(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    fetch(&fixture.nodes[1]);
    write_round(&fixture.nodes[0], 1, true, 1);
    write_round(&fixture.nodes[0], 2, false, 2);
    assert_int_equal(fixture.nodes[1].changes, 1);
    tear_down(&fixture);
}

/* A node counted a change and died before it told it. The next beat of any node repairs that. */
static void a_change_that_was_counted_and_not_told_is_found_by_the_next_beat(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    ask_bare(&fixture,
        (struct store_request){.operation = STORE_ADD,
            .key = slice_from_string("/torch.rendezvous.a job/with a name/muster/changes"),
            .number = 1});
    assert_int_equal(fixture.nodes[0].changes, 0);
    rendezvous_backend_beat(fixture.nodes[0].backend);
    await(&fixture, 1);
    assert_int_equal(fixture.nodes[0].changes, 1);
    tear_down(&fixture);
}

static void a_roll_is_answered_when_all_have_answered(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    struct rendezvous_backend *one = fixture.nodes[0].backend;
    struct rendezvous_backend *other = fixture.nodes[1].backend;
    rendezvous_backend_call_roll(one, 3, 2);
    rendezvous_backend_answer_roll(one, 3, 0);
    rendezvous_backend_answer_roll(other, 4, 1); /* the answer is for another round */
    fetch(&fixture.nodes[1]);
    assert_int_equal(fixture.nodes[0].rolls_answered, 0);
    rendezvous_backend_answer_roll(other, 3, 1);
    await(&fixture, 1);
    assert_int_equal(fixture.nodes[0].rolls_answered, 1);
    tear_down(&fixture);
}

static void a_roll_that_is_called_off_is_not_answered(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    rendezvous_backend_call_roll(fixture.nodes[0].backend, 3, 1);
    rendezvous_backend_cancel_waits(fixture.nodes[0].backend);
    rendezvous_backend_call_roll(fixture.nodes[0].backend, 4, 1);
    rendezvous_backend_answer_roll(fixture.nodes[1].backend, 3, 0);
    rendezvous_backend_answer_roll(fixture.nodes[1].backend, 4, 0);
    await(&fixture, 1);
    fetch(&fixture.nodes[0]);
    assert_int_equal(fixture.nodes[0].rolls_answered, 1);
    assert_null(fixture.nodes[0].trouble);
    tear_down(&fixture);
}

static void a_record_that_makes_no_sense_is_named_and_left_as_it_is(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    set_record(&fixture, "not a record");
    fetch(&fixture.nodes[0]);
    assert_non_null(strstr(fixture.nodes[0].trouble, "torch.rendezvous.a job/with a name"));
    ask_bare(&fixture, (struct store_request){.operation = STORE_GET,
                           .key = slice_from_string("/torch.rendezvous.a job/with a name")});
    assert_string_equal(text_string(&fixture.bare_answer), "not a record");
    tear_down(&fixture);
}

/* A record cannot hold an address that is not UTF-8, because Python could not read it. */
static void write_what_cannot_be_spelled(struct node *node) {
    struct rendezvous_state state = {0};
    struct node_identity identity = {.address = "\xff", .pid = 1};
    rendezvous_state_obtain(&state, &identity)->is_waiting = true;
    node->is_inside = true;
    rendezvous_backend_write(node->backend, &state, false);
    node->is_inside = false;
    rendezvous_state_clear(&state);
}

static void a_write_that_cannot_be_spelled_is_told_from_the_loop(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    struct node *node = &fixture.nodes[0];
    fixture.awaited = 1;
    write_what_cannot_be_spelled(node);
    assert_null(node->trouble);
    await(&fixture, 1);
    assert_non_null(strstr(node->trouble, "cannot be written"));
    assert_false(node->was_told_inside);
    tear_down(&fixture);
}

static void nothing_is_told_once_the_backend_is_disconnected(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    write_what_cannot_be_spelled(&fixture.nodes[0]);
    rendezvous_backend_disconnect(fixture.nodes[0].backend);
    fetch(&fixture.nodes[1]);
    assert_null(fixture.nodes[0].trouble);
    tear_down(&fixture);
}

static void a_job_with_other_sizes_under_the_same_id_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    rendezvous_backend_free(fixture.nodes[1].backend);
    fixture.nodes[1].backend = make_backend(&fixture.nodes[1], 5);
    connect_node(&fixture.nodes[1]);
    assert_non_null(strstr(fixture.nodes[1].trouble, "1:4"));
    assert_non_null(strstr(fixture.nodes[1].trouble, "1:5"));
    tear_down(&fixture);
}

static void a_node_that_is_gone_is_told_of_where_presence_is_served(void **state) {
    (void)state;
    struct fixture fixture;
    struct node_identity identity;
    set_up(&fixture, true);
    assert_true(fixture.nodes[0].has_presence);
    node_identity_init(&identity, "host_a", 12, 34);
    rendezvous_backend_present(fixture.nodes[0].backend, &identity, false);
    rendezvous_backend_present(fixture.nodes[0].backend, &identity, true);
    fetch(&fixture.nodes[0]);
    rendezvous_backend_disconnect(fixture.nodes[0].backend);
    await(&fixture, 1);
    assert_string_equal(text_string(&fixture.gone), "host_a_12_34 finished;");
    tear_down(&fixture);
}

static void a_server_of_another_kind_serves_no_presence(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, false);
    assert_false(fixture.nodes[0].has_presence);
    tear_down(&fixture);
}

static void nodes_in_an_exit_barrier_are_counted(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    ask_bare(&fixture,
        (struct store_request){.operation = STORE_ADD,
            .key = slice_from_string("/torch.rendezvous.a job/with a name.3/torchelastic/agent/"
                                     "terminal_state/num_members"),
            .number = 2});
    rendezvous_backend_count_finished(fixture.nodes[0].backend, 3);
    await(&fixture, 1);
    assert_int_equal(fixture.nodes[0].finished_count, 2);
    tear_down(&fixture);
}

static void the_end_of_the_store_is_told_once_and_is_no_silence(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fetch(&fixture.nodes[0]);
    rendezvous_backend_disconnect(fixture.nodes[1].backend);
    store_thread_stop(fixture.store);
    fixture.store = NULL;
    await(&fixture, 1);
    assert_non_null(fixture.nodes[0].trouble);
    assert_null(fixture.nodes[1].trouble);
    assert_false(fixture.nodes[0].is_silent);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_that_has_just_begun_has_no_record),
    cmocka_unit_test(who_connects_in_vain_is_sent_to_where_the_store_is),
    cmocka_unit_test(of_two_writers_who_saw_the_same_one_wins_and_the_other_learns_what_is),
    cmocka_unit_test(others_are_told_of_a_change_and_the_writer_is_not),
    cmocka_unit_test(others_are_told_of_the_last_word_of_a_node_that_goes),
    cmocka_unit_test(a_quiet_change_wakes_nobody),
    cmocka_unit_test(a_change_that_was_counted_and_not_told_is_found_by_the_next_beat),
    cmocka_unit_test(a_roll_is_answered_when_all_have_answered),
    cmocka_unit_test(a_roll_that_is_called_off_is_not_answered),
    cmocka_unit_test(a_record_that_makes_no_sense_is_named_and_left_as_it_is),
    cmocka_unit_test(a_write_that_cannot_be_spelled_is_told_from_the_loop),
    cmocka_unit_test(nothing_is_told_once_the_backend_is_disconnected),
    cmocka_unit_test(a_job_with_other_sizes_under_the_same_id_is_refused),
    cmocka_unit_test(a_node_that_is_gone_is_told_of_where_presence_is_served),
    cmocka_unit_test(a_server_of_another_kind_serves_no_presence),
    cmocka_unit_test(nodes_in_an_exit_barrier_are_counted),
    cmocka_unit_test(the_end_of_the_store_is_told_once_and_is_no_silence),
};

TEST_MAIN(tests)
