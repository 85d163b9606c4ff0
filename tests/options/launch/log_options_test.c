/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "launch_line.h"
#include "options/launch/config_builder.h"

static void broken_values_are_mistakes(void **state) {
    (void)state;
    expect_mistake("-r 7 t.py", "argument -r/--redirects: ", "'7'");
    expect_mistake("-t 0:9 t.py", "argument -t/--tee: ", "'0:9'");
    expect_mistake("--local-ranks-filter 0,x t.py", "--local-ranks-filter", "'0,x'");
}

static void a_prefix_has_an_end(void **state) {
    (void)state;
    char line[5000] = "--log-line-prefix-template ";
    size_t length = strlen(line);
    memset(line + length, 'x', 4096);
    snprintf(line + length + 4096, sizeof line - length - 4096, " t.py");
    assert_int_equal(strlen(config_of(line)->log_line_prefix_template), 4096);
    snprintf(line + length + 4096, sizeof line - length - 4096, "y t.py");
    expect_mistake(line, "--log-line-prefix-template", "4097 bytes, and 4096 are the most");
}

static void logs_take_streams_ranks_and_filters(void **state) {
    (void)state;
    const struct launch_config *config =
        config_of("--log-dir /logs -r 10:1 -t 3 "
                  "--local-ranks-filter 3,1 --duplicate-stdout-filters a,,b,c t.py");
    assert_string_equal(config->log_dir, "/logs");
    assert_int_equal(launch_streams_for(&config->redirects, 10), LAUNCH_STREAM_STDOUT);
    assert_int_equal(launch_streams_for(&config->tee, 5), 3);
    assert_true(config->has_local_ranks_filter);
    assert_int_equal(config->local_ranks_filter_count, 2);
    assert_int_equal(config->local_ranks_filter[0], 1);
    assert_int_equal(config->duplicate_stdout_filters.count, 2);
    assert_string_equal(config->duplicate_stdout_filters.items[0], "a,b");
    assert_null(config_of("--log-dir= t.py")->log_dir);
}

static void without_log_files_nothing_can_be_filtered(void **state) {
    (void)state;
    expect_mistake("--log-dir /dev/null --duplicate-stderr-filters x t.py",
        "argument --duplicate-stderr-filters", "/dev/null");
    expect_warning(config_of("--log-dir /dev/null -t 0:3 t.py"), "--tee have no effect");
    assert_int_equal(config_of("--log-dir /dev/null t.py")->warnings.count, 0);
}

static void prefix_templates_come_from_two_places(void **state) {
    (void)state;
    text_list_set_variable(&environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[${rank}]");
    assert_string_equal(config_of("t.py")->log_line_prefix_template, "[${rank}]");
    assert_string_equal(
        config_of("--log-line-prefix-template ${local_rank}: t.py")->log_line_prefix_template,
        "${local_rank}:");
}

static void unknown_macros_are_warned_about(void **state) {
    (void)state;
    const struct launch_config *config =
        config_of("--log-line-prefix-template ${rnak}$hostname t.py");
    expect_warning(config, "${rnak} is left as it is; the macros are ${role_name}");
    assert_int_equal(config->warnings.count, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(broken_values_are_mistakes, clear),
    cmocka_unit_test_teardown(a_prefix_has_an_end, clear),
    cmocka_unit_test_teardown(logs_take_streams_ranks_and_filters, clear),
    cmocka_unit_test_teardown(without_log_files_nothing_can_be_filtered, clear),
    cmocka_unit_test_teardown(prefix_templates_come_from_two_places, clear),
    cmocka_unit_test_teardown(unknown_macros_are_warned_about, clear),
};

UNIT_TESTS(tests)
