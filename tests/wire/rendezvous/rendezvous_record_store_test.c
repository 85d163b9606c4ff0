/* SPDX-License-Identifier: BSD-3-Clause */
/* Several nodes of one job with a real store table, without any wire between them. */
#include "core/store/store_table.h"
#include "record_fixture.h"
#include "wire/rendezvous/rendezvous_record_store.h"

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

#define JOB_TEST(name) TEST_OF(job, name, set_up(&fixture, true), tear_down)

#define LONE_NODE_TEST(name) TEST_OF(lone_node, name, lone_set_up(&fixture), lone_tear_down)

/* The record. */

JOB_TEST(a_job_that_has_just_begun_has_no_record) {
    ask_kind(fixture, 0, RENDEZVOUS_EFFECT_FETCH);
    assert_false(fixture->nodes[0].has_record);
    assert_true(write_round(fixture, 0, 7, true));
    ask_kind(fixture, 1, RENDEZVOUS_EFFECT_FETCH);
    assert_true(fixture->nodes[1].has_record);
    assert_int_equal(fixture->nodes[1].seen.round, 7);
}

JOB_TEST(of_two_writers_who_saw_the_same_one_wins_and_the_other_learns_what_is) {
    ask_kind(fixture, 0, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(fixture, 1, RENDEZVOUS_EFFECT_FETCH);
    assert_true(write_round(fixture, 0, 1, true));
    assert_false(write_round(fixture, 1, 2, true));
    assert_int_equal(fixture->nodes[1].seen.round, 1);
    assert_true(write_round(fixture, 1, 2, true));
}

/* Changes. */

JOB_TEST(others_are_told_of_a_change_and_the_writer_is_not) {
    for (int i = 0; i < NODES; i++) {
        ask_kind(fixture, i, RENDEZVOUS_EFFECT_FETCH);
    }
    assert_true(write_round(fixture, 0, 1, false));
    ask_kind(fixture, 1, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(fixture, 2, RENDEZVOUS_EFFECT_TELL_WATCHERS);
    assert_int_equal(fixture->nodes[0].changes, 1);
    assert_int_equal(fixture->nodes[1].changes, 2);
    assert_int_equal(fixture->nodes[2].changes, 1);
}

JOB_TEST(a_quiet_change_wakes_nobody) {
    ask_kind(fixture, 0, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(fixture, 1, RENDEZVOUS_EFFECT_FETCH);
    assert_true(write_round(fixture, 0, 1, true));
    assert_int_equal(fixture->nodes[1].changes, 0);
}

/* A node counted a change and died before it told it. */
JOB_TEST(a_change_that_was_counted_and_not_told_is_found_by_the_next_beat) {
    ask_kind(fixture, 0, RENDEZVOUS_EFFECT_FETCH);
    ask_kind(fixture, 1, RENDEZVOUS_EFFECT_FETCH);
    apply(fixture, &fixture->bare,
        &(struct store_request){
            .operation = STORE_ADD, .key = slice_from_string(LONE_OWN "changes"), .number = 1});
    settle(fixture);
    assert_int_equal(fixture->nodes[0].changes, 0);
    ask_kind(fixture, 0, RENDEZVOUS_EFFECT_BEAT);
    assert_int_equal(fixture->nodes[0].changes, 1);
    assert_int_equal(fixture->nodes[1].changes, 1);
}

JOB_TEST(the_keys_of_old_changes_are_taken_away) {
    for (int i = 0; i < 300; i++) {
        ask_kind(fixture, 0, RENDEZVOUS_EFFECT_TELL_WATCHERS);
    }
    assert_false(is_there(fixture, LONE_OWN "changed/44"));
    assert_true(is_there(fixture, LONE_OWN "changed/45"));
    assert_true(is_there(fixture, LONE_OWN "changed/300"));
}

/* Nodes. */

JOB_TEST(a_roll_that_is_called_off_is_not_answered) {
    roll(fixture, 0, RENDEZVOUS_EFFECT_CALL_ROLL, 3, 1);
    rendezvous_record_store_cancel_waits(fixture->nodes[0].store, &fixture->nodes[0].effects);
    roll(fixture, 0, RENDEZVOUS_EFFECT_CALL_ROLL, 4, 1);
    roll(fixture, 1, RENDEZVOUS_EFFECT_ANSWER_ROLL, 3, 0);
    assert_int_equal(fixture->nodes[0].rolls_answered, 0);
    roll(fixture, 1, RENDEZVOUS_EFFECT_ANSWER_ROLL, 4, 0);
    assert_int_equal(fixture->nodes[0].rolls_answered, 1);
}

JOB_TEST(nodes_in_an_exit_barrier_are_counted) {
    apply(fixture, &fixture->bare,
        &(struct store_request){.operation = STORE_ADD,
            .key =
                slice_from_string(LONE_RECORD ".3/torchelastic/agent/terminal_state/num_members"),
            .number = 2});
    ask(fixture, 0,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_COUNT_FINISHED, .round = 3});
    assert_int_equal(fixture->nodes[0].finished_count, 2);
}

/* Values that other programs wrote, and stores that answer wrongly. */

static void expect_broken(struct lone_node *node, const char *part) {
    (void)lone_next(node, RECORD_EFFECT_DROP);
    assert_non_null(strstr(lone_told(node, RENDEZVOUS_EVENT_BROKEN)->reason, part));
    assert_false(rendezvous_record_store_is_up(node->store));
}

#define OTHER_PROTOCOL                                                                             \
    "job 'job' at this store was begun by muster 9.1, which speaks version 2 of Muster's "         \
    "protocol, and this is muster " MUSTER_VERSION ", which speaks version 1 of Muster's "         \
    "protocol; use one version of Muster on all nodes of a job"

LONE_NODE_TEST(another_protocol_is_refused_and_the_server_has_heard_of_it) {
    lone_reply(fixture, lone_ask_protocol(fixture, true), lone_blob("2 muster 9.1"));
    const struct store_request *said = &fixture->effects.items[fixture->looked_at].send.own.request;
    struct slice refused = slice_from_string(LONE_OWN "presence/refused/");
    assert_int_equal(said->operation, STORE_SET);
    assert_true(slice_starts_with(said->key, refused));
    assert_true(slice_equals(said->value, slice_from_string("1 muster " MUSTER_VERSION)));
    lone_reply(fixture, lone_next(fixture, RECORD_EFFECT_SEND)->send.tag, lone_none());
    lone_reply(fixture, lone_sent(fixture, STORE_CHECK, LONE_OWN "presence/served"),
        lone_byte(STORE_READY));
    expect_broken(fixture, OTHER_PROTOCOL);
}

LONE_NODE_TEST(another_protocol_is_refused_by_a_server_that_tells_nobody) {
    lone_reply(fixture, lone_ask_protocol(fixture, false), lone_blob("2 muster 9.1"));
    expect_broken(fixture, OTHER_PROTOCOL);
}

TEST(a_protocol_that_is_none_is_named) {
    static const char *const texts[] = {"", "1", "2 \033[2J", "muster"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_reply(&node, lone_ask_protocol(&node, true), lone_blob(texts[i]));
        expect_broken(&node, "the protocol's version of job 'job' in the store (key "
                             "torch.rendezvous.job/muster/protocol) cannot be used: it is not");
        lone_tear_down(&node);
    }
}

LONE_NODE_TEST(a_node_that_is_refused_may_be_dropped_before_the_server_has_heard) {
    lone_reply(fixture, lone_ask_protocol(fixture, true), lone_blob("2 muster 9.1"));
    rendezvous_record_store_disconnect(fixture->store, &fixture->effects);
}

TEST(other_settings_are_refused_and_shown) {
    struct lone_node node;
    lone_set_up(&node);
    lone_reply(&node, lone_connect(&node, true), lone_blob("2:4"));
    expect_broken(&node, "a job 'job' with other settings uses this store: it has --nnodes 2:4, "
                         "this node was given 1:4");
    lone_tear_down(&node);
}

TEST(settings_that_are_no_sizes_are_not_shown) {
    static const char *const texts[] = {
        "", "1:\033[2J", "1:4 ", "1234567890:1234567890123456789012"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_reply(&node, lone_connect(&node, true), lone_blob(texts[i]));
        expect_broken(&node, "it has --nnodes something else, this");
        lone_tear_down(&node);
    }
}

LONE_NODE_TEST(a_record_that_makes_no_sense_is_named) {
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_FETCH);
    (void)lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    lone_reply(fixture, lone_sent(fixture, STORE_COMPARE_SET, LONE_RECORD), lone_blob("no record"));
    expect_broken(
        fixture, "the record of job 'job' in the store (key torch.rendezvous.job) cannot");
}

TEST(a_counter_of_changes_that_counts_nothing_is_named) {
    static const int64_t counts[] = {INT64_MAX, INT64_MIN, -1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_be_up(&node, false);
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
        lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(counts[i]));
        expect_broken(&node, "the counter of changes of job 'job' in the store (key "
                             "torch.rendezvous.job/muster/changes) cannot be used: it is ");
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_CONNECT);
        lone_tear_down(&node);
    }
}

