/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests: reads command lines of `torchrun`, given as one string, into a launch
 * configuration. */
#ifndef MUSTER_TESTS_OPTIONS_LAUNCH_LINE_H
#define MUSTER_TESTS_OPTIONS_LAUNCH_LINE_H

#include "options/launch/launch_options.h"

static struct launch_options launch;
static struct text_list environment;

static int clear(void **state) {
    (void)state;
    launch_options_clear(&launch);
    text_list_clear(&environment);
    return 0;
}

/* Splits at blanks; "~" stands for one inside a word. */
static void read_line(const char *line) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    FREED char *copy = strdup(line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        for (char *blank = strchr(word, '~'); blank != NULL; blank = strchr(blank, '~')) {
            *blank = ' ';
        }
        text_list_add(&arguments, word);
    }
    launch_options_clear(&launch);
    launch_options_parse("torchrun", &arguments, &environment, &launch);
}

static const struct launch_config *config_of(const char *line) {
    read_line(line);
    if (launch.outcome != OPTION_OUTCOME_VALUES) {
        print_message("%s gave %s", line, launch.text);
    }
    assert_int_equal(launch.outcome, OPTION_OUTCOME_VALUES);
    return &launch.config;
}

/* The error line must contain both parts. */
static void expect_mistake(const char *line, const char *subject, const char *part) {
    read_line(line);
    assert_int_equal(launch.outcome, OPTION_OUTCOME_MISTAKE);
    assert_int_equal(strncmp(launch.text, "usage: torchrun [-h]", 20), 0);
    const char *error = strstr(launch.text, "\ntorchrun: error: ");
    assert_non_null(error);
    if (strstr(error, subject) == NULL || strstr(error, part) == NULL) {
        print_message("%s gave %s", line, error);
        fail();
    }
}

static void expect_warning(const struct launch_config *config, const char *part) {
    const struct text_list *lists[] = {&config->warnings, &config->meeting_warnings};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        for (size_t i = 0; i < lists[k]->count; i++) {
            if (strstr(lists[k]->items[i], part) != NULL) {
                return;
            }
        }
    }
    print_message("no warning says \"%s\"\n", part);
    fail();
}

#endif
