/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/failure/failure_report.h"

static void check(const char *end, bool is_cut, const char *expected) {
    CLEARED_BY(text_clear) struct text shown = {0};
    last_lines_append(slice_from_string(end), is_cut, &shown);
    assert_string_equal(text_string(&shown), expected);
}

TEST(short_file_is_shown_as_it_is) {
    check("", false, "");
    check("one\n", false, "one\n");
    check("one\n\n  two\n", false, "one\n\n  two\n");
}

TEST(no_more_lines_are_shown_than_are_allowed) {
    CLEARED_BY(text_clear) struct text all = {0};
    CLEARED_BY(text_clear) struct text expected = {0};
    for (int i = 0; i < 3 * LAST_LINES_MAXIMUM; i++) {
        text_append_format(&all, "line %d\n", i);
        if (i >= 2 * LAST_LINES_MAXIMUM) {
            text_append_format(&expected, "line %d\n", i);
        }
    }
    check(text_string(&all), false, text_string(&expected));
    check(text_string(&all), true, text_string(&expected));
}

TEST(line_that_has_lost_its_beginning_is_left_out) {
    check("ost\nwhole\n", true, "whole\n");
    check("nothing else\n", true, "nothing else\n");
    check("nothing else", true, "nothing else\n");
}

TEST(no_more_bytes_are_shown_than_are_allowed) {
    CLEARED_BY(text_clear) struct text long_line = {0};
    for (size_t i = 0; i < 2 * LAST_LINES_WINDOW; i++) {
        text_append(&long_line, "x");
    }
    CLEARED_BY(text_clear) struct text shown = {0};
    last_lines_append(slice_from_string(text_string(&long_line)), false, &shown);
    assert_int_equal(shown.length, LAST_LINES_WINDOW + 1);
    text_append(&long_line, "\nthe end\n");
    check(text_string(&long_line), false, "the end\n");
}

TEST(only_the_last_state_of_an_overwritten_line_is_shown) {
    check(" 10%|#\r 20%|##\r 30%|###\r\nKilled\r\n", false, " 30%|###\nKilled\n");
    check("\r\n\r", false, "\n\n");
}

TEST(nothing_moves_the_cursor_or_is_no_text) {
    check("\x1b]0;owned\x07\x1b[31mred\x1b[0m\t\x80\n", false, "?]0;owned?red\t?\n");
    CLEARED_BY(text_clear) struct text shown = {0};
    last_lines_append((struct slice){(const uint8_t *)"a\0b\n", 4}, false, &shown);
    assert_string_equal(text_string(&shown), "a?b\n");
}