LONE_NODE_TEST(a_counter_that_was_deleted_counts_on) {
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(fixture, lone_sent(fixture, STORE_ADD, LONE_OWN "changes"), lone_integer(7));
    (void)lone_sent(fixture, STORE_WAIT, LONE_OWN "changed/8");
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(fixture, lone_sent(fixture, STORE_ADD, LONE_OWN "changes"), lone_integer(2));
    assert_int_equal(fixture->effects.items[fixture->looked_at].send.own.request.number, 5);
    uint64_t counting = lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    (void)lone_told(fixture, RENDEZVOUS_EVENT_CHANGED);
    lone_reply(fixture, counting, lone_integer(7));
    lone_expect_no_more(fixture);
}

TEST(a_new_change_has_a_number_that_can_be_waited_for) {
    static const int64_t counts[] = {INT64_MAX, INT64_MIN, 0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_be_up(&node, false);
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_TELL_WATCHERS);
        lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(counts[i]));
        expect_broken(&node, "the counter of changes of job 'job'");
        lone_tear_down(&node);
    }
}

LONE_NODE_TEST(an_answer_of_another_kind_ends_it) {
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(fixture, lone_sent(fixture, STORE_ADD, LONE_OWN "changes"), lone_blob("7"));
    expect_broken(fixture, "the store gave no valid answer to ADD");
}

