/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"

TEST(append_beyond_the_ceiling_changes_nothing) {
    struct bytes bytes;
    bytes_init(&bytes, 4);
    assert_int_equal(bytes_append(&bytes, "abc", 3), FAILURE_NONE);
    assert_int_equal(bytes_append(&bytes, "de", 2), FAILURE_LIMIT);
    assert_int_equal(bytes.length, 3);
    bytes_clear(&bytes);
}

TEST(absurd_length_is_refused_before_allocation) {
    struct bytes bytes;
    bytes_init(&bytes, 1 << 20);
    assert_int_equal(bytes_reserve(&bytes, SIZE_MAX), FAILURE_LIMIT);
    assert_null(bytes.data);
}

TEST(a_buffer_grows_to_a_capacity_and_never_shrinks) {
    struct bytes bytes;
    bytes_init(&bytes, 10);
    assert_int_equal(bytes_grow(&bytes, 11), FAILURE_LIMIT);
    assert_int_equal(bytes_grow(&bytes, 7), FAILURE_NONE);
    assert_int_equal(bytes_append(&bytes, "1234567", 7), FAILURE_NONE);
    assert_int_equal(bytes.capacity, 7);
    assert_int_equal(bytes_grow(&bytes, 3), FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&bytes), slice_from_string("1234567")));
    bytes_clear(&bytes);
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
