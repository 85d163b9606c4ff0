/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"
#include "options/launch/launch_options.h"

TEST(every_entry_is_explained) {
    for (size_t i = 0; i < launch_table.definition_count; i++) {
        const struct option_definition *definition = &launch_table.definitions[i];
        assert_non_null(definition->help);
        assert_int_equal(option_table_find(&launch_table, definition->destination), i);
    }
}

/* argparse derives the destination from the first long name, so the two must agree. */
TEST(destinations_are_long_names_with_underscores) {
    for (size_t i = 0; i < launch_table.definition_count; i++) {
        const struct option_definition *definition = &launch_table.definitions[i];
        for (size_t j = 0; j < OPTION_MAXIMUM_NAMES && definition->names[j] != NULL; j++) {
            FREED char *name = strdup(definition->names[j]);
            for (char *dash = name + 2; *dash != '\0'; dash++) {
                *dash = *dash == '-' ? '_' : *dash;
            }
            if (name[1] == '-') {
                assert_string_equal(name + 2, definition->destination);
            }
        }
    }
}

TEST(defaults_convert) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    struct text_list environment = {0};
    struct option_result result;
    text_list_add(&arguments, "train.py");
    option_parse(&launch_table, "torchrun", &arguments, &environment, &result);
    assert_int_equal(result.outcome, OPTION_OUTCOME_VALUES);
    assert_string_equal(option_result_value(&result, "training_script")->text, "train.py");
    assert_true(option_result_value(&result, "monitor_interval")->number == 0.1);
    option_result_clear(&result);
}