LONE_NODE_TEST(a_wait_that_the_store_calls_off_ends_it) {
    lone_be_up(fixture, true);
    lone_ask(
        fixture, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {3, 1}});
    lone_reply(fixture, lone_sent(fixture, STORE_WAIT, LONE_RECORD ".3/muster/roll/0"),
        lone_byte(STORE_WAIT_CANCELLED));
    expect_broken(fixture, "the store gave no valid answer to WAIT");
}

LONE_NODE_TEST(a_record_that_is_too_long_is_named_and_another_reply_is_not) {
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_FETCH);
    uint64_t count = lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    uint64_t record = lone_sent(fixture, STORE_COMPARE_SET, LONE_RECORD);
    rendezvous_record_store_take_failure(
        fixture->store, record, FAILURE_LIMIT, "too long", &fixture->effects);
    expect_broken(fixture, "(key torch.rendezvous.job) cannot be used: too long;");
    rendezvous_record_store_take_failure(
        fixture->store, count, FAILURE_LIMIT, "too long", &fixture->effects);
    lone_expect_no_more(fixture);
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    rendezvous_record_store_take_failure(fixture->store,
        lone_sent(fixture, STORE_ADD, LONE_OWN "changes"), FAILURE_LIMIT, "too long",
        &fixture->effects);
    (void)lone_next(fixture, RECORD_EFFECT_DROP);
    assert_string_equal(lone_told(fixture, RENDEZVOUS_EVENT_BROKEN)->reason, "too long");
}

/* A TCPStore that has no value repeats the one that is expected. The next write then expects none.
 */
