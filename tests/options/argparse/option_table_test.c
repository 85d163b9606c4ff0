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

TEST(placeholders_show_choices_or_the_destination) {
    expect_taken(option_placeholder(entry("colour")), "{red,green}");
    expect_taken(option_placeholder(entry("tag_list")), "TAG_LIST");
    expect_taken(option_placeholder(entry("key")), "key");
}
