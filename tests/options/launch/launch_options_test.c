/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "launch_line.h"
#include "options/launch/launch_options.h"

TEST_WITH(a_good_line_is_ready_to_run, NULL, clear) {
    assert_string_equal(config_of("t.py")->script, "t.py");
    assert_null(launch.text);
}

static void read_muster_line(const char *line) {
    CLEARED_BY(text_list_clear) struct text_list arguments = {0};
    FREED char *copy = strdup(line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        text_list_add(&arguments, word);
    }
    launch_options_clear(&launch);
    launch_options_parse("muster run", &arguments, &environment, &launch);
}

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) {
        count++;
    }
    return count;
}

/* Under its own name; as torchrun it is laid out as argparse does. */
TEST_WITH(help_begins_with_examples_and_has_headings, NULL, clear) {
    static const char *const headings[] = {"\nwhat torchrun has, too:\n",
        "\nlogs (torchrun has these, too):\n", "\nnodes:\n", "\nfailures:\n", "\nstandby:\n",
        "\nsecurity:\n"};
    read_line("--help");
    assert_null(strstr(launch.text, headings[0]));
    read_muster_line("--help");
    assert_int_equal(launch.outcome, OPTION_OUTCOME_PRINT);
    const char *first = strstr(launch.text, "\n  muster run ");
    assert_non_null(first);
    assert_int_equal(count_of(launch.text, "\n  muster run "), 2);
    assert_true(first < strstr(launch.text, headings[0]));
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++) {
        assert_int_equal(count_of(launch.text, headings[i]), 1);
    }
    for (size_t i = 0; i < launch_table.definition_count; i++) {
        const struct option_definition *definition = &launch_table.definitions[i];
        FREED char *entry = option_is_positional(definition)
                                ? text_format("\n  %s ", definition->destination)
                                : text_format("\n  %s", definition->names[0]);
        assert_true(count_of(launch.text, entry) >= 1);
    }
}

static const struct launch_config *muster_config_of(const char *line) {
    read_muster_line(line);
    assert_int_equal(launch.outcome, OPTION_OUTCOME_VALUES);
    return &launch.config;
}

TEST_WITH(what_other_launchers_say_gets_a_hint, NULL, clear) {
    static const struct {
        const char *line;
        const char *hint;
    } lines[] = {{"-n 4 t.py", "(did you mean --nproc-per-node?)"},
        {"-np 4 t.py", "(did you mean --nproc-per-node?)"},
        {"-n4 t.py", "(did you mean --nproc-per-node?)"},
        {"--ppn=4 t.py", "(did you mean --nproc-per-node?)"},
        {"--nprocs 4 t.py", "(did you mean --nproc-per-node?)"},
        {"--rank 1 t.py", "(did you mean --node-rank?)"},
        {"--num_machines 2 t.py", "(did you mean --nnodes?)"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        read_muster_line(lines[i].line);
        assert_int_equal(launch.outcome, OPTION_OUTCOME_MISTAKE);
        assert_non_null(strstr(launch.text, lines[i].hint));
    }
    read_muster_line("-nope t.py");
    assert_null(strstr(launch.text, "did you mean"));
}

TEST_WITH(variables_of_no_option_are_said, NULL, clear) {
    text_list_set_variable(&environment, "PET_NPROC_PERNODE", "2");
    expect_warning(muster_config_of("t.py"),
        "PET_NPROC_PERNODE is no option's variable and has no effect (did you mean "
        "PET_NPROC_PER_NODE?)");
    text_list_clear(&environment);
    text_list_set_variable(&environment, "PET_NUMA_BINDING", "node");
    expect_warning(muster_config_of("t.py"), "(did you mean --numa-binding?)");
    text_list_clear(&environment);
    static const char *const of_others[][2] = {{"PET_NPROC", "(did you mean PET_NPROC_PER_NODE?)"},
        {"PET_NTASKS_PER_NODE", "(did you mean PET_NPROC_PER_NODE?)"},
        {"PET_RANK", "(did you mean PET_NODE_RANK?)"}};
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++) {
        text_list_set_variable(&environment, of_others[i][0], "2");
        expect_warning(muster_config_of("t.py"), of_others[i][1]);
        text_list_clear(&environment);
    }
    text_list_set_variable(&environment, "PET_XYZZY", "1");
    expect_warning(muster_config_of("t.py"), "PET_XYZZY is no option's variable");
    text_list_clear(&environment);
    text_list_set_variable(&environment, "PET_NPROC_PER_NODE", "2");
    text_list_set_variable(&environment, "PETER", "2");
    assert_int_equal(muster_config_of("t.py")->warnings.count, 0);
    text_list_clear(&environment);
}