TEST(a_record_that_was_deleted_can_be_written_again) {
    struct lone_node node;
    CLEARED_BY(bytes_clear) struct bytes text = {0};
    struct rendezvous_state record = {.round = 6};
    struct rendezvous_effect write = {
        .kind = RENDEZVOUS_EFFECT_WRITE, .write = {.state = &record, .is_quiet = true}};
    assert_int_equal(rendezvous_state_write_text(&record, &text), FAILURE_NONE);
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD),
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = bytes_slice(&text)});
    (void)lone_told(&node, RENDEZVOUS_EVENT_RECORD);
    record.round = 7;
    lone_ask(&node, write);
    lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD),
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = bytes_slice(&text)});
    const struct rendezvous_event *lost = lone_told(&node, RENDEZVOUS_EVENT_WRITTEN);
    assert_false(lost->written.has_won);
    assert_null(lost->written.state);
    lone_ask(&node, write);
    assert_int_equal(node.effects.items[node.looked_at].send.own.request.expected.length, 0);
    lone_tear_down(&node);
}

/* Delegation. */

static const struct rendezvous_wish join_wish = {.kind = RENDEZVOUS_WISH_JOIN,
    .sequence = 1,
    .finished_round = RENDEZVOUS_WISH_NO_ROUND,
    .ended_round = RENDEZVOUS_WISH_NO_ROUND,
    .doubted_round = RENDEZVOUS_WISH_NO_ROUND};

static const struct node_identity delegate = {.address = "a", .pid = 1, .local_id = 2};

#define STANDING LONE_OWN "standing/a_1_2"

static struct store_reply item(const char *text) {
    struct slice front = slice_from_string(text);
    return (struct store_reply){
        .kind = STORE_REPLY_POP, .pop = {.length = front.length > 0, .front = front}};
}

static const struct record_sending *last_sent(const struct lone_node *node) {
    return &node->effects.items[node->looked_at - 1].send;
}

/* A node that would delegate. It asks whether presence is served and delegation is offered, both in
 * one question. Returns the tag of that; that of the question about the protocol is the next. */
static uint64_t ask_for_delegation(struct lone_node *node) {
    struct rendezvous_record_store_settings settings = lone_settings;
    settings.delegates = true;
    *node = (struct lone_node){.store = rendezvous_record_store_new(&settings)};
    lone_open(node);
    uint64_t offered = lone_sent(node, STORE_CHECK, LONE_OWN "presence/served");
    const struct record_sending *check = last_sent(node);
    assert_int_equal(check->own.request.count, 2);
    assert_true(slice_equals(check->own.request.keys[1], slice_from_string(LONE_OWN "delegation")));
    return offered;
}

/* A node that delegates. Returns the tag of its wait for its standing. */
static uint64_t delegate_up(struct lone_node *node) {
    uint64_t offered = ask_for_delegation(node);
    uint64_t protocol = lone_sent(node, STORE_COMPARE_SET, LONE_OWN "protocol");
    lone_reply(node, offered, lone_byte(STORE_READY));
    lone_reply(node, protocol, lone_blob("1 muster 0.3.0"));
    lone_reply(node, lone_sent(node, STORE_COMPARE_SET, LONE_OWN "settings"), lone_blob("1:4"));
    assert_true(lone_told(node, RENDEZVOUS_EVENT_CONNECTED)->connected.offers_delegation);
    lone_ask(node, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                       .present = {delegate, false, &join_wish}});
    (void)lone_sent(node, STORE_SET, LONE_OWN "presence/a_1_2");
    return lone_sent(node, STORE_QUEUE_POP, STANDING);
}

TEST(a_node_that_delegates_takes_its_standing_from_its_queue) {
    struct lone_node node;
    lone_reply(&node, delegate_up(&node), item("standing 1 8 0 0 7 0 0 4 0 1 4 0 0 1 2"));
    (void)lone_sent(&node, STORE_QUEUE_POP, STANDING);
    const struct rendezvous_event *told = lone_told(&node, RENDEZVOUS_EVENT_STANDING);
    assert_int_equal(told->standing.answers, 1);
    assert_int_equal(told->standing.state->round, 8);
    assert_true(node_identity_equals(&told->standing.state->nodes[0].identity, &delegate));
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(&node, STORE_SET, LONE_OWN "presence/a_1_2");
    /* It wants to know whether the store answers, and does not watch the record. */
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(7));
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}

