/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store_wait_operations.h"
#include "core/store_fixture.h"

static void assert_released(const struct store_fixture *store, int client) {
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, client, STORE_STOP_WAITING);
}

static void check_tells_whether_all_keys_are_there(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/k"), S(""));
    apply_keys(store, 0, STORE_CHECK, KEYS(S("/k")));
    assert_byte(store, 0, 0, STORE_READY);
    apply_keys(store, 0, STORE_CHECK, KEYS(S("/k"), S("/nope")));
    assert_byte(store, 0, 0, STORE_NOT_READY);
    apply_keys(store, 0, STORE_CHECK, NULL, 0);
    assert_byte(store, 0, 0, STORE_READY);
}

static void a_wait_for_what_is_there_is_answered_at_once(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/k"), S("v"));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/k"), S("/k")));
    assert_released(store, 1);
    apply_keys(store, 1, STORE_WAIT, NULL, 0);
    assert_released(store, 1);
    assert_int_equal(store_table_waiting(store->table), 0);
}

static void a_wait_is_answered_when_the_last_missing_key_is_written(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/there"), S("v"));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/a"), S("/there"), S("/b"), S("/a")));
    assert_silent(store);
    assert_int_equal(store_table_waiting(store->table), 1);
    apply_value(store, 0, STORE_SET, S("/b"), S("1"));
    assert_silent(store);
    apply_value(store, 0, STORE_SET, S("/a"), S("1"));
    assert_released(store, 1);
    assert_int_equal(store_table_waiting(store->table), 0);
    apply_value(store, 0, STORE_SET, S("/a"), S("2"));
    assert_silent(store);
}

static void a_key_that_was_seen_may_go_again(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/before"), S("1"));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/a"), S("/b"), S("/before")));
    apply_key(store, 0, STORE_DELETE, S("/before"));
    apply_value(store, 0, STORE_SET, S("/a"), S("1"));
    apply_key(store, 0, STORE_DELETE, S("/a"));
    apply_value(store, 0, STORE_SET, S("/b"), S("1"));
    assert_released(store, 1);
}

static void every_kind_of_write_releases(void **state) {
    struct store_fixture *store = *state;
    const struct slice key = S("/k");
    const struct slice value = S("1");
    const struct store_request writes[] = {
        {.operation = STORE_SET, .key = key, .value = value},
        {.operation = STORE_APPEND, .key = key, .value = value},
        {.operation = STORE_MULTI_SET, .keys = &key, .values = &value, .count = 1},
    };
    for (size_t i = 0; i < 3; i++) {
        apply_keys(store, 1, STORE_WAIT, KEYS(S("/k")));
        apply(store, 0, &writes[i]);
        assert_released(store, 1);
        apply_key(store, 0, STORE_DELETE, key);
    }
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/k")));
    apply_number(store, 0, STORE_ADD, key, 1);
    assert_int_equal(store->effects.count, 2);
    assert_reply(store, 0, 0, STORE_REPLY_INTEGER);
    assert_byte(store, 1, 1, STORE_STOP_WAITING);
}

static void a_compare_set_releases_only_when_it_stored(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/cs")));
    apply_compare_set(store, 0, S("/cs"), S("expected"), S("new"));
    assert_int_equal(store->effects.count, 1);
    apply_compare_set(store, 0, S("/cs"), S(""), S("new"));
    assert_int_equal(store->effects.count, 2);
    assert_byte(store, 1, 1, STORE_STOP_WAITING);
}

static void waiters_are_released_in_the_order_they_came(void **state) {
    struct store_fixture *store = *state;
    const int order[] = {3, 0, 5, 1};
    for (size_t i = 0; i < 4; i++) {
        apply_keys(store, order[i], STORE_WAIT, KEYS(S("/k")));
    }
    apply_value(store, 6, STORE_SET, S("/k"), S("1"));
    assert_int_equal(store->effects.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_byte(store, i, order[i], STORE_STOP_WAITING);
    }
}

static void one_multi_set_releases_each_waiter_once(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/a"), S("/b")));
    apply_keys(store, 2, STORE_WAIT, KEYS(S("/b")));
    const struct slice keys[] = {S("/a"), S("/b"), S("/a")};
    const struct slice values[] = {S("1"), S("2"), S("3")};
    apply(store, 0,
        &(struct store_request){
            .operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 3});
    assert_int_equal(store->effects.count, 2);
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
    assert_byte(store, 1, 2, STORE_STOP_WAITING);
}

static void a_newer_wait_replaces_the_older(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/old")));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/new")));
    assert_int_equal(store_table_waiting(store->table), 1);
    apply_value(store, 0, STORE_SET, S("/old"), S("1"));
    assert_silent(store);
    apply_value(store, 0, STORE_SET, S("/new"), S("1"));
    assert_released(store, 1);
}

