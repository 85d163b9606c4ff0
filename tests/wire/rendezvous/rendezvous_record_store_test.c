/* SPDX-License-Identifier: BSD-3-Clause */
/* Several nodes of one job with a real store table, without any wire between them. */
#include "record_fixture.h"

#include "core/store/store_table.h"

#define NODES 3

struct node;

struct lane {
    struct node *node;
    struct store_connection connection;
    uint64_t tag; /* tag of the request under way */
};

struct node {
    struct rendezvous_record_store *store;
    struct lane lanes[RENDEZVOUS_LANE_COUNT];
    struct record_effects effects;
    size_t performed; /* how many of them have been performed */
    /* The events that the node got. */
    struct rendezvous_state seen;
    bool has_record;
    bool has_won;
    int changes;
    int rolls_answered;
    int64_t finished_count;
};

struct job {
    struct store_table *table;
    struct store_effects replies;
    struct node nodes[NODES];
    struct lane bare;
};

static void hear(struct node *node, const struct rendezvous_event *told) {
    const struct rendezvous_state *state = NULL;
    switch (told->kind) {
    case RENDEZVOUS_EVENT_RECORD:
        state = told->state;
        node->has_record = state != NULL;
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        state = told->written.state;
        node->has_won = told->written.has_won;
        break;
    case RENDEZVOUS_EVENT_CHANGED:
        node->changes++;
        break;
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
        node->rolls_answered++;
        break;
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
        node->finished_count = told->finished_count;
        break;
    case RENDEZVOUS_EVENT_CONNECTED:
        break;
    case RENDEZVOUS_EVENT_JOIN_ASKED:
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_OPENED:
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_NODE_GONE:
    case RENDEZVOUS_EVENT_WISHED:
    case RENDEZVOUS_EVENT_STANDING:
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
    case RENDEZVOUS_EVENT_REGISTER:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        fail_msg("told of %d", (int)told->kind);
        break;
    }
    if (state != NULL) {
        rendezvous_state_copy(state, &node->seen);
    }
}

/* Delivers the table's replies to this request, and to waits that it ends. */
static void apply(struct job *job, struct lane *lane, const struct store_request *request) {
    store_effects_reset(&job->replies);
    store_table_apply(job->table, &lane->connection, request, &job->replies);
    for (size_t i = 0; i < job->replies.count; i++) {
        const struct store_effect *effect = &job->replies.items[i];
        struct lane *answered = effect->connection->owner;
        assert_int_equal(effect->kind, STORE_EFFECT_REPLY);
        if (answered->node != NULL) {
            rendezvous_record_store_take_reply(
                answered->node->store, answered->tag, &effect->reply, &answered->node->effects);
        }
    }
    if (lane->node != NULL && store_operation_reply_kind(request->operation) == STORE_REPLY_NONE) {
        rendezvous_record_store_take_reply(
            lane->node->store, lane->tag, &(struct store_reply){0}, &lane->node->effects);
    }
}

static void perform(struct job *job, struct node *node, const struct record_effect *effect) {
    switch (effect->kind) {
    case RECORD_EFFECT_OPEN:
        rendezvous_record_store_take_opened(node->store, &node->effects);
        break;
    case RECORD_EFFECT_DROP:
        for (int i = 0; i < RENDEZVOUS_LANE_COUNT; i++) {
            store_table_disconnect(job->table, &node->lanes[i].connection);
        }
        break;
    case RECORD_EFFECT_RENEW_WAITER:
        store_table_disconnect(job->table, &node->lanes[RENDEZVOUS_LANE_WAITER].connection);
        break;
    case RECORD_EFFECT_SEND:
        node->lanes[effect->send.lane].tag = effect->send.tag;
        apply(job, &node->lanes[effect->send.lane], &effect->send.own.request);
        break;
    case RECORD_EFFECT_TELL:
        hear(node, &effect->told);
        break;
    }
}