TEST_WITH(variables_that_look_like_musters_own_are_said, NULL, clear) {
    static const char *const lines[][2] = {
        {"MUSTER_JOB_TOKN", "MUSTER_JOB_TOKN is no variable that Muster reads (did you mean "
                            "MUSTER_JOB_TOKEN?)"},
        {"MUSTER_TOKEN", "(did you mean MUSTER_JOB_TOKEN?)"},
        {"MUSTER_RUNTIME_DIRECTORY", "(did you mean MUSTER_RUNTIME_DIR?)"},
        {"MUSTER_MAX_RESTARTS", "(did you mean PET_MAX_RESTARTS?)"},
        {"MUSTER_XYZZYXYZZYXYZZY", "MUSTER_XYZZYXYZZYXYZZY is no variable that Muster reads"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        text_list_set_variable(&environment, lines[i][0], "of a user");
        const struct launch_config *config = muster_config_of("t.py");
        expect_warning(config, lines[i][1]);
        assert_null(strstr(config->warnings.items[0], "of a user")); /* it may be secret */
        text_list_clear(&environment);
    }
    /* of Muster, of its workers, of a service of Kubernetes, and of others */
    static const char *const known[] = {"MUSTER_JOB_TOKEN", "MUSTER_RUNTIME_DIR",
        "MUSTER_HEALTH_CHECK_HOSTS", "MUSTER_STANDBY", "MUSTER_WORKER", "MUSTER_SCRATCH_BYTES",
        "MUSTER_SERVICE_HOST", "MUSTER_SERVICE_PORT_STORE", "MUSTER_PORT",
        "MUSTER_PORT_29400_TCP_ADDR", "MUSTERED", "CLUSTERMUSTER_X"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        text_list_set_variable(&environment, known[i], "x");
    }
    assert_int_equal(muster_config_of("t.py")->warnings.count, 0);
    text_list_clear(&environment);
}

TEST_WITH(settings_of_one_node_that_do_not_exist_are_said, NULL, clear) {
    expect_warning(muster_config_of("--rdzv-conf joint_timeout=5 t.py"),
        "no setting joint_timeout; it has no effect (did you mean join_timeout?)");
    expect_warning(muster_config_of("--standalone --rdzv-conf x=5 t.py"), "no setting x; it");
    assert_int_equal(muster_config_of("--rdzv-conf timeout=5 t.py")->warnings.count, 0);
    assert_int_equal(muster_config_of("--rdzv-conf join_timeout=5 t.py")->warnings.count, 0);
}

TEST_WITH(a_prefix_of_one_option_means_it, NULL, clear) {
    expect_mistake("--nproc 2 t.py", "ambiguous option: --nproc could match ",
        "--nproc-per-node, --nproc_per_node\n"); /* as torchrun */
    assert_int_equal(muster_config_of("--nproc 2 t.py")->worker_count, 2);
    assert_int_equal(muster_config_of("--nproc=3 t.py")->worker_count, 3);
    read_muster_line("--rdzv 2 t.py");
    assert_non_null(strstr(launch.text, "ambiguous option: --rdzv could match --rdzv-backend, "));
    assert_int_equal(config_of("--nproc-per 2 t.py")->worker_count, 2);
    assert_int_equal(config_of("--nproc_ 2 t.py")->worker_count, 2);
}
