/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"
#include "sample_table.h"

static void options_are_told_from_other_arguments(void **state) {
    (void)state;
    static const char *const options[] = {
        "--size", "--si", "-s", "-s3", "-vq", "--unknown", "-x", "--size=-1", "-=1"};
    static const char *const others[] = {"", "-", "key", "-1", "-.5", "-1e3", "-1x", "--no such"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        assert_true(option_match_is_option(&sample_table, options[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(option_match_is_option(&sample_table, others[i]));
    }
}

static void values_may_be_attached(void **state) {
    (void)state;
    static const struct {
        const char *argument;
        const char *name;
        const char *attached;
        bool has_equals_sign;
    } cases[] = {
        {"--size", "--size", NULL, false},
        {"--size=", "--size", "", true},
        {"--si=a=b", "--size", "a=b", true},
        {"-s", "-s", NULL, false},
        {"-s3", "-s", "3", false},
        {"-s=3", "-s", "3", true},
        {"-vs=3", "-v", "s=3", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct option_match match;
        assert_int_equal(option_match_find(&sample_table, cases[i].argument, &match, NULL), 1);
        assert_string_equal(match.name, cases[i].name);
        assert_int_equal(match.has_equals_sign, cases[i].has_equals_sign);
        if (cases[i].attached == NULL) {
            assert_null(match.attached);
        } else {
            assert_string_equal(match.attached, cases[i].attached);
        }
    }
}

static void a_prefix_of_two_spellings_is_ambiguous(void **state) {
    (void)state;
    struct option_match match;
    struct text names = {0};
    assert_int_equal(option_match_find(&sample_table, "--tag", &match, &names), 2);
    assert_string_equal(text_string(&names), "--tag-list, --tag_list");
    text_clear(&names);
    assert_int_equal(option_match_find(&sample_table, "--tag-", &match, NULL), 1);
    assert_int_equal(option_match_find(&sample_table, "--ver", &match, NULL), 2);
    assert_int_equal(option_match_find(&sample_table, "--verb", &match, NULL), 1);
}

static void an_unknown_option_is_a_match_without_definition(void **state) {
    (void)state;
    struct option_match match;
    assert_int_equal(option_match_find(&sample_table, "--nope=1", &match, NULL), 1);
    assert_int_equal(match.index, sample_table.definition_count);
}

static void letters_find_short_options_only(void **state) {
    (void)state;
    const char *name = NULL;
    assert_int_equal(
        option_match_letter(&sample_table, 'q', &name), option_table_find(&sample_table, "quiet"));
    assert_string_equal(name, "-q");
    assert_int_equal(option_match_letter(&sample_table, 'x', &name), sample_table.definition_count);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_are_told_from_other_arguments),
    cmocka_unit_test(values_may_be_attached),
    cmocka_unit_test(a_prefix_of_two_spellings_is_ambiguous),
    cmocka_unit_test(an_unknown_option_is_a_match_without_definition),
    cmocka_unit_test(letters_find_short_options_only),
};

UNIT_TESTS(tests)