/* Runs until no node has anything to do. */
static void settle(struct job *job) {
    bool is_busy = true;
    while (is_busy) {
        is_busy = false;
        for (int i = 0; i < NODES; i++) {
            struct node *node = &job->nodes[i];
            if (node->performed < node->effects.count) {
                struct record_effect effect = node->effects.items[node->performed++];
                perform(job, node, &effect);
                is_busy = true;
            }
        }
    }
}

static void ask(struct job *job, int node, struct rendezvous_effect asked) {
    rendezvous_record_store_ask(job->nodes[node].store, &asked, &job->nodes[node].effects);
    settle(job);
}

static void ask_kind(struct job *job, int node, enum rendezvous_effect_kind kind) {
    ask(job, node, (struct rendezvous_effect){.kind = kind});
}

static bool write_round(struct job *job, int node, int64_t round, bool is_quiet) {
    struct rendezvous_state state = {.round = round, .restarts = node};
    ask(job, node,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {&state, is_quiet}});
    return job->nodes[node].has_won;
}

static void roll(
    struct job *job, int node, enum rendezvous_effect_kind kind, int64_t round, int number) {
    ask(job, node, (struct rendezvous_effect){.kind = kind, .roll = {round, number}});
}

static void set_up(struct job *job, bool has_presence) {
    struct rendezvous_record_store_settings settings = lone_settings;
    *job = (struct job){.table = store_table_new(&STORE_LIMITS_DEFAULT)};
    job->bare.connection.owner = &job->bare;
    if (has_presence) {
        apply(job, &job->bare,
            &(struct store_request){
                .operation = STORE_SET, .key = slice_from_string(LONE_OWN "presence/served")});
    }
    for (int i = 0; i < NODES; i++) {
        struct node *node = &job->nodes[i];
        node->store = rendezvous_record_store_new(&settings);
        for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
            node->lanes[lane].node = node;
            node->lanes[lane].connection.owner = &node->lanes[lane];
        }
        ask_kind(job, i, RENDEZVOUS_EFFECT_CONNECT);
        assert_true(rendezvous_record_store_is_up(node->store));
    }
}

static void tear_down(struct job *job) {
    for (int i = 0; i < NODES; i++) {
        rendezvous_record_store_free(job->nodes[i].store);
        record_effects_clear(&job->nodes[i].effects);
        rendezvous_state_clear(&job->nodes[i].seen);
    }
    store_table_free(job->table);
    store_effects_clear(&job->replies);
}

static bool is_there(struct job *job, const char *key) {
    struct slice keys[] = {slice_from_string(key)};
    store_effects_reset(&job->replies);
    store_table_apply(job->table, &job->bare.connection,
        &(struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1}, &job->replies);
    return job->replies.items[0].reply.byte == STORE_READY;
}

/* The record. */

TEST(a_job_that_has_just_begun_has_no_record) {
    struct job job;
    set_up(&job, true);
    ask_kind(&job, 0, RENDEZVOUS_EFFECT_FETCH);
    assert_false(job.nodes[0].has_record);
    assert_true(write_round(&job, 0, 7, true));
    ask_kind(&job, 1, RENDEZVOUS_EFFECT_FETCH);
    assert_true(job.nodes[1].has_record);
    assert_int_equal(job.nodes[1].seen.round, 7);
    tear_down(&job);
}

