/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_result.h"
#include "sample_table.h"

static void init(struct option_result *result, const char *columns) {
    CLEARED_BY(text_list_clear) struct text_list environment = {0};
    if (columns != NULL) {
        text_list_set_variable(&environment, "COLUMNS", columns);
    }
    option_result_init(result, &sample_table, "sample", &environment);
}

TEST(width_comes_from_the_environment) {
    static const struct {
        const char *given;
        size_t columns;
    } cases[] = {
        {NULL, 80}, {"120", 120}, {"0", 80}, {"-3", 80}, {"wide", 80}, {"999999999", 10000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct option_result result;
        init(&result, cases[i].given);
        assert_int_equal(result.columns, cases[i].columns);
        option_result_clear(&result);
    }
}

TEST_OF(option_result, only_the_first_mistake_is_kept, init(&fixture, NULL), option_result_clear) {
    option_result_reject(fixture, NULL, "first");
    option_result_reject(fixture, "size", "second");
    assert_non_null(strstr(fixture->text, "sample: error: first\n"));
    assert_null(strstr(fixture->text, "second"));
}

TEST_OF(option_result, a_reason_becomes_a_mistake_only_on_failure, init(&fixture, NULL),
    option_result_clear) {
    struct text reason = {0};
    assert_int_equal(option_result_settle(fixture, "size", FAILURE_NONE, &reason), FAILURE_NONE);
    assert_int_equal(fixture->outcome, OPTION_OUTCOME_VALUES);
    text_append(&reason, "100% too large");
    assert_int_equal(
        option_result_settle(fixture, "size", FAILURE_INVALID, &reason), FAILURE_INVALID);
    assert_non_null(strstr(fixture->text, "argument -s/--size: 100% too large\n"));
    assert_int_equal(reason.length, 0);
}

TEST_OF(
    option_result, an_unknown_destination_is_not_set, init(&fixture, NULL), option_result_clear) {
    assert_false(option_result_value(fixture, "nothing")->is_set);
    assert_string_equal(option_result_text(fixture, "nothing"), "");
    option_result_clear(fixture);
}

/* Converting one text. */

static const struct option_definition *entry(const char *destination) {
    return &sample_table.definitions[option_table_find(&sample_table, destination)];
}

static void clear_value(struct option_value *value) {
    free(value->text);
    text_list_clear(&value->list);
    *value = (struct option_value){0};
}

static void expect_reason(const char *destination, const char *text, const char *expected) {
    struct option_value value = {.integer = 7, .number = 7, .flag = true};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(option_convert(entry(destination), text, &value, &reason), FAILURE_INVALID);
    assert_string_equal(text_string(&reason), expected);
    assert_false(value.is_set);
    assert_true(value.integer == 7 && value.number == 7 && value.flag);
    clear_value(&value);
}

TEST(what_does_not_convert_says_so_as_argparse_does) {
    expect_reason("size", "x", "invalid int value: 'x'");
    expect_reason("size", "", "invalid int value: ''");
    expect_reason("size", "99999999999999999999", "int value out of range: '99999999999999999999'");
    expect_reason("rate", "1,5", "invalid float value: '1,5'");
    expect_reason("colour", "blue", "invalid choice: 'blue' (choose from 'red', 'green')");
    expect_reason("verbose", "yes", "invalid int value: 'yes'");
}

TEST(values_take_their_type) {
    struct option_value value = {0};
    struct text reason = {0};
    assert_int_equal(option_convert(entry("size"), " 1_0 ", &value, &reason), FAILURE_NONE);
    assert_int_equal(value.integer, 10);
    assert_string_equal(value.text, " 1_0 ");
    assert_int_equal(option_convert(entry("rate"), "0.5", &value, &reason), FAILURE_NONE);
    assert_true(value.number == 0.5);
    assert_int_equal(option_convert(entry("verbose"), "-2", &value, &reason), FAILURE_NONE);
    assert_true(value.flag);
    assert_int_equal(option_convert(entry("verbose"), "0", &value, &reason), FAILURE_NONE);
    assert_false(value.flag);
    assert_int_equal(option_convert(entry("tag_list"), "old", &value, &reason), FAILURE_NONE);
    assert_int_equal(option_convert(entry("tag_list"), "a,b", &value, &reason), FAILURE_NONE);
    assert_int_equal(value.list.count, 2);
    clear_value(&value);
}
