/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that other programs wrote, and stores that answer wrongly. */
#include "record_fixture.h"

#include "wire/rendezvous/rendezvous_record_store.h"

static void expect_broken(struct lone_node *node, const char *part) {
    (void)lone_next(node, RECORD_EFFECT_DROP);
    assert_non_null(strstr(lone_told(node, RENDEZVOUS_EVENT_BROKEN)->reason, part));
    assert_false(rendezvous_record_store_is_up(node->store));
}

#define OTHER_PROTOCOL                                                                             \
    "job 'job' at this store was begun by muster 9.1, which speaks version 2 of Muster's "         \
    "protocol, and this is muster " MUSTER_VERSION ", which speaks version 1 of Muster's "         \
    "protocol; use one version of Muster on all nodes of a job"

TEST(another_protocol_is_refused_and_the_server_has_heard_of_it) {
    struct lone_node node;
    lone_set_up(&node);
    lone_reply(&node, lone_ask_protocol(&node, true), lone_blob("2 muster 9.1"));
    const struct store_request *said = &node.effects.items[node.looked_at].send.own.request;
    struct slice refused = slice_from_string(LONE_OWN "presence/refused/");
    assert_int_equal(said->operation, STORE_SET);
    assert_true(slice_starts_with(said->key, refused));
    assert_true(slice_equals(said->value, slice_from_string("1 muster " MUSTER_VERSION)));
    lone_reply(&node, lone_next(&node, RECORD_EFFECT_SEND)->send.tag, lone_none());
    lone_reply(
        &node, lone_sent(&node, STORE_CHECK, LONE_OWN "presence/served"), lone_byte(STORE_READY));
    expect_broken(&node, OTHER_PROTOCOL);
    lone_tear_down(&node);
}

TEST(another_protocol_is_refused_by_a_server_that_tells_nobody) {
    struct lone_node node;
    lone_set_up(&node);
    lone_reply(&node, lone_ask_protocol(&node, false), lone_blob("2 muster 9.1"));
    expect_broken(&node, OTHER_PROTOCOL);
    lone_tear_down(&node);
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

TEST(a_node_that_is_refused_may_be_dropped_before_the_server_has_heard) {
    struct lone_node node;
    lone_set_up(&node);
    lone_reply(&node, lone_ask_protocol(&node, true), lone_blob("2 muster 9.1"));
    rendezvous_record_store_disconnect(node.store, &node.effects);
    lone_tear_down(&node);
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

TEST(a_record_that_makes_no_sense_is_named) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD), lone_blob("no record"));
    expect_broken(&node, "the record of job 'job' in the store (key torch.rendezvous.job) cannot");
    lone_tear_down(&node);
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

TEST(a_counter_that_was_deleted_counts_on) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(7));
    (void)lone_sent(&node, STORE_WAIT, LONE_OWN "changed/8");
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(2));
    assert_int_equal(node.effects.items[node.looked_at].send.own.request.number, 5);
    uint64_t counting = lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    (void)lone_told(&node, RENDEZVOUS_EVENT_CHANGED);
    lone_reply(&node, counting, lone_integer(7));
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}

/* The watcher's lane may be faster than the one on which the count was asked before. */
TEST(a_count_from_before_the_last_change_is_no_deleted_counter) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(7));
    uint64_t change = lone_sent(&node, STORE_WAIT, LONE_OWN "changed/8");
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    uint64_t count = lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_reply(&node, change, lone_byte(STORE_STOP_WAITING));
    (void)lone_told(&node, RENDEZVOUS_EVENT_CHANGED);
    lone_reply(&node, count, lone_integer(7));
    (void)lone_sent(&node, STORE_WAIT, LONE_OWN "changed/9");
    lone_expect_no_more(&node);
    lone_tear_down(&node);
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

TEST(an_answer_of_another_kind_ends_it) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_blob("7"));
    expect_broken(&node, "the store gave no valid answer to ADD");
    lone_tear_down(&node);
}

TEST(a_wait_that_the_store_calls_off_ends_it) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask(
        &node, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {3, 1}});
    lone_reply(&node, lone_sent(&node, STORE_WAIT, LONE_RECORD ".3/muster/roll/0"),
        lone_byte(STORE_WAIT_CANCELLED));
    expect_broken(&node, "the store gave no valid answer to WAIT");
    lone_tear_down(&node);
}

TEST(a_record_that_is_too_long_is_named_and_another_reply_is_not) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    uint64_t count = lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    uint64_t record = lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD);
    rendezvous_record_store_take_failure(
        node.store, record, FAILURE_LIMIT, "too long", &node.effects);
    expect_broken(&node, "(key torch.rendezvous.job) cannot be used: too long;");
    rendezvous_record_store_take_failure(
        node.store, count, FAILURE_LIMIT, "too long", &node.effects);
    lone_expect_no_more(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    rendezvous_record_store_take_failure(node.store,
        lone_sent(&node, STORE_ADD, LONE_OWN "changes"), FAILURE_LIMIT, "too long", &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    assert_string_equal(lone_told(&node, RENDEZVOUS_EVENT_BROKEN)->reason, "too long");
    lone_tear_down(&node);
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

/* Upstream's Python skips characters outside the base64 alphabet. */
TEST(a_record_with_a_nul_between_its_letters_can_be_replaced) {
    struct lone_node node;
    CLEARED_BY(bytes_clear) struct bytes text = {0};
    struct rendezvous_state record = {.round = 6};
    assert_int_equal(bytes_append(&text, "", 1), FAILURE_NONE);
    assert_int_equal(rendezvous_state_write_text(&record, &text), FAILURE_NONE);
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD),
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = bytes_slice(&text)});
    assert_int_equal(lone_told(&node, RENDEZVOUS_EVENT_RECORD)->state->round, 6);
    lone_ask(&node,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {.state = &record}});
    const struct record_sending *send = &lone_next(&node, RECORD_EFFECT_SEND)->send;
    assert_true(slice_equals(send->own.request.expected, bytes_slice(&text)));
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

/* It hears of its host, and reads the record itself. */
TEST(a_node_that_only_follows_watches_the_record) {
    struct lone_node node;
    (void)follow_up(&node);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(7));
    (void)lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD);
    (void)lone_sent(&node, STORE_WAIT, LONE_OWN "changed/8");
    lone_tear_down(&node);
}

TEST(who_has_no_successor_is_told_nothing_of_one) {
    struct lone_node node;
    lone_reply(&node, delegate_up(&node), item("moved"));
    expect_broken(&node, "has told this node what makes no sense");
    lone_tear_down(&node);
}

TEST(a_standing_that_makes_no_sense_ends_it) {
    struct lone_node node;
    lone_reply(&node, delegate_up(&node), item("standing 1"));
    expect_broken(&node, "has told this node what makes no sense");
    lone_tear_down(&node);
}

/* A host answers when there is an item. Who asked on would ask for ever. */
TEST(no_standing_at_all_ends_it) {
    struct lone_node node;
    lone_reply(&node, delegate_up(&node), item(""));
    expect_broken(&node, "has told this node what makes no sense");
    lone_tear_down(&node);
}
