/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_result.h"
#include "sample_table.h"

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
    struct text reason = {0};
    assert_int_equal(option_convert(entry(destination), text, &value, &reason), FAILURE_INVALID);
    assert_string_equal(text_string(&reason), expected);
    assert_false(value.is_set);
    assert_true(value.integer == 7 && value.number == 7 && value.flag);
    text_clear(&reason);
    clear_value(&value);
}

static void what_does_not_convert_says_so_as_argparse_does(void **state) {
    (void)state;
    expect_reason("size", "x", "invalid int value: 'x'");
    expect_reason("size", "", "invalid int value: ''");
    expect_reason("size", "99999999999999999999", "int value out of range: '99999999999999999999'");
    expect_reason("rate", "1,5", "invalid float value: '1,5'");
    expect_reason("colour", "blue", "invalid choice: 'blue' (choose from 'red', 'green')");
    expect_reason("verbose", "yes", "invalid int value: 'yes'");
}

static void values_take_their_type(void **state) {
    (void)state;
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

static void two_commas_are_one_inside_an_item(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *items[4];
        size_t count;
    } cases[] = {
        {"", {""}, 1},
        {"a", {"a"}, 1},
        {"a,b", {"a", "b"}, 2},
        {"a,,b", {"a,b"}, 1},
        {",,,", {",", ""}, 2},
        {"a,", {"a", ""}, 2},
        {",,,,x", {",,x"}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text_list items = {0};
        option_split_commas(cases[i].text, &items);
        assert_int_equal(items.count, cases[i].count);
        for (size_t j = 0; j < items.count; j++) {
            assert_string_equal(items.items[j], cases[i].items[j]);
        }
        text_list_clear(&items);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_does_not_convert_says_so_as_argparse_does),
    cmocka_unit_test(values_take_their_type),
    cmocka_unit_test(two_commas_are_one_inside_an_item),
};

UNIT_TESTS(tests)