TEST(of_two_writers_who_saw_the_same_one_wins_and_the_other_learns_what_is) {
    struct job job;
    set_up(&job, true);
    ask_kind(&job, 0, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(&job, 1, RENDEZVOUS_EFFECT_FETCH);
    assert_true(write_round(&job, 0, 1, true));
    assert_false(write_round(&job, 1, 2, true));
    assert_int_equal(job.nodes[1].seen.round, 1);
    assert_true(write_round(&job, 1, 2, true));
    tear_down(&job);
}

/* Changes. */

TEST(others_are_told_of_a_change_and_the_writer_is_not) {
    struct job job;
    set_up(&job, true);
    for (int i = 0; i < NODES; i++) {
        ask_kind(&job, i, RENDEZVOUS_EFFECT_FETCH);
    }
    assert_true(write_round(&job, 0, 1, false));
    ask_kind(&job, 1, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(&job, 2, RENDEZVOUS_EFFECT_TELL_WATCHERS);
    assert_int_equal(job.nodes[0].changes, 1);
    assert_int_equal(job.nodes[1].changes, 2);
    assert_int_equal(job.nodes[2].changes, 1);
    tear_down(&job);
}

TEST(a_quiet_change_wakes_nobody) {
    struct job job;
    set_up(&job, true);
    ask_kind(&job, 0, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(&job, 1, RENDEZVOUS_EFFECT_FETCH);
    assert_true(write_round(&job, 0, 1, true));
    assert_int_equal(job.nodes[1].changes, 0);
    tear_down(&job);
}

/* A node counted a change and died before it told it. */
TEST(a_change_that_was_counted_and_not_told_is_found_by_the_next_beat) {
    struct job job;
    set_up(&job, true);
    ask_kind(&job, 0, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(&job, 1, RENDEZVOUS_EFFECT_FETCH);
    apply(&job, &job.bare,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string(LONE_OWN "changes"), .number = 1});
    settle(&job);
    assert_int_equal(job.nodes[0].changes, 0);
    ask_kind(&job, 0, RENDEZVOUS_EFFECT_BEAT);
    assert_int_equal(job.nodes[0].changes, 1);
    assert_int_equal(job.nodes[1].changes, 1);
    tear_down(&job);
}

TEST(the_keys_of_old_changes_are_taken_away) {
    struct job job;
    set_up(&job, true);
    for (int i = 0; i < 300; i++) {
        ask_kind(&job, 0, RENDEZVOUS_EFFECT_TELL_WATCHERS);
    }
    assert_false(is_there(&job, LONE_OWN "changed/44"));
    assert_true(is_there(&job, LONE_OWN "changed/45"));
    assert_true(is_there(&job, LONE_OWN "changed/300"));
    tear_down(&job);
}

/* Nodes. */

TEST(a_roll_is_answered_when_all_have_answered) {
    struct job job;
    set_up(&job, true);
    roll(&job, 0, RENDEZVOUS_EFFECT_CALL_ROLL, 3, 2);
    roll(&job, 0, RENDEZVOUS_EFFECT_ANSWER_ROLL, 3, 0);
    roll(&job, 1, RENDEZVOUS_EFFECT_ANSWER_ROLL, 4, 1);
    assert_int_equal(job.nodes[0].rolls_answered, 0);
    roll(&job, 1, RENDEZVOUS_EFFECT_ANSWER_ROLL, 3, 1);
    assert_int_equal(job.nodes[0].rolls_answered, 1);
    tear_down(&job);
}

TEST(a_roll_that_is_called_off_is_not_answered) {
    struct job job;
    set_up(&job, true);
    roll(&job, 0, RENDEZVOUS_EFFECT_CALL_ROLL, 3, 1);
    rendezvous_record_store_cancel_waits(job.nodes[0].store, &job.nodes[0].effects);
    roll(&job, 0, RENDEZVOUS_EFFECT_CALL_ROLL, 4, 1);
    roll(&job, 1, RENDEZVOUS_EFFECT_ANSWER_ROLL, 3, 0);
    assert_int_equal(job.nodes[0].rolls_answered, 0);
    roll(&job, 1, RENDEZVOUS_EFFECT_ANSWER_ROLL, 4, 0);
    assert_int_equal(job.nodes[0].rolls_answered, 1);
    tear_down(&job);
}

TEST(nodes_in_an_exit_barrier_are_counted) {
    struct job job;
    set_up(&job, true);
    apply(&job, &job.bare,
        &(struct store_request){.operation = STORE_ADD,
            .key =
                slice_from_string(LONE_RECORD ".3/torchelastic/agent/terminal_state/num_members"),
            .number = 2});
    ask(&job, 0, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_COUNT_FINISHED, .round = 3});
    assert_int_equal(job.nodes[0].finished_count, 2);
    tear_down(&job);
}
