/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_request.h"

TEST(operations_have_the_numbers_and_names_of_pytorch) {
    assert_string_equal(store_operation_name((enum store_operation)0), "VALIDATE");
    assert_string_equal(store_operation_name((enum store_operation)7), "GETNUMKEYS");
    assert_string_equal(store_operation_name((enum store_operation)13), "PING");
    assert_string_equal(store_operation_name((enum store_operation)18), "BARRIER");
    assert_string_equal(store_operation_name((enum store_operation)19), "unknown");
}

TEST(every_operation_knows_its_reply) {
    assert_int_equal(store_operation_reply_kind(STORE_SET), STORE_REPLY_NONE);
    assert_int_equal(store_operation_reply_kind(STORE_COMPARE_SET), STORE_REPLY_BLOB);
    assert_int_equal(store_operation_reply_kind(STORE_BARRIER), STORE_REPLY_BYTE);
    assert_int_equal(store_operation_reply_kind(STORE_LIST_KEYS), STORE_REPLY_KEYS);
    assert_int_equal(store_operation_reply_kind((enum store_operation)19), STORE_REPLY_NONE);
}

/* Store counter. */

static int64_t parsed(const char *text) {
    int64_t value = 0;
    assert_int_equal(store_counter_parse(slice_from_string(text), &value), FAILURE_NONE);
    return value;
}

TEST(blanks_signs_and_trailing_junk_are_accepted) {
    assert_int_equal(parsed("12abc"), 12);
    assert_int_equal(parsed(" 7"), 7);
    assert_int_equal(parsed("\t\n\v\f\r+5"), 5);
    assert_int_equal(parsed("-0x"), 0);
    assert_int_equal(parsed("-12"), -12);
    assert_int_equal(parsed("00000000000000000000000000000009"), 9);
    assert_int_equal(parsed("9223372036854775807"), INT64_MAX);
    assert_int_equal(parsed("-9223372036854775808"), INT64_MIN);
}

TEST(text_without_a_number_leaves_the_result_alone) {
    const char *const bad[] = {"", " ", "-", "+-1", "abc", "- 1"};
    int64_t value = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(store_counter_parse(slice_from_string(bad[i]), &value), FAILURE_MALFORMED);
    }
    assert_int_equal(store_counter_parse((struct slice){0}, &value), FAILURE_MALFORMED);
    assert_int_equal(
        store_counter_parse(slice_from_string("9223372036854775808"), &value), FAILURE_LIMIT);
    assert_int_equal(
        store_counter_parse(slice_from_string("-9223372036854775809"), &value), FAILURE_LIMIT);
    assert_int_equal(value, 77);
}

TEST(formatted_counters_read_back) {
    const int64_t values[] = {0, 1, -1, 10, -2, INT64_MAX, INT64_MIN};
    const char *const texts[] = {
        "0", "1", "-1", "10", "-2", "9223372036854775807", "-9223372036854775808"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t buffer[STORE_COUNTER_SIZE];
        struct slice text = store_counter_format(values[i], buffer);
        assert_true(slice_equals(text, slice_from_string(texts[i])));
    }
}

/* Store memory. */

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

static struct store_limits limits_for(uint64_t bytes, int percent, uint64_t available) {
    return store_memory_limits(
        &(struct store_memory){.bytes = bytes, .percent = percent}, available);
}

TEST(a_store_takes_a_quarter_but_not_more_than_the_default) {
    assert_int_equal(limits_for(0, 0, 512 * MIB).memory_bytes, 128 * MIB);
    assert_int_equal(limits_for(0, 0, 2000 * GIB).memory_bytes, STORE_LIMITS_DEFAULT.memory_bytes);
    assert_int_equal(limits_for(0, 0, 0).memory_bytes, MIB);
}

TEST(what_was_asked_for_holds) {
    assert_int_equal(limits_for(100 * GIB, 0, GIB).memory_bytes, 100 * GIB);
    assert_int_equal(limits_for(0, 50, 100 * GIB).memory_bytes, 50 * GIB);
    assert_int_equal(limits_for(0, 1, 50 * MIB).memory_bytes, MIB);
}

TEST(requests_and_replies_are_limited_where_memory_is_small) {
    struct store_limits small = limits_for(128 * MIB, 0, GIB);
    assert_int_equal(small.request_bytes, 32 * MIB);
    assert_int_equal(small.queued_reply_bytes, 32 * MIB);
    struct store_limits smallest = limits_for(MIB, 0, GIB);
    assert_int_equal(smallest.queued_reply_bytes, 16 * MIB);
    assert_true(smallest.queued_reply_bytes > smallest.value_bytes);
    struct store_limits large = limits_for(100 * GIB, 0, GIB);
    assert_int_equal(large.request_bytes, STORE_LIMITS_DEFAULT.request_bytes);
    assert_int_equal(large.queued_reply_bytes, STORE_LIMITS_DEFAULT.queued_reply_bytes);
}

/* Store descriptors. */

TEST(each_node_needs_a_descriptor_for_each_connection) {
    assert_int_equal(store_descriptors_needed(0, 3, 0), STORE_DESCRIPTORS_OWN);
    assert_int_equal(store_descriptors_needed(1000, 3, 50), STORE_DESCRIPTORS_OWN + 3050);
}

TEST(a_limit_serves_as_many_nodes_as_need_it) {
    for (uint64_t nodes = 0; nodes < 100; nodes++) {
        uint64_t limit = store_descriptors_needed(nodes, 3, 16);
        assert_int_equal(store_descriptors_nodes(limit, 3, 16), nodes);
        assert_int_equal(store_descriptors_nodes(limit + 2, 3, 16), nodes);
    }
}

TEST(a_limit_below_what_the_agent_itself_needs_serves_nobody) {
    assert_int_equal(store_descriptors_nodes(0, 3, 16), 0);
    assert_int_equal(store_descriptors_nodes(STORE_DESCRIPTORS_OWN, 3, 16), 0);
}

TEST(what_the_workers_take_is_kept_from_clients) {
    for (uint64_t workers = 1; workers < 20; workers++) { /* with 13 open for each, seen */
        assert_true(store_descriptors_for_workers(workers) >= 13 * workers + 32);
    }
    assert_int_equal(store_descriptors_kept(100, 1024), 100);
    assert_int_equal(store_descriptors_kept(100, UINT64_MAX), 100);
}

TEST(clients_are_served_under_any_limit) {
    for (uint64_t limit = 0; limit < 2000; limit++) {
        assert_true(store_descriptors_kept(UINT32_MAX, limit) <= limit / 2);
        assert_true(store_descriptors_unproven(UINT32_MAX, limit) <= limit / 4);
    }
}

TEST(all_nodes_may_prove_themselves_at_once_even_from_one_address) {
    for (uint64_t nodes = 1; nodes < 3000; nodes *= 2) {
        assert_true(
            store_descriptors_unproven(nodes, UINT64_MAX) / 2 >= nodes * STORE_DESCRIPTORS_OF_NODE);
    }
}
