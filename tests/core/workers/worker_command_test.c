/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/workers/worker_group.h"

static struct launch_config config_of(enum launch_entry entry, const char *script) {
    struct launch_config config = {.entry = entry, .script = memory_duplicate_string(script)};
    text_list_add(&config.script_arguments, "--rank=${local_rank}");
    text_list_add(&config.script_arguments, "$$x $other");
    return config;
}

/* Checks the command of local rank 3, and clears the configuration. */
static void check(struct launch_config config, size_t count, const char *const *expected) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    worker_command_build(&config, "/bin/python3", 3, &arguments);
    assert_int_equal(arguments.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(arguments.items[i], expected[i]);
    }
    launch_config_clear(&config);
}

TEST(a_module_is_named_with_m) {
    static const char *const expected[] = {
        "/bin/python3", "-u", "-m", "pkg.train", "--rank=3", "$x $other"};
    check(config_of(LAUNCH_ENTRY_MODULE, "pkg.train"), 6, expected);
}

TEST(a_program_runs_as_it_is_named) {
    static const char *const expected[] = {"./$local_rank", "--rank=3", "$x $other"};
    check(config_of(LAUNCH_ENTRY_PROGRAM, "./$local_rank"), 3, expected);
}

TEST(run_path_starts_a_fresh_interpreter) {
    struct launch_config config = config_of(LAUNCH_ENTRY_RUN_PATH, "train.py");
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    worker_command_build(&config, "python3", 0, &arguments);
    assert_int_equal(arguments.count, 7);
    assert_string_equal(arguments.items[1], "-u");
    assert_string_equal(arguments.items[2], "-c");
    assert_non_null(strstr(arguments.items[3], "runpy.run_path("));
    assert_string_equal(arguments.items[4], "train.py");
    assert_string_equal(arguments.items[5], "--rank=0");
    launch_config_clear(&config);
}

TEST(the_report_names_what_the_user_named) {
    struct launch_config config = config_of(LAUNCH_ENTRY_MODULE, "pkg.train");
    assert_string_equal(worker_command_display_name(&config), "pkg.train");
    config.entry = LAUNCH_ENTRY_RUN_PATH;
    assert_string_equal(worker_command_display_name(&config), "run_script_path");
    launch_config_clear(&config);
}

TEST(python_is_known_by_the_entry_or_by_the_name_of_the_program) {
    struct launch_config config = config_of(LAUNCH_ENTRY_MODULE, "pkg.train");
    assert_true(worker_command_is_python(&config));
    launch_config_clear(&config);
    config = config_of(LAUNCH_ENTRY_PROGRAM, "/opt/python/bin/train");
    assert_false(worker_command_is_python(&config));
    launch_config_clear(&config);
    config = config_of(LAUNCH_ENTRY_PROGRAM, "/opt/bin/python3.12");
    assert_true(worker_command_is_python(&config));
    launch_config_clear(&config);
}
