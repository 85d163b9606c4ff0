/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_step.h"
#include "core/store_fixture.h"

/* Values and counters. */

static void a_value_is_what_was_set_last(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/k"), S("v"));
    assert_silent(store);
    assert_value(store, S("/k"), S("v"));
    apply_value(store, 1, STORE_SET, S("/k"), S("a\0\xff long value that outgrows the first"));
    assert_value(store, S("/k"), S("a\0\xff long value that outgrows the first"));
    apply_value(store, 0, STORE_SET, S("/k"), S(""));
    assert_value(store, S("/k"), S(""));
    apply_key(store, 0, STORE_COUNT_KEYS, S(""));
    assert_integer(store, 0, 1);
}

static void a_missing_key_reads_as_empty(void **state) {
    struct store_fixture *store = *state;
    assert_value(store, S("/nope"), S(""));
    apply_key(store, 0, STORE_COUNT_KEYS, S(""));
    assert_integer(store, 0, 0);
}

static void a_shorter_value_stays_in_its_memory(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/k"), S("a value of more than twenty-four bytes"));
    apply_key(store, 0, STORE_GET, S("/k"));
    const uint8_t *place = store->effects.items[0].reply.blob.data;
    size_t memory = store_table_memory(store->table);
    apply_value(store, 0, STORE_SET, S("/k"), S("short"));
    apply_key(store, 0, STORE_GET, S("/k"));
    assert_ptr_equal(store->effects.items[0].reply.blob.data, place);
    assert_int_equal(store_table_memory(store->table), memory);
}

static void a_large_buffer_is_given_back_when_little_is_left_in_it(void **state) {
    struct store_fixture *store = *state;
    uint8_t *large = calloc(1, 100000);
    apply_value(store, 0, STORE_SET, S("/k"), (struct slice){large, 100000});
    assert_true(store_table_memory(store->table) > 100000);
    apply_value(store, 0, STORE_SET, S("/k"), S("short"));
    assert_true(store_table_memory(store->table) < 1000);
    assert_value(store, S("/k"), S("short"));
    free(large);
}

static void compare_set_on_a_missing_key_only_takes_an_empty_expectation(void **state) {
    struct store_fixture *store = *state;
    apply_compare_set(store, 0, S("/cs2"), S("zzz"), S("c"));
    assert_blob(store, 0, S("zzz"));
    apply_keys(store, 0, STORE_CHECK, KEYS(S("/cs2")));
    assert_byte(store, 0, 0, STORE_NOT_READY);
    apply_compare_set(store, 0, S("/cs"), S(""), S("a"));
    assert_blob(store, 0, S("a"));
    apply_compare_set(store, 0, S("/cs"), S("a"), S("b"));
    assert_blob(store, 0, S("b"));
    apply_compare_set(store, 0, S("/cs"), S("zzz"), S("c"));
    assert_blob(store, 0, S("b"));
    apply_compare_set(store, 0, S("/cs"), S(""), S("c"));
    assert_blob(store, 0, S("b"));
}

static void counters_are_decimal_text(void **state) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_ADD, S("/cnt"), 5);
    assert_integer(store, 0, 5);
    apply_number(store, 0, STORE_ADD, S("/cnt"), -7);
    assert_integer(store, 0, -2);
    assert_value(store, S("/cnt"), S("-2"));
    apply_value(store, 0, STORE_SET, S("/cnt"), S(" 12abc"));
    apply_number(store, 0, STORE_ADD, S("/cnt"), 1);
    assert_integer(store, 0, 13);
    assert_value(store, S("/cnt"), S("13"));
}

static void counters_wrap_at_the_ends(void **state) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_ADD, S("/cnt"), INT64_MAX);
    apply_number(store, 0, STORE_ADD, S("/cnt"), 1);
    assert_integer(store, 0, INT64_MIN);
    assert_value(store, S("/cnt"), S("-9223372036854775808"));
    apply_number(store, 0, STORE_ADD, S("/cnt"), -1);
    assert_integer(store, 0, INT64_MAX);
}

static void adding_to_text_closes_and_changes_nothing(void **state) {
    struct store_fixture *store = *state;
    const struct slice bad[] = {S(""), S("abc"), S("9223372036854775808")};
    for (size_t i = 0; i < 3; i++) {
        apply_value(store, 0, STORE_SET, S("/text"), bad[i]);
        apply_number(store, 0, STORE_ADD, S("/text"), 1);
        assert_closed(store, 0, "ADD: the key's value is not a 64-bit decimal number");
        assert_value(store, S("/text"), bad[i]);
    }
}

static void appending_creates_and_extends(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_APPEND, S("/ap"), S("x"));
    assert_silent(store);
    for (int i = 0; i < 100; i++) {
        apply_value(store, 0, STORE_APPEND, S("/ap"), S("yz"));
    }
    apply_key(store, 0, STORE_GET, S("/ap"));
    struct slice value = store->effects.items[0].reply.blob;
    assert_int_equal(value.length, 201);
    assert_memory_equal(value.data, "xyzyz", 5);
    assert_memory_equal(value.data + 196, "zyzyz", 5);
}

