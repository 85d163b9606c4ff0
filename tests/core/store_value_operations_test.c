/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store_value_operations.h"
#include "core/store_fixture.h"

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
};

TEST_MAIN(tests)
