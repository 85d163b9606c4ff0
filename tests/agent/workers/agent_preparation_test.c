/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/stat.h>

#include "agent/workers/agent_preparation.h"
#include "agent_fixture.h"

struct fixture {
    struct agent_fixture agent;
    struct agent_preparation preparation;
    struct failure failure;
};

static enum failure_code prepare(struct fixture *fixture) {
    return agent_prepare(&fixture->agent.config, &fixture->agent.environment, NULL,
        &fixture->preparation, &fixture->failure);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->agent, 2, "exit 0");
}

static void tear_down(struct fixture *fixture) {
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->agent);
}

FIXTURE_TEST(run_without_a_name_gets_a_random_one) {
    assert_int_equal(prepare(fixture), FAILURE_NONE);
    assert_int_equal(strlen(fixture->preparation.run_id), 36);
    assert_int_equal(fixture->preparation.run_id[14], '4'); /* the UUID's version */
}

FIXTURE_TEST(cpu_count_is_the_affinity_mask) {
    fixture->agent.config.worker_count_kind = LAUNCH_COUNT_CPU;
    assert_int_equal(prepare(fixture), FAILURE_NONE);
    assert_int_equal(fixture->preparation.worker_count, sysconf(_SC_NPROCESSORS_ONLN));
}

FIXTURE_TEST(missing_script_is_named_before_anything_starts) {
    fixture->agent.config.entry = LAUNCH_ENTRY_SCRIPT;
    free(fixture->agent.config.script);
    fixture->agent.config.script = memory_duplicate_string("/nowhere/train.py");
    assert_int_equal(prepare(fixture), FAILURE_SYSTEM);
    assert_non_null(strstr(fixture->failure.message, "/nowhere/train.py"));
}

FIXTURE_TEST(python_is_the_first_python3_on_path) {
    fixture->agent.config.entry = LAUNCH_ENTRY_MODULE;
    char *python = text_format("%s/python3", fixture->agent.directory);
    fclose(fopen(python, "we"));
    char *path = text_format("/nowhere:%s:/usr/bin", fixture->agent.directory);
    text_list_set_variable(&fixture->agent.environment, "PATH", path);
    assert_int_equal(chmod(python, 0700), 0);
    assert_int_equal(prepare(fixture), FAILURE_NONE);
    assert_string_equal(fixture->preparation.python, python);
    free(python);
    free(path);
}

FIXTURE_TEST(path_without_python_says_what_to_do) {
    fixture->agent.config.entry = LAUNCH_ENTRY_MODULE;
    text_list_set_variable(&fixture->agent.environment, "PATH", "/nowhere");
    assert_int_equal(prepare(fixture), FAILURE_INVALID);
    assert_non_null(strstr(fixture->failure.message, "PYTHON_EXEC"));
}

/* The warning about a script that begins so, or NULL. */
static const char *doubt(struct fixture *fixture, const char *beginning) {
    set_up(fixture);
    fixture->agent.config.entry = LAUNCH_ENTRY_SCRIPT;
    free(fixture->agent.config.script);
    fixture->agent.config.script = text_format("%s/train", fixture->agent.directory);
    FILE *script = fopen(fixture->agent.config.script, "we");
    assert_non_null(script);
    fputs(beginning, script);
    fclose(script);
    assert_int_equal(prepare(fixture), FAILURE_NONE);
    return fixture->preparation.warnings.count > 0 ? fixture->preparation.warnings.items[0] : NULL;
}

TEST(script_that_is_no_pythons_gets_the_remedy) {
    static const char *const foreign[] = {
        "\177ELF\2\1\1", "#!/bin/bash\necho", "#!/usr/bin/env perl", "#! /bin/sh -e\n"};
    static const char *const good[] = {"", "import os\n", "#!/usr/bin/env python3\n",
        "#!/opt/conda/bin/python -u\n", "#!/usr/bin/env -S uv run --script\n", "# !bash\n"};
    struct fixture fixture;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const char *said = doubt(&fixture, foreign[i]);
        assert_non_null(said);
        assert_non_null(strstr(said, "give --no-python"));
        tear_down(&fixture);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_null(doubt(&fixture, good[i]));
        tear_down(&fixture);
    }
}

/* Of two workers. */
FIXTURE_TEST(ranks_that_no_worker_has_are_said) {
    int ranks[] = {-1, 1, 2, 7};
    int streams[] = {-1, 3, 0, 3};
    fixture->agent.config.local_ranks_filter = ranks;
    fixture->agent.config.local_ranks_filter_count = 4;
    fixture->agent.config.tee = (struct launch_streams){.by_rank = streams, .rank_count = 4};
    assert_int_equal(prepare(fixture), FAILURE_NONE);
    fixture->agent.config.local_ranks_filter = NULL;
    fixture->agent.config.tee = (struct launch_streams){0};
    const struct text_list *warnings = &fixture->preparation.warnings;
    assert_int_equal(warnings->count, 2);
    assert_string_equal(warnings->items[0],
        "--local-ranks-filter names local rank -1,2,7, and the workers of this node are 0 to 1");
    assert_non_null(strstr(warnings->items[1], "--tee names local rank 2,3, "));
}