TEST(a_node_that_delegates_asks_everything_over_one_lane) {
    struct lone_node node;
    (void)delegate_up(&node);
    assert_true(last_sent(&node)->rests);
    for (size_t i = 0; i < node.looked_at; i++) {
        const struct record_effect *effect = &node.effects.items[i];
        if (effect->kind == RECORD_EFFECT_SEND) {
            assert_int_equal(effect->send.lane, RENDEZVOUS_LANE_ASKER);
            assert_int_equal(
                effect->send.rests, effect->send.own.request.operation == STORE_QUEUE_POP);
        }
    }
    lone_tear_down(&node);
}

TEST(a_node_that_is_not_offered_delegation_asks_for_presence_alone) {
    struct lone_node node;
    uint64_t offered = ask_for_delegation(&node);
    uint64_t protocol = lone_sent(&node, STORE_COMPARE_SET, LONE_OWN "protocol");
    lone_reply(&node, protocol, lone_blob("1 muster 0.3.0"));
    lone_reply(&node, offered, lone_byte(STORE_NOT_READY));
    uint64_t presence = lone_sent(&node, STORE_CHECK, LONE_OWN "presence/served");
    lone_reply(&node, presence, lone_byte(STORE_READY));
    lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_OWN "settings"), lone_blob("1:4"));
    const struct rendezvous_event *told = lone_told(&node, RENDEZVOUS_EVENT_CONNECTED);
    assert_true(told->connected.has_presence);
    assert_false(told->connected.offers_delegation);
    lone_tear_down(&node);
}

TEST(a_node_that_is_let_go_waits_for_changes_again) {
    struct lone_node node;
    lone_reply(&node, delegate_up(&node), item("withdrawn 1"));
    assert_true(lone_told(&node, RENDEZVOUS_EVENT_STANDING)->standing.is_withdrawn);
    lone_ask(&node, (struct rendezvous_effect){
                        .kind = RENDEZVOUS_EFFECT_PRESENT, .present = {delegate, false, NULL}});
    (void)lone_sent(&node, STORE_SET, LONE_OWN "presence/a_1_2");
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(7));
    (void)lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD);
    (void)lone_sent(&node, STORE_WAIT, LONE_OWN "changed/8");
    assert_int_equal(last_sent(&node)->lane, RENDEZVOUS_LANE_WATCHER);
    lone_tear_down(&node);
}

/* A node whose host may leave its store to another one. Returns the tag of its wait for that. */
static uint64_t follow_up(struct lone_node *node) {
    struct rendezvous_record_store_settings settings = lone_settings;
    settings.follows = true;
    *node = (struct lone_node){.store = rendezvous_record_store_new(&settings)};
    lone_reply(node, lone_connect(node, true), lone_blob("1:4"));
    (void)lone_told(node, RENDEZVOUS_EVENT_CONNECTED);
    lone_ask(node, (struct rendezvous_effect){
                       .kind = RENDEZVOUS_EFFECT_PRESENT, .present = {delegate, false, NULL}});
    (void)lone_sent(node, STORE_SET, LONE_OWN "presence/a_1_2");
    uint64_t tag = lone_sent(node, STORE_QUEUE_POP, STANDING);
    assert_true(last_sent(node)->rests);
    return tag;
}

TEST(a_node_hears_that_its_host_leaves_and_who_follows) {
    struct lone_node node;
    lone_reply(&node, follow_up(&node), item("moved"));
    uint64_t next = lone_sent(&node, STORE_QUEUE_POP, STANDING);
    assert_false(lone_told(&node, RENDEZVOUS_EVENT_HOST_LEAVES)->is_successor);
    lone_reply(&node, next, item("named"));
    (void)lone_sent(&node, STORE_QUEUE_POP, STANDING);
    assert_true(lone_told(&node, RENDEZVOUS_EVENT_HOST_LEAVES)->is_successor);
    lone_tear_down(&node);
}

