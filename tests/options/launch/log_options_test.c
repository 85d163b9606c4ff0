/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "launch_line.h"
#include "options/launch/config_builder.h"

TEST_WITH(broken_values_are_mistakes, NULL, clear) {
    expect_mistake("-r 7 t.py", "argument -r/--redirects: ", "'7'");
    expect_mistake("-t 0:9 t.py", "argument -t/--tee: ", "'0:9'");
    expect_mistake("--local-ranks-filter 0,x t.py", "--local-ranks-filter", "'0,x'");
}

TEST_WITH(a_prefix_has_an_end, NULL, clear) {
    char line[5000] = "--log-line-prefix-template ";
    size_t length = strlen(line);
    memset(line + length, 'x', 4096);
    snprintf(line + length + 4096, sizeof line - length - 4096, " t.py");
    assert_int_equal(strlen(config_of(line)->log_line_prefix_template), 4096);
    snprintf(line + length + 4096, sizeof line - length - 4096, "y t.py");
    expect_mistake(line, "--log-line-prefix-template", "4097 bytes, and 4096 are the most");
}

TEST_WITH(logs_take_streams_ranks_and_filters, NULL, clear) {
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

TEST_WITH(without_log_files_nothing_can_be_filtered, NULL, clear) {
    expect_mistake("--log-dir /dev/null --duplicate-stderr-filters x t.py",
        "argument --duplicate-stderr-filters", "/dev/null");
    expect_warning(config_of("--log-dir /dev/null -t 0:3 t.py"), "--tee have no effect");
    assert_int_equal(config_of("--log-dir /dev/null t.py")->warnings.count, 0);
}

TEST_WITH(prefix_templates_come_from_two_places, NULL, clear) {
    text_list_set_variable(&environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[${rank}]");
    assert_string_equal(config_of("t.py")->log_line_prefix_template, "[${rank}]");
    assert_string_equal(
        config_of("--log-line-prefix-template ${local_rank}: t.py")->log_line_prefix_template,
        "${local_rank}:");
}

TEST_WITH(unknown_macros_are_warned_about, NULL, clear) {
    const struct launch_config *config =
        config_of("--log-line-prefix-template ${rnak}$hostname t.py");
    expect_warning(config, "${rnak} is left as it is; the macros are ${role_name}");
    assert_int_equal(config->warnings.count, 1);
}