static void deleting_says_whether_there_was_a_value(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/m1"), S("A"));
    apply_key(store, 0, STORE_DELETE, S("/m1"));
    assert_integer(store, 0, 1);
    apply_key(store, 0, STORE_DELETE, S("/m1"));
    assert_integer(store, 0, 0);
    assert_int_equal(store_table_memory(store->table), 0);
}

static void several_keys_are_written_and_read_in_order(void **state) {
    struct store_fixture *store = *state;
    const struct slice keys[] = {S("/m1"), S("/m2"), S("/m1")};
    const struct slice values[] = {S("A"), S("BB"), S("last wins")};
    apply(store, 0,
        &(struct store_request){
            .operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 3});
    assert_silent(store);
    apply_keys(store, 0, STORE_MULTI_GET, KEYS(S("/m2"), S("/nope"), S("/m1")));
    const struct store_reply *reply = assert_reply(store, 0, 0, STORE_REPLY_BLOBS);
    assert_int_equal(reply->list.count, 3);
    assert_true(slice_equals(reply->list.items[0], S("BB")));
    assert_int_equal(reply->list.items[1].length, 0);
    assert_true(slice_equals(reply->list.items[2], S("last wins")));
    apply_keys(store, 0, STORE_MULTI_GET, NULL, 0);
    assert_int_equal(assert_reply(store, 0, 0, STORE_REPLY_BLOBS)->list.count, 0);
}

static void keys_with_values_are_counted_and_listed(void **state) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_ADD, S("init/"), 1);
    apply_value(store, 0, STORE_SET, S("/k"), S(""));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/queue"), S("no value"));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/awaited")));
    apply_key(store, 0, STORE_COUNT_KEYS, S(""));
    assert_integer(store, 0, 2);
    apply_key(store, 0, STORE_LIST_KEYS, S(""));
    const struct store_reply *reply = assert_reply(store, 0, 0, STORE_REPLY_KEYS);
    assert_int_equal(reply->list.count, 2);
    assert_true(slice_equals(reply->list.items[0], S("init/")));
    assert_true(slice_equals(reply->list.items[1], S("/k")));
}

static void keys_that_are_hidden_from_a_client_are_not_in_its_list(void **state) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/agents/secret"), S("x"));
    apply_value(store, 0, STORE_SET, S("/worker"), S("x"));
    store->clients[1].hidden_prefix = S("/agents/");
    apply_key(store, 1, STORE_LIST_KEYS, S(""));
    const struct store_reply *reply = assert_reply(store, 0, 1, STORE_REPLY_KEYS);
    assert_int_equal(reply->list.count, 1);
    assert_true(slice_equals(reply->list.items[0], S("/worker")));
    apply_key(store, 0, STORE_LIST_KEYS, S(""));
    assert_int_equal(assert_reply(store, 0, 0, STORE_REPLY_KEYS)->list.count, 2);
}

/* Queues. */

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

/* PyTorch's server leaves the woken client in the list of the queue. There the second item releases
 * the first client from its wait for another key, and the second client waits for ever. */
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

/* Waiting. */

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
    assert_released(store, 4); /* the counter of a barrier is an ordinary value */
    apply_number(store, 1, STORE_BARRIER, S("/b"), 3);
    assert_silent(store);
    apply_number(store, 2, STORE_BARRIER, S("/b"), 3);
    assert_int_equal(store->effects.count, 3);
    assert_byte(store, 0, 2, STORE_STOP_WAITING);
    assert_byte(store, 1, 0, STORE_STOP_WAITING);
    assert_byte(store, 2, 1, STORE_STOP_WAITING);
    assert_value(store, S("/b"), S("3"));
    apply_number(store, 0, STORE_BARRIER, S("/b"), 3);
    assert_released(store, 0); /* the barrier is never reset */
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
    store_test(a_value_is_what_was_set_last),
    store_test(a_missing_key_reads_as_empty),
    store_test(a_shorter_value_stays_in_its_memory),
    store_test(a_large_buffer_is_given_back_when_little_is_left_in_it),
    store_test(compare_set_on_a_missing_key_only_takes_an_empty_expectation),
    store_test(counters_are_decimal_text),
    store_test(counters_wrap_at_the_ends),
    store_test(adding_to_text_closes_and_changes_nothing),
    store_test(appending_creates_and_extends),
    store_test(deleting_says_whether_there_was_a_value),
    store_test(several_keys_are_written_and_read_in_order),
    store_test(keys_with_values_are_counted_and_listed),
    store_test(keys_that_are_hidden_from_a_client_are_not_in_its_list),
    store_test(items_leave_in_the_order_they_came),
    store_test(a_queue_with_items_counts_as_a_key_that_is_there),
    store_test(each_item_releases_one_waiter),
    store_test(a_queue_named_twice_needs_one_item),
    store_test(a_woken_waiter_is_not_woken_again_from_its_next_wait),
    store_test(values_and_queues_of_one_name_do_not_mix),
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

UNIT_TESTS(tests)
