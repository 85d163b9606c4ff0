/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/failure/last_lines.h"

static void check(const char *end, bool is_cut, const char *expected) {
    struct text shown = {0};
    last_lines_append(slice_from_string(end), is_cut, &shown);
    assert_string_equal(text_string(&shown), expected);
    text_clear(&shown);
}

static void short_file_is_shown_as_it_is(void **state) {
    (void)state;
    check("", false, "");
    check("one\n", false, "one\n");
    check("one\n\n  two\n", false, "one\n\n  two\n");
}

static void last_line_without_an_end_gets_one(void **state) {
    (void)state;
    check("one\ntwo", false, "one\ntwo\n");
}

static void no_more_lines_are_shown_than_are_allowed(void **state) {
    (void)state;
    struct text all = {0};
    struct text expected = {0};
    for (int i = 0; i < 3 * LAST_LINES_MAXIMUM; i++) {
        text_append_format(&all, "line %d\n", i);
        if (i >= 2 * LAST_LINES_MAXIMUM) {
            text_append_format(&expected, "line %d\n", i);
        }
    }
    check(text_string(&all), false, text_string(&expected));
    check(text_string(&all), true, text_string(&expected));
    text_clear(&all);
    text_clear(&expected);
}

static void line_that_has_lost_its_beginning_is_left_out(void **state) {
    (void)state;
    check("ost\nwhole\n", true, "whole\n");
    check("nothing else\n", true, "nothing else\n");
    check("nothing else", true, "nothing else\n");
}

static void no_more_bytes_are_shown_than_are_allowed(void **state) {
    (void)state;
    struct text long_line = {0};
    for (size_t i = 0; i < 2 * LAST_LINES_WINDOW; i++) {
        text_append(&long_line, "x");
    }
    struct text shown = {0};
    last_lines_append(slice_from_string(text_string(&long_line)), false, &shown);
    assert_int_equal(shown.length, LAST_LINES_WINDOW + 1);
    text_clear(&shown);
    text_append(&long_line, "\nthe end\n");
    check(text_string(&long_line), false, "the end\n");
    text_clear(&long_line);
}

static void only_the_last_state_of_an_overwritten_line_is_shown(void **state) {
    (void)state;
    check(" 10%|#\r 20%|##\r 30%|###\r\nKilled\r\n", false, " 30%|###\nKilled\n");
    check("\r\n\r", false, "\n\n");
}

static void nothing_moves_the_cursor_or_is_no_text(void **state) {
    (void)state;
    check("\x1b]0;owned\x07\x1b[31mred\x1b[0m\t\x80\n", false, "?]0;owned?red\t?\n");
    struct text shown = {0};
    last_lines_append((struct slice){(const uint8_t *)"a\0b\n", 4}, false, &shown);
    assert_string_equal(text_string(&shown), "a?b\n");
    text_clear(&shown);
}

static void lines_are_appended(void **state) {
    (void)state;
    struct text shown = {0};
    text_append(&shown, "before\n");
    last_lines_append(slice_from_string("after"), false, &shown);
    assert_string_equal(text_string(&shown), "before\nafter\n");
    text_clear(&shown);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(short_file_is_shown_as_it_is),
    cmocka_unit_test(last_line_without_an_end_gets_one),
    cmocka_unit_test(no_more_lines_are_shown_than_are_allowed),
    cmocka_unit_test(line_that_has_lost_its_beginning_is_left_out),
    cmocka_unit_test(no_more_bytes_are_shown_than_are_allowed),
    cmocka_unit_test(only_the_last_state_of_an_overwritten_line_is_shown),
    cmocka_unit_test(nothing_moves_the_cursor_or_is_no_text),
    cmocka_unit_test(lines_are_appended),
};

UNIT_TESTS(tests)