/* A successor where there is none, half a standing, and none at all: a host answers when there is
 * an item, and who asked on would ask for ever. */
TEST(what_makes_no_sense_to_a_node_that_delegates_ends_it) {
    static const char *const items[] = {"moved", "standing 1", ""};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        struct lone_node node;
        lone_reply(&node, delegate_up(&node), item(items[i]));
        expect_broken(&node, "has told this node what makes no sense");
        lone_tear_down(&node);
    }
}

/* One node alone, with a test that answers its requests: which request uses which lane, and how the
 * connection ends. */

/* GET would wait for a record that nobody has begun. */
TEST(a_connection_begins_the_record_when_it_first_asks_for_it) {
    struct lone_node node;
    lone_set_up(&node);
    for (int connection = 0; connection < 2; connection++) {
        lone_be_up(&node, true);
        lone_expect_no_more(&node);
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
        (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
        lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD),
            lone_blob(RENDEZVOUS_STATE_ABSENT));
        assert_null(lone_told(&node, RENDEZVOUS_EVENT_RECORD)->state);
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
        (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
        (void)lone_sent(&node, STORE_GET, LONE_RECORD);
        rendezvous_record_store_disconnect(node.store, &node.effects);
        (void)lone_next(&node, RECORD_EFFECT_DROP);
    }
    lone_tear_down(&node);
}

LONE_NODE_TEST(a_name_takes_the_place_of_an_earlier_one) {
    struct rendezvous_effect present = {.kind = RENDEZVOUS_EFFECT_PRESENT};
    lone_be_up(fixture, true);
    node_identity_init(&present.present.identity, "host", 12, 34);
    lone_ask(fixture, present);
    (void)lone_sent(fixture, STORE_SET, LONE_OWN "presence/host_12_34");
    present.present.identity.local_id = 35;
    present.present.has_finished = true;
    lone_ask(fixture, present);
    (void)lone_sent(fixture, STORE_DELETE, LONE_OWN "presence/host_12_34");
    const struct record_sending *send = &lone_next(fixture, RECORD_EFFECT_SEND)->send;
    assert_true(
        slice_equals(send->own.request.key, slice_from_string(LONE_OWN "presence/host_12_35")));
    assert_true(slice_equals(send->own.request.value, slice_from_string("finished")));
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(fixture, STORE_SET, LONE_OWN "presence/host_12_35");
    (void)lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    lone_expect_no_more(fixture);
}

LONE_NODE_TEST(nobody_is_present_where_presence_is_not_served) {
    lone_be_up(fixture, false);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_PRESENT);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    lone_expect_no_more(fixture);
}

LONE_NODE_TEST(what_waits_has_a_lane_of_its_own_and_all_the_time) {
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    const struct record_sending *send = &lone_next(fixture, RECORD_EFFECT_SEND)->send;
    assert_int_equal(send->lane, RENDEZVOUS_LANE_ASKER);
    assert_int_equal(send->timeout.nanoseconds, lone_settings.answer_timeout.nanoseconds);
    lone_reply(fixture, send->tag, lone_integer(0));
    send = &lone_next(fixture, RECORD_EFFECT_SEND)->send;
    assert_int_equal(send->lane, RENDEZVOUS_LANE_WATCHER);
    assert_int_equal(send->timeout.nanoseconds, DURATION_FOREVER.nanoseconds);
    lone_ask(
        fixture, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {3, 1}});
    send = &lone_next(fixture, RECORD_EFFECT_SEND)->send;
    assert_int_equal(send->lane, RENDEZVOUS_LANE_WAITER);
    assert_int_equal(send->timeout.nanoseconds, DURATION_FOREVER.nanoseconds);
}

LONE_NODE_TEST(without_a_connection_nothing_is_asked) {
    for (int kind = RENDEZVOUS_EFFECT_CONNECT + 1; kind < RENDEZVOUS_EFFECT_KIND_COUNT; kind++) {
        lone_ask_kind(fixture, (enum rendezvous_effect_kind)kind);
    }
    rendezvous_record_store_delete(fixture->store, "/key", &fixture->effects);
    rendezvous_record_store_cancel_waits(fixture->store, &fixture->effects);
    rendezvous_record_store_disconnect(fixture->store, &fixture->effects);
    lone_expect_no_more(fixture);
}

