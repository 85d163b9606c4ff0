/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"

TEST(appended_pieces_join) {
    struct text text = {0};
    assert_string_equal(text_string(&text), "");
    text_append(&text, "a");
    text_append_format(&text, "%d", 12);
    assert_string_equal(text_string(&text), "a12");
    FREED char *taken = text_take(&text);
    assert_string_equal(taken, "a12");
    assert_int_equal(text.length, 0);
}

TEST(lists_are_always_terminated) {
    CLEARED_BY(text_list_clear) struct text_list list = {0};
    for (int i = 0; i < 20; i++) {
        text_list_add(&list, "x");
        assert_null(list.items[list.count]);
    }
}

TEST(setting_a_variable_replaces_only_that_name) {
    CLEARED_BY(text_list_clear) struct text_list list = {0};
    text_list_add(&list, "RANK_X=1");
    text_list_add(&list, "RANK=1");
    text_list_set_variable(&list, "RANK", "2");
    text_list_set_variable(&list, "NEW", "");
    assert_string_equal(text_list_variable(&list, "RANK_X"), "1");
    assert_string_equal(text_list_variable(&list, "RANK"), "2");
    assert_string_equal(text_list_variable(&list, "NEW"), "");
    assert_null(text_list_variable(&list, "NO"));
    assert_int_equal(list.count, 3);
}

TEST(integers_follow_python) {
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"5", 5}, {" +7\n", 7}, {"-0", 0}, {"1_000", 1000}, {"007", 7},
        {"9223372036854775807", INT64_MAX}, {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value;
        assert_int_equal(text_parse_integer(good[i].text, &value), FAILURE_NONE);
        assert_true(value == good[i].value);
    }
    static const char *const bad[] = {
        "", " ", "5.5", "1e3", "_1", "1_", "1__0", "0x10", "- 1", "+"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value;
        assert_int_equal(text_parse_integer(bad[i], &value), FAILURE_MALFORMED);
    }
    int64_t value = 77;
    assert_int_equal(text_parse_integer("9223372036854775808", &value), FAILURE_LIMIT);
    assert_int_equal(text_parse_integer("-99999999999999999999", &value), FAILURE_LIMIT);
    assert_int_equal(value, 77);
}

TEST(floats_are_decimal_and_finite) {
    double value;
    assert_int_equal(text_parse_float(" 0.1 ", &value), FAILURE_NONE);
    assert_true(value == 0.1);
    assert_int_equal(text_parse_float("1e3", &value), FAILURE_NONE);
    assert_true(value == 1000);
    static const char *const bad[] = {"", "inf", "nan", "0x1p3", "1e999", "1,5", "e", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(text_parse_float(bad[i], &value), FAILURE_MALFORMED);
    }
}
