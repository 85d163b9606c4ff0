/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the agent floor share: a configuration that runs shell commands as workers, in a
 * directory of the test's own. */
#ifndef MUSTER_TESTS_AGENT_AGENT_FIXTURE_H
#define MUSTER_TESTS_AGENT_AGENT_FIXTURE_H

#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/launch/launch_config.h"

struct agent_fixture {
    char directory[64]; /* empty at first; the workers' working directory is the test's own */
    struct launch_config config;
    struct text_list environment;
};

/* Workers run `sh -c <command>`; DIR in their environment is the test's directory. */
static inline void agent_fixture_init(
    struct agent_fixture *fixture, int worker_count, const char *command) {
    *fixture = (struct agent_fixture){.directory = "/tmp/muster_agent_test_XXXXXX"};
    assert_non_null(mkdtemp(fixture->directory));
    struct launch_config *config = &fixture->config;
    config->minimum_nodes = 1;
    config->maximum_nodes = 1;
    config->worker_count = worker_count;
    config->rdzv_backend = memory_duplicate_string("static");
    config->entry = LAUNCH_ENTRY_PROGRAM;
    config->script = memory_duplicate_string("sh");
    text_list_add(&config->script_arguments, "-c");
    text_list_add(&config->script_arguments, command);
    config->role = memory_duplicate_string("default");
    config->shutdown_timeout = duration_from_seconds(30);
    config->store_timeout = duration_from_seconds(30);
    config->log_dir = text_format("%s/logs", fixture->directory);
    text_list_add(&fixture->environment, "PATH=/usr/bin:/bin");
    text_list_add_taken(&fixture->environment, text_format("DIR=%s", fixture->directory));
    text_list_add_taken(
        &fixture->environment, text_format("MUSTER_RUNTIME_DIR=%s/jobs", fixture->directory));
}

static inline void agent_fixture_clear(struct agent_fixture *fixture) {
    char *command = text_format("rm -rf '%s'", fixture->directory);
    assert_int_equal(system(command), 0);
    free(command);
    launch_config_clear(&fixture->config);
    text_list_clear(&fixture->environment);
}

/* Whether the test's directory holds a file of that name. */
static inline bool agent_fixture_has_file(const struct agent_fixture *fixture, const char *name) {
    char *path = text_format("%s/%s", fixture->directory, name);
    bool exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

#endif
