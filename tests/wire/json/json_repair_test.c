/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/json/json_document.h"

static void check(const char *input, const char *expected) {
    struct text text = {0};
    assert_int_equal(json_repair(slice_from_string(input), 8, &text), FAILURE_NONE);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

TEST(good_json_stays_as_it_is) {
    static const char good[] = "{\"a\\\"\\\\\": [1, \"\\u00e9 \\ud83d\\ude00 \303\251\"]}";
    check(good, good);
}

TEST(lone_surrogates_are_replaced) {
    check("\"\\udc80\"", "\"\\ufffd\"");
    check("\"\\ud83dx\\ude00\"", "\"\\ufffdx\\ufffd\"");
    check("\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\"");
    check("\"\\u0000\"", "\"\\ufffd\"");
}

TEST(escaped_backslashes_hide_no_escapes) {
    check("\"\\\\udc80\"", "\"\\\\udc80\"");
    check("\"\\u00\"", "\"\\u00\"");
}

TEST(bytes_that_are_no_characters_are_replaced) {
    check("\"\xff\"", "\"\xef\xbf\xbd\"");
    check("\"\xc3\"", "\"\xef\xbf\xbd\"");
    check("\"\xed\xa0\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check("\"\xc0\xaf\"", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    check("\"\xf4\x90\x80\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check("\"\\\xff\"", "\"\\\xef\xbf\xbd\"");
}

TEST(nesting_has_a_ceiling_and_strings_do_not_nest) {
    struct text text = {0};
    check("[[[[[[[[]]]]]]]]", "[[[[[[[[]]]]]]]]");
    check("\"[[[[[[[[[[[[\"", "\"[[[[[[[[[[[[\"");
    assert_int_equal(json_repair(slice_from_string("[[[[{{{{["), 8, &text), FAILURE_LIMIT);
    text_clear(&text);
}

TEST(numbers_that_are_none_are_replaced_outside_strings) {
    check("[NaN, Infinity, -Infinity]", "[null, 1.7976931348623157e308, -1.7976931348623157e308]");
    check("[\"NaN\", \"-Infinity\", Na, -1]", "[\"NaN\", \"-Infinity\", Na, -1]");
}

TEST(text_loses_nul_and_broken_characters) {
    struct text text = {0};
    json_repair_text((struct slice){(const uint8_t *)"a\0\xff", 3}, &text);
    assert_string_equal(text_string(&text), "a\xef\xbf\xbd\xef\xbf\xbd");
    text_clear(&text);
}
