/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_counter.h"

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
