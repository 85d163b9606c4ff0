/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"
#include "sample_table.h"

static struct text_list words;
static struct option_bundle bundle;

static int clear(void **state) {
    (void)state;
    text_list_clear(&words);
    option_bundle_clear(&bundle);
    return 0;
}

/* Reads the option `first`, with `second` after it unless NULL. */
static void read_option(const char *first, const char *second, const char *pattern) {
    (void)clear(NULL);
    text_list_add(&words, first);
    if (second != NULL) {
        text_list_add(&words, second);
    }
    option_bundle_read(&sample_table, &words, pattern, 0, true, &bundle);
}

static size_t index_of(const char *destination) {
    return option_table_find(&sample_table, destination);
}

static void a_value_may_follow_or_be_attached(void **state) {
    (void)state;
    static const char *const attached[] = {"--size=3", "-s3", "-s=3", "-vqs3", "-vqs=3"};
    for (size_t i = 0; i < sizeof attached / sizeof *attached; i++) {
        read_option(attached[i], "next", "OA");
        assert_int_equal(bundle.valued, index_of("size"));
        assert_string_equal(bundle.value, "3");
        assert_int_equal(bundle.end, 1);
    }
    read_option("-vs", "3", "OA");
    assert_string_equal(bundle.value, "3");
    assert_int_equal(bundle.end, 2);
    assert_int_equal(bundle.flag_count, 1);
    assert_int_equal(bundle.flags[0], index_of("verbose"));
}

static void a_missing_value_is_a_mistake_of_that_option(void **state) {
    (void)state;
    static const char *const patterns[] = {"OO", "O-", "O"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        read_option("-vs", patterns[i][1] == '\0' ? NULL : "--", patterns[i]);
        assert_int_equal(bundle.mistaken, index_of("size"));
        assert_string_equal(text_string(&bundle.mistake), "expected one argument");
        assert_int_equal(bundle.valued, sample_table.definition_count);
    }
}

static void flags_take_no_value(void **state) {
    (void)state;
    static const struct {
        const char *argument;
        const char *mistake;
    } cases[] = {
        {"--verbose=1", "ignored explicit argument '1'"},
        {"--verbose=", "ignored explicit argument ''"},
        {"-v=1", "ignored explicit argument '1'"},
        {"-v-", "ignored explicit argument '-'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_option(cases[i].argument, NULL, "O");
        assert_string_equal(text_string(&bundle.mistake), cases[i].mistake);
        assert_int_equal(bundle.mistaken, index_of("verbose"));
    }
}

static void what_no_option_explains_is_kept_apart(void **state) {
    (void)state;
    read_option("--nope=1", "x", "OA");
    assert_string_equal(bundle.unknown, "--nope=1");
    assert_int_equal(bundle.end, 1);
    read_option("-vxq", NULL, "O");
    assert_string_equal(bundle.unknown, "-xq");
    assert_int_equal(bundle.flag_count, 1);
}

static void an_ambiguous_prefix_is_nobodys_mistake(void **state) {
    (void)state;
    read_option("--tag", "x", "OA");
    assert_string_equal(
        text_string(&bundle.mistake), "ambiguous option: --tag could match --tag-list, --tag_list");
    assert_int_equal(bundle.mistaken, sample_table.definition_count);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_value_may_follow_or_be_attached, clear),
    cmocka_unit_test_teardown(a_missing_value_is_a_mistake_of_that_option, clear),
    cmocka_unit_test_teardown(flags_take_no_value, clear),
    cmocka_unit_test_teardown(what_no_option_explains_is_kept_apart, clear),
    cmocka_unit_test_teardown(an_ambiguous_prefix_is_nobodys_mistake, clear),
};

UNIT_TESTS(tests)
