/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/json/json_document.h"

static void check(const char *input, const char *expected) {
    struct text text = {0};
    assert_int_equal(json_repair(slice_from_string(input), 8, &text), FAILURE_NONE);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

static void good_json_stays_as_it_is(void **state) {
    (void)state;
    static const char good[] = "{\"a\\\"\\\\\": [1, \"\\u00e9 \\ud83d\\ude00 \303\251\"]}";
    check(good, good);
}

static void lone_surrogates_are_replaced(void **state) {
    (void)state;
    check("\"\\udc80\"", "\"\\ufffd\"");
    check("\"\\ud83dx\\ude00\"", "\"\\ufffdx\\ufffd\"");
    check("\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\"");
    check("\"\\u0000\"", "\"\\ufffd\"");
}

static void escaped_backslashes_hide_no_escapes(void **state) {
    (void)state;
    check("\"\\\\udc80\"", "\"\\\\udc80\"");
    check("\"\\u00\"", "\"\\u00\"");
}

static void bytes_that_are_no_characters_are_replaced(void **state) {
    (void)state;
    check("\"\xff\"", "\"\xef\xbf\xbd\"");
    check("\"\xc3\"", "\"\xef\xbf\xbd\"");
    check("\"\xed\xa0\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check("\"\xc0\xaf\"", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    check("\"\xf4\x90\x80\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check("\"\\\xff\"", "\"\\\xef\xbf\xbd\"");
}

static void nesting_has_a_ceiling_and_strings_do_not_nest(void **state) {
    (void)state;
    struct text text = {0};
    check("[[[[[[[[]]]]]]]]", "[[[[[[[[]]]]]]]]");
    check("\"[[[[[[[[[[[[\"", "\"[[[[[[[[[[[[\"");
    assert_int_equal(json_repair(slice_from_string("[[[[{{{{["), 8, &text), FAILURE_LIMIT);
    text_clear(&text);
}

static void numbers_that_are_none_are_replaced_outside_strings(void **state) {
    (void)state;
    check("[NaN, Infinity, -Infinity]", "[null, 1.7976931348623157e308, -1.7976931348623157e308]");
    check("[\"NaN\", \"-Infinity\", Na, -1]", "[\"NaN\", \"-Infinity\", Na, -1]");
}

static void text_loses_nul_and_broken_characters(void **state) {
    (void)state;
    struct text text = {0};
    json_repair_text((struct slice){(const uint8_t *)"a\0\xff", 3}, &text);
    assert_string_equal(text_string(&text), "a\xef\xbf\xbd\xef\xbf\xbd");
    text_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_json_stays_as_it_is),
    cmocka_unit_test(lone_surrogates_are_replaced),
    cmocka_unit_test(escaped_backslashes_hide_no_escapes),
    cmocka_unit_test(bytes_that_are_no_characters_are_replaced),
    cmocka_unit_test(nesting_has_a_ceiling_and_strings_do_not_nest),
    cmocka_unit_test(numbers_that_are_none_are_replaced_outside_strings),
    cmocka_unit_test(text_loses_nul_and_broken_characters),
};

UNIT_TESTS(tests)
