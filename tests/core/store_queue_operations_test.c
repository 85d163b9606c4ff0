/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store_queue_operations.h"
#include "core/store_fixture.h"

static void assert_pop(
    const struct store_fixture *store, int client, int64_t length, struct slice front) {
    assert_int_equal(store->effects.count, 1);
    const struct store_reply *reply = assert_reply(store, 0, client, STORE_REPLY_POP);
    assert_int_equal(reply->pop.length, length);
    assert_true(slice_equals(reply->pop.front, front));
}

static void items_leave_in_the_order_they_came(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    assert_silent(store);
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S(""));
    apply_key(store, 1, STORE_QUEUE_LENGTH, S("/q"));
    assert_integer(store, 1, 2);
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 2, S("e1"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e3"));
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 2, S(""));
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 1, S("e3"));
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 0, S(""));
    apply_key(store, 1, STORE_QUEUE_LENGTH, S("/q"));
    assert_integer(store, 1, 0);
    assert_int_equal(store_table_memory(store->table), 0);
}

static void a_queue_with_items_counts_as_a_key_that_is_there(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    apply_keys(store, 1, STORE_CHECK, KEYS(S("/q")));
    assert_byte(store, 0, 1, STORE_READY);
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q")));
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    apply_keys(store, 1, STORE_CHECK, KEYS(S("/q")));
    assert_byte(store, 0, 1, STORE_NOT_READY);
}

static void each_item_releases_one_waiter(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q")));
    apply_keys(store, 2, STORE_WAIT, KEYS(S("/q")));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e2"));
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 2, STORE_STOP_WAITING);
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e3"));
    assert_silent(store);
}

static void a_queue_named_twice_needs_one_item(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q"), S("/a"), S("/q")));
    apply_value(store, 0, STORE_SET, S("/a"), S("1"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
}

/* PyTorch's own server leaves the woken waiter in the queue's list: the second item then releases
 * the first client from the wait for something else, and the second waits for ever. */
static void a_woken_waiter_is_not_woken_again_from_its_next_wait(void **state) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q")));
    apply_keys(store, 2, STORE_WAIT, KEYS(S("/q")));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/other")));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e2"));
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 2, STORE_STOP_WAITING);
    assert_int_equal(store_table_waiting(store->table), 1);
}

static void values_and_queues_of_one_name_do_not_mix(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/x"), S("item"));
    apply_value(store, 0, STORE_SET, S("/x"), S("value"));
    apply_key(store, 0, STORE_DELETE, S("/x"));
    assert_integer(store, 0, 1);
    assert_value(store, S("/x"), S(""));
    apply_key(store, 0, STORE_QUEUE_LENGTH, S("/x"));
    assert_integer(store, 0, 1);
}

static const struct CMUnitTest tests[] = {
    store_test(items_leave_in_the_order_they_came),
    store_test(a_queue_with_items_counts_as_a_key_that_is_there),
    store_test(each_item_releases_one_waiter),
    store_test(a_queue_named_twice_needs_one_item),
    store_test(a_woken_waiter_is_not_woken_again_from_its_next_wait),
    store_test(values_and_queues_of_one_name_do_not_mix),
};

TEST_MAIN(tests)
