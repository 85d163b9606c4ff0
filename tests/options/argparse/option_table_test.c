/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "sample_table.h"

static const struct option_definition *entry(const char *destination) {
    return &sample_table.definitions[option_table_find(&sample_table, destination)];
}

static void expect_taken(char *taken, const char *expected) {
    assert_string_equal(taken, expected);
    free(taken);
}

TEST(an_entry_is_found_by_its_destination) {
    assert_int_equal(option_table_find(&sample_table, "help"), 0);
    assert_int_equal(option_table_find(&sample_table, "rest"), sample_table.definition_count - 1);
    assert_int_equal(option_table_find(&sample_table, "none"), sample_table.definition_count);
}

TEST(messages_name_all_spellings) {
    expect_taken(option_display_name(entry("tag_list")), "--tag-list/--tag_list");
    expect_taken(option_display_name(entry("size")), "-s/--size");
    expect_taken(option_display_name(entry("key")), "key");
}

TEST(variables_are_the_destination_in_capitals) {
    expect_taken(option_variable_name(&sample_table, entry("tag_list")), "SAMPLE_TAG_LIST");
    assert_null(option_variable_name(&sample_table, entry("rate")));
}

TEST(only_options_with_values_are_followed_by_one) {
    static const char *const with[] = {"size", "rate", "colour", "tag_list", "complete"};
    static const char *const without[] = {"help", "version", "verbose", "quiet", "key", "rest"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        assert_true(option_takes_value(entry(with[i])));
    }
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        assert_false(option_takes_value(entry(without[i])));
    }
}
