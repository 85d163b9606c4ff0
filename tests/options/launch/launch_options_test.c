/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"

static void a_good_line_is_ready_to_run(void **state) {
    (void)state;
    assert_string_equal(config_of("t.py")->script, "t.py");
    assert_null(launch.text);
}

static void help_is_to_be_printed(void **state) {
    (void)state;
    read_line("--help");
    assert_int_equal(launch.outcome, OPTION_OUTCOME_PRINT);
    assert_non_null(strstr(launch.text, "--nproc-per-node, --nproc_per_node NPROC_PER_NODE\n"));
}

static void no_script_is_a_mistake(void **state) {
    (void)state;
    expect_mistake("", "the following arguments are required: ", "training_script\n");
}

static void the_spelling_matters_to_prefixes(void **state) {
    (void)state;
    expect_mistake("--nproc 2 t.py", "ambiguous option: --nproc could match ",
        "--nproc-per-node, --nproc_per_node\n");
    assert_int_equal(config_of("--nproc-per 2 t.py")->worker_count, 2);
    assert_int_equal(config_of("--nproc_ 2 t.py")->worker_count, 2);
}

static void warnings_do_not_stop_the_launch(void **state) {
    (void)state;
    expect_warning(config_of("--node-rank 1 t.py"), "--node-rank");
}

static void clearing_twice_is_harmless(void **state) {
    (void)state;
    config_of("t.py");
    launch_options_clear(&launch);
    launch_options_clear(&launch);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_good_line_is_ready_to_run, clear),
    cmocka_unit_test_teardown(help_is_to_be_printed, clear),
    cmocka_unit_test_teardown(no_script_is_a_mistake, clear),
    cmocka_unit_test_teardown(the_spelling_matters_to_prefixes, clear),
    cmocka_unit_test_teardown(warnings_do_not_stop_the_launch, clear),
    cmocka_unit_test_teardown(clearing_twice_is_harmless, clear),
};

UNIT_TESTS(tests)
