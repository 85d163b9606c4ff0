/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_limits.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

static struct store_limits limits_for(uint64_t bytes, int percent, uint64_t available) {
    return store_memory_limits(
        &(struct store_memory){.bytes = bytes, .percent = percent}, available);
}

static void a_store_takes_a_quarter_but_not_more_than_the_default(void **state) {
    (void)state;
    assert_int_equal(limits_for(0, 0, 512 * MIB).memory_bytes, 128 * MIB);
    assert_int_equal(limits_for(0, 0, 2000 * GIB).memory_bytes, STORE_LIMITS_DEFAULT.memory_bytes);
    assert_int_equal(limits_for(0, 0, 0).memory_bytes, MIB);
}

static void what_was_asked_for_holds(void **state) {
    (void)state;
    assert_int_equal(limits_for(100 * GIB, 0, GIB).memory_bytes, 100 * GIB);
    assert_int_equal(limits_for(0, 50, 100 * GIB).memory_bytes, 50 * GIB);
    assert_int_equal(limits_for(0, 1, 50 * MIB).memory_bytes, MIB);
}

static void requests_and_replies_are_limited_where_memory_is_small(void **state) {
    (void)state;
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

static void the_reserve_is_a_small_part(void **state) {
    (void)state;
    assert_int_equal(store_memory_reserve(16 * MIB), MIB);
    assert_int_equal(store_memory_reserve(100 * GIB), 64 * MIB);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_store_takes_a_quarter_but_not_more_than_the_default),
    cmocka_unit_test(what_was_asked_for_holds),
    cmocka_unit_test(requests_and_replies_are_limited_where_memory_is_small),
    cmocka_unit_test(the_reserve_is_a_small_part),
};

UNIT_TESTS(tests)