TEST(an_end_is_told_once_with_its_reason) {
    static const enum failure_code codes[] = {FAILURE_DISCONNECTED, FAILURE_TIMEOUT};
    for (int i = 0; i < 2; i++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_be_up(&node, true);
        rendezvous_record_store_take_end(node.store, codes[i], "gone", &node.effects);
        (void)lone_next(&node, RECORD_EFFECT_DROP);
        const struct rendezvous_event *told = lone_told(&node, RENDEZVOUS_EVENT_CONNECTION_LOST);
        assert_string_equal(told->lost.reason, "gone");
        assert_int_equal(told->lost.is_silent, codes[i] == FAILURE_TIMEOUT);
        rendezvous_record_store_take_end(node.store, codes[i], "gone", &node.effects);
        lone_expect_no_more(&node);
        lone_tear_down(&node);
    }
}

/* A lane that stood has ended while the others were opened, or the greeting was not answered. */
LONE_NODE_TEST(a_connection_that_ends_too_early_is_tried_again) {
    uint64_t greeting = lone_connect(fixture, true);
    rendezvous_record_store_take_failure(
        fixture->store, greeting, FAILURE_TIMEOUT, "no answer", &fixture->effects);
    (void)lone_next(fixture, RECORD_EFFECT_DROP);
    assert_int_equal(lone_next(fixture, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_end(
        fixture->store, FAILURE_DISCONNECTED, "connection reset", &fixture->effects);
    (void)lone_next(fixture, RECORD_EFFECT_DROP);
    assert_int_equal(lone_next(fixture, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_end(fixture->store, FAILURE_TIMEOUT, "silent", &fixture->effects);
    (void)lone_next(fixture, RECORD_EFFECT_DROP);
    assert_int_equal(lone_next(fixture, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_unopened(
        fixture->store, FAILURE_TIMEOUT, "no store", false, &fixture->effects);
    (void)lone_next(fixture, RECORD_EFFECT_DROP);
    const struct rendezvous_event *told = lone_told(fixture, RENDEZVOUS_EVENT_CONNECTION_LOST);
    assert_string_equal(told->lost.reason, "no store");
    assert_true(told->lost.was_heard);
}

TEST(whether_the_store_was_heard_is_told_with_each_loss) {
    for (int was_heard = 0; was_heard < 2; was_heard++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_CONNECT);
        (void)lone_next(&node, RECORD_EFFECT_OPEN);
        rendezvous_record_store_take_unopened(
            node.store, FAILURE_TIMEOUT, "no store", was_heard != 0, &node.effects);
        (void)lone_next(&node, RECORD_EFFECT_DROP);
        const struct rendezvous_event *told = lone_told(&node, RENDEZVOUS_EVENT_CONNECTION_LOST);
        assert_int_equal(told->lost.was_heard, was_heard != 0);
        lone_tear_down(&node);
    }
}

/* Nobody knows how long a network stays bad. The pauses grow, so that a server which ends every
 * connection is not stormed. */
LONE_NODE_TEST(it_is_tried_until_the_deadline_with_pauses) {
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_CONNECT);
    struct duration pause = lone_next(fixture, RECORD_EFFECT_OPEN)->pause;
    assert_int_equal(pause.nanoseconds, 0);
    for (int attempt = 0; attempt < 1000; attempt++) {
        rendezvous_record_store_take_end(
            fixture->store, FAILURE_DISCONNECTED, "gone", &fixture->effects);
        (void)lone_next(fixture, RECORD_EFFECT_DROP);
        pause = lone_next(fixture, RECORD_EFFECT_OPEN)->pause;
        assert_true(pause.nanoseconds > 0);
    }
    assert_true(pause.nanoseconds >= duration_from_milliseconds(1000).nanoseconds);
    assert_true(pause.nanoseconds <= duration_from_milliseconds(3000).nanoseconds);
}

TEST(a_file_is_not_tried_for_ever) {
    struct lone_node node;
    struct rendezvous_record_store_settings settings = lone_settings;
    settings.is_file = true;
    node = (struct lone_node){.store = rendezvous_record_store_new(&settings)};
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_CONNECT);
    int attempts = 0;
    while (node.looked_at < node.effects.count &&
           node.effects.items[node.looked_at].kind == RECORD_EFFECT_OPEN) {
        node.looked_at++;
        attempts++;
        rendezvous_record_store_take_end(node.store, FAILURE_DISCONNECTED, "gone", &node.effects);
        (void)lone_next(&node, RECORD_EFFECT_DROP);
    }
    assert_in_range(attempts, 2, 100);
    (void)lone_told(&node, RENDEZVOUS_EVENT_CONNECTION_LOST);
    lone_tear_down(&node);
}

TEST(an_end_that_trying_again_would_not_mend_is_no_loss) {
    static const enum failure_code codes[] = {
        FAILURE_PROTOCOL, FAILURE_LIMIT, FAILURE_MALFORMED, FAILURE_INVALID};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct lone_node node;
        lone_set_up(&node);
        lone_ask_kind(&node, RENDEZVOUS_EFFECT_CONNECT);
        (void)lone_next(&node, RECORD_EFFECT_OPEN);
        rendezvous_record_store_take_end(node.store, codes[i], "no store", &node.effects);
        (void)lone_next(&node, RECORD_EFFECT_DROP);
        assert_string_equal(lone_told(&node, RENDEZVOUS_EVENT_BROKEN)->reason, "no store");
        lone_tear_down(&node);
    }
}

LONE_NODE_TEST(answers_to_what_was_asked_on_an_earlier_connection_are_not_looked_at) {
    lone_be_up(fixture, true);
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_FETCH);
    uint64_t count = lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    uint64_t record = lone_sent(fixture, STORE_COMPARE_SET, LONE_RECORD);
    lone_ask(
        fixture, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = {5}});
    (void)lone_next(fixture, RECORD_EFFECT_DROP);
    (void)lone_next(fixture, RECORD_EFFECT_OPEN);
    lone_reply(fixture, record, lone_blob("no record"));
    rendezvous_record_store_take_failure(
        fixture->store, count, FAILURE_CANCELLED, "given up", &fixture->effects);
    lone_expect_no_more(fixture);
}

