/* SPDX-License-Identifier: BSD-3-Clause */
/* One node alone, with a test that answers its requests: which request uses which lane, and how the
 * connection ends. */
#include "record_fixture.h"

/* A node may leave as soon as its last write is answered. So the answer comes only when the
 * watchers' key has been sent. */
TEST(a_write_is_won_when_its_watchers_are_told) {
    struct lone_node node;
    struct rendezvous_state record = {.round = 1};
    CLEARED_BY(bytes_clear) struct bytes text = {0};
    assert_int_equal(rendezvous_state_write_text(&record, &text), FAILURE_NONE);
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask(&node,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {&record, false}});
    lone_reply(&node, lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD),
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = bytes_slice(&text)});
    lone_reply(&node, lone_sent(&node, STORE_ADD, LONE_OWN "changes"), lone_integer(3));
    uint64_t tag = lone_sent(&node, STORE_SET, LONE_OWN "changed/3");
    lone_expect_no_more(&node);
    lone_reply(&node, tag, lone_none());
    assert_true(lone_told(&node, RENDEZVOUS_EVENT_WRITTEN)->written.has_won);
    lone_tear_down(&node);
}

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

TEST(a_name_takes_the_place_of_an_earlier_one) {
    struct lone_node node;
    struct rendezvous_effect present = {.kind = RENDEZVOUS_EFFECT_PRESENT};
    lone_set_up(&node);
    lone_be_up(&node, true);
    node_identity_init(&present.present.identity, "host", 12, 34);
    lone_ask(&node, present);
    (void)lone_sent(&node, STORE_SET, LONE_OWN "presence/host_12_34");
    present.present.identity.local_id = 35;
    present.present.has_finished = true;
    lone_ask(&node, present);
    (void)lone_sent(&node, STORE_DELETE, LONE_OWN "presence/host_12_34");
    const struct record_sending *send = &lone_next(&node, RECORD_EFFECT_SEND)->send;
    assert_true(
        slice_equals(send->own.request.key, slice_from_string(LONE_OWN "presence/host_12_35")));
    assert_true(slice_equals(send->own.request.value, slice_from_string("finished")));
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(&node, STORE_SET, LONE_OWN "presence/host_12_35");
    (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}

TEST(nobody_is_present_where_presence_is_not_served) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, false);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_PRESENT);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}

TEST(what_waits_has_a_lane_of_its_own_and_all_the_time) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    const struct record_sending *send = &lone_next(&node, RECORD_EFFECT_SEND)->send;
    assert_int_equal(send->lane, RENDEZVOUS_LANE_ASKER);
    assert_int_equal(send->timeout.nanoseconds, lone_settings.answer_timeout.nanoseconds);
    lone_reply(&node, send->tag, lone_integer(0));
    send = &lone_next(&node, RECORD_EFFECT_SEND)->send;
    assert_int_equal(send->lane, RENDEZVOUS_LANE_WATCHER);
    assert_int_equal(send->timeout.nanoseconds, DURATION_FOREVER.nanoseconds);
    lone_ask(
        &node, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {3, 1}});
    send = &lone_next(&node, RECORD_EFFECT_SEND)->send;
    assert_int_equal(send->lane, RENDEZVOUS_LANE_WAITER);
    assert_int_equal(send->timeout.nanoseconds, DURATION_FOREVER.nanoseconds);
    lone_tear_down(&node);
}

TEST(without_a_connection_nothing_is_asked) {
    struct lone_node node;
    lone_set_up(&node);
    for (int kind = RENDEZVOUS_EFFECT_CONNECT + 1; kind < RENDEZVOUS_EFFECT_KIND_COUNT; kind++) {
        lone_ask_kind(&node, (enum rendezvous_effect_kind)kind);
    }
    rendezvous_record_store_delete(node.store, "/key", &node.effects);
    rendezvous_record_store_cancel_waits(node.store, &node.effects);
    rendezvous_record_store_disconnect(node.store, &node.effects);
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}