static void a_client_that_waits_is_served_meanwhile(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/k")));
    apply(store, 1, &(struct store_request){.operation = STORE_PING, .nonce = 9});
    assert_int_equal(assert_reply(store, 0, 1, STORE_REPLY_NONCE)->nonce, 9);
    apply_value(store, 1, STORE_SET, S("/k"), S("by itself"));
    assert_released(store, 1);
}

static void a_cancelled_wait_is_over(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/a"), S("/b")));
    apply(store, 1, &(struct store_request){.operation = STORE_CANCEL_WAIT});
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 1, STORE_WAIT_CANCELLED);
    assert_int_equal(store_table_memory(store->table), 0);
    apply_value(store, 0, STORE_SET, S("/a"), S("1"));
    apply_value(store, 0, STORE_SET, S("/b"), S("1"));
    assert_silent(store);
}

static void cancelling_nothing_is_answered_too(void **state) {
    struct store_fixture *store = *state;
    apply(store, 1, &(struct store_request){.operation = STORE_CANCEL_WAIT});
    assert_byte(store, 0, 1, STORE_WAIT_CANCELLED);
}

static void a_barrier_releases_everybody_when_the_last_arrives(void **state) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_BARRIER, S("/b"), 3);
    assert_silent(store);
    apply_keys(store, 4, STORE_WAIT, KEYS(S("/b")));
    assert_released(store, 4); /* the counter is a value like any other */
    apply_number(store, 1, STORE_BARRIER, S("/b"), 3);
    assert_silent(store);
    apply_number(store, 2, STORE_BARRIER, S("/b"), 3);
    assert_int_equal(store->effects.count, 3);
    assert_byte(store, 0, 2, STORE_STOP_WAITING);
    assert_byte(store, 1, 0, STORE_STOP_WAITING);
    assert_byte(store, 2, 1, STORE_STOP_WAITING);
    assert_value(store, S("/b"), S("3"));
    apply_number(store, 0, STORE_BARRIER, S("/b"), 3);
    assert_released(store, 0); /* never reset */
}

static void an_incomplete_barrier_does_not_release_those_who_wait_for_its_key(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 4, STORE_WAIT, KEYS(S("/b")));
    apply_number(store, 0, STORE_BARRIER, S("/b"), 2);
    assert_silent(store);
    apply_number(store, 1, STORE_BARRIER, S("/b"), 2);
    assert_int_equal(store->effects.count, 3);
    assert_byte(store, 1, 4, STORE_STOP_WAITING);
}

static void a_barrier_given_up_stays_counted(void **state) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_BARRIER, S("/b2"), 2);
    apply(store, 0, &(struct store_request){.operation = STORE_CANCEL_WAIT});
    assert_byte(store, 0, 0, STORE_WAIT_CANCELLED);
    assert_value(store, S("/b2"), S("1"));
    apply_number(store, 1, STORE_BARRIER, S("/b2"), 2);
    assert_released(store, 1);
}

static void a_barrier_of_nobody_is_passed(void **state) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_BARRIER, S("/b"), 0);
    assert_released(store, 0);
    apply_number(store, 0, STORE_BARRIER, S("/c"), -5);
    assert_released(store, 0);
}

static void a_barrier_on_text_closes_and_changes_nothing(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/text"), S("abc"));
    apply_number(store, 0, STORE_BARRIER, S("/text"), 1);
    assert_closed(store, 0, "BARRIER: the key's value is not a 64-bit decimal number");
    assert_value(store, S("/text"), S("abc"));
}

static const struct CMUnitTest tests[] = {
    store_test(check_tells_whether_all_keys_are_there),
    store_test(a_wait_for_what_is_there_is_answered_at_once),
    store_test(a_wait_is_answered_when_the_last_missing_key_is_written),
    store_test(a_key_that_was_seen_may_go_again),
    store_test(every_kind_of_write_releases),
    store_test(a_compare_set_releases_only_when_it_stored),
    store_test(waiters_are_released_in_the_order_they_came),
    store_test(one_multi_set_releases_each_waiter_once),
    store_test(a_newer_wait_replaces_the_older),
    store_test(a_client_that_waits_is_served_meanwhile),
    store_test(a_cancelled_wait_is_over),
    store_test(cancelling_nothing_is_answered_too),
    store_test(a_barrier_releases_everybody_when_the_last_arrives),
    store_test(an_incomplete_barrier_does_not_release_those_who_wait_for_its_key),
    store_test(a_barrier_given_up_stays_counted),
    store_test(a_barrier_of_nobody_is_passed),
    store_test(a_barrier_on_text_closes_and_changes_nothing),
};

TEST_MAIN(tests)