TEST(a_record_that_cannot_be_spelled_is_told_and_not_sent) {
    struct lone_node node;
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    struct node_identity identity = {.address = "\xff", .pid = 1};
    rendezvous_state_obtain(&record, &identity)->is_waiting = true;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask(&node,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {&record, false}});
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    assert_non_null(strstr(lone_told(&node, RENDEZVOUS_EVENT_BROKEN)->reason, "no UTF-8"));
    lone_tear_down(&node);
}

LONE_NODE_TEST(what_is_asked_meanwhile_does_not_wait_for_all_deletions) {
    lone_be_up(fixture, true);
    rendezvous_record_store_delete(fixture->store, "/a", &fixture->effects);
    rendezvous_record_store_delete(fixture->store, "/b", &fixture->effects);
    uint64_t first = lone_sent(fixture, STORE_DELETE, "/a");
    lone_ask_kind(fixture, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(fixture, STORE_ADD, LONE_OWN "changes");
    lone_expect_no_more(fixture);
    lone_reply(fixture, first, lone_integer(1));
    uint64_t second = lone_sent(fixture, STORE_DELETE, "/b");
    lone_reply(fixture, second, lone_integer(1));
    lone_expect_no_more(fixture);
    rendezvous_record_store_delete(fixture->store, "/c", &fixture->effects);
    (void)lone_sent(fixture, STORE_DELETE, "/c");
}

TEST(nothing_is_deleted_from_a_file_which_would_only_grow_by_it) {
    struct rendezvous_record_store_settings settings = lone_settings;
    settings.is_file = true;
    struct lone_node node = {.store = rendezvous_record_store_new(&settings)};
    lone_be_up(&node, false);
    rendezvous_record_store_delete(node.store, "/key", &node.effects);
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}