TEST(waits_are_not_called_off_before_there_are_any) {
    struct lone_node node;
    lone_set_up(&node);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_CONNECT);
    (void)lone_next(&node, RECORD_EFFECT_OPEN);
    rendezvous_record_store_cancel_waits(node.store, &node.effects);
    lone_expect_no_more(&node);
    lone_tear_down(&node);
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
TEST(a_connection_that_ends_too_early_is_tried_again) {
    struct lone_node node;
    lone_set_up(&node);
    uint64_t greeting = lone_connect(&node, true);
    rendezvous_record_store_take_failure(
        node.store, greeting, FAILURE_TIMEOUT, "no answer", &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    assert_int_equal(lone_next(&node, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_end(
        node.store, FAILURE_DISCONNECTED, "connection reset", &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    assert_int_equal(lone_next(&node, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_end(node.store, FAILURE_TIMEOUT, "silent", &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    assert_int_equal(lone_next(&node, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_unopened(
        node.store, FAILURE_TIMEOUT, "no store", false, &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    const struct rendezvous_event *told = lone_told(&node, RENDEZVOUS_EVENT_CONNECTION_LOST);
    assert_string_equal(told->lost.reason, "no store");
    assert_true(told->lost.was_heard);
    lone_tear_down(&node);
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
TEST(it_is_tried_until_the_deadline_with_pauses) {
    struct lone_node node;
    lone_set_up(&node);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_CONNECT);
    struct duration pause = lone_next(&node, RECORD_EFFECT_OPEN)->pause;
    assert_int_equal(pause.nanoseconds, 0);
    for (int attempt = 0; attempt < 1000; attempt++) {
        rendezvous_record_store_take_end(node.store, FAILURE_DISCONNECTED, "gone", &node.effects);
        (void)lone_next(&node, RECORD_EFFECT_DROP);
        pause = lone_next(&node, RECORD_EFFECT_OPEN)->pause;
        assert_true(pause.nanoseconds > 0);
    }
    assert_true(pause.nanoseconds >= duration_from_milliseconds(1000).nanoseconds);
    assert_true(pause.nanoseconds <= duration_from_milliseconds(3000).nanoseconds);
    lone_tear_down(&node);
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

TEST(a_request_that_fails_costs_the_connection) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    rendezvous_record_store_delete(node.store, "/key", &node.effects);
    rendezvous_record_store_take_failure(node.store, lone_sent(&node, STORE_DELETE, "/key"),
        FAILURE_TIMEOUT, "no answer", &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    assert_true(lone_told(&node, RENDEZVOUS_EVENT_CONNECTION_LOST)->lost.is_silent);
    lone_tear_down(&node);
}

TEST(answers_to_what_was_asked_on_an_earlier_connection_are_not_looked_at) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_FETCH);
    uint64_t count = lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    uint64_t record = lone_sent(&node, STORE_COMPARE_SET, LONE_RECORD);
    lone_ask(&node, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = {5}});
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    (void)lone_next(&node, RECORD_EFFECT_OPEN);
    lone_reply(&node, record, lone_blob("no record"));
    rendezvous_record_store_take_failure(
        node.store, count, FAILURE_CANCELLED, "given up", &node.effects);
    lone_expect_no_more(&node);
    lone_tear_down(&node);
}

TEST(who_disconnects_is_told_nothing) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    rendezvous_record_store_disconnect(node.store, &node.effects);
    (void)lone_next(&node, RECORD_EFFECT_DROP);
    lone_expect_no_more(&node);
    assert_false(rendezvous_record_store_is_up(node.store));
    lone_tear_down(&node);
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

TEST(what_is_asked_meanwhile_does_not_wait_for_all_deletions) {
    struct lone_node node;
    lone_set_up(&node);
    lone_be_up(&node, true);
    rendezvous_record_store_delete(node.store, "/a", &node.effects);
    rendezvous_record_store_delete(node.store, "/b", &node.effects);
    uint64_t first = lone_sent(&node, STORE_DELETE, "/a");
    lone_ask_kind(&node, RENDEZVOUS_EFFECT_BEAT);
    (void)lone_sent(&node, STORE_ADD, LONE_OWN "changes");
    lone_expect_no_more(&node);
    lone_reply(&node, first, lone_integer(1));
    uint64_t second = lone_sent(&node, STORE_DELETE, "/b");
    lone_reply(&node, second, lone_integer(1));
    lone_expect_no_more(&node);
    rendezvous_record_store_delete(node.store, "/c", &node.effects);
    (void)lone_sent(&node, STORE_DELETE, "/c");
    lone_tear_down(&node);
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
