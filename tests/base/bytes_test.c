/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"

TEST_OF(bytes, append_beyond_the_ceiling_changes_nothing, bytes_init(&fixture, 4), bytes_clear) {
    assert_int_equal(bytes_append(fixture, "abc", 3), FAILURE_NONE);
    assert_int_equal(bytes_append(fixture, "de", 2), FAILURE_LIMIT);
    assert_int_equal(fixture->length, 3);
}

TEST(absurd_length_is_refused_before_allocation) {
    struct bytes bytes;
    bytes_init(&bytes, 1 << 20);
    assert_int_equal(bytes_reserve(&bytes, SIZE_MAX), FAILURE_LIMIT);
    assert_null(bytes.data);
}

TEST_OF(
    bytes, a_buffer_grows_to_a_capacity_and_never_shrinks, bytes_init(&fixture, 10), bytes_clear) {
    assert_int_equal(bytes_grow(fixture, 11), FAILURE_LIMIT);
    assert_int_equal(bytes_grow(fixture, 7), FAILURE_NONE);
    assert_int_equal(bytes_append(fixture, "1234567", 7), FAILURE_NONE);
    assert_int_equal(fixture->capacity, 7);
    assert_int_equal(bytes_grow(fixture, 3), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(fixture), slice_from_string("1234567")));
}

TEST(consuming_keeps_the_rest) {
    CLEARED_BY(bytes_clear) struct bytes bytes = {0};
    assert_int_equal(bytes_append(&bytes, "hello", 5), FAILURE_NONE);
    bytes_consume(&bytes, 2);
    assert_true(slice_equals(bytes_slice(&bytes), slice_from_string("llo")));
    bytes_consume(&bytes, 99);
    assert_int_equal(bytes.length, 0);
}

TEST(a_slice_starts_with_a_shorter_one) {
    assert_true(slice_starts_with(slice_from_string("abc"), slice_from_string("ab")));
    assert_false(slice_starts_with(slice_from_string("a"), slice_from_string("ab")));
}

TEST(the_rest_of_a_slice_begins_where_it_is_told) {
    struct slice whole = slice_from_string("abc");
    assert_true(slice_equals(slice_from(whole, 1), slice_from_string("bc")));
    assert_int_equal(slice_from(whole, 3).length, 0);
}
