/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistakes in calls of muster/agent.h: an error, and nothing else. */
#include "unit.h"

#include <math.h>

#include "base/memory.h"
#include "library/agent_fixture.h"

static const struct muster_agent_settings defaults = MUSTER_AGENT_SETTINGS;

static void assert_bad_with(
    const struct muster_agent_settings *settings, enum muster_error expected, const char *words) {
    struct muster_agent *agent = NULL;
    struct muster_failure failure = {0};
    assert_int_equal(muster_agent_start(settings, &agent, &failure), expected);
    assert_null(agent);
    assert_int_equal(failure.error, expected);
    assert_non_null(strstr(failure.message, words));
    assert_null(strchr(failure.message, '\n'));
    assert_int_equal(muster_agent_run(settings, NULL, NULL), expected);
}

static struct muster_agent_settings good(void) {
    struct muster_agent_settings settings = defaults;
    settings.entrypoint = "true";
    return settings;
}

static int do_nothing(void *context, struct muster_return_value *out_value) {
    (void)out_value;
    (void)context;
    return 0;
}

TEST(defaults_are_those_of_torchelastic) {
    assert_int_equal(defaults.local_world_size, 1);
    assert_int_equal(defaults.max_restarts, 3);
    assert_true(defaults.monitor_interval == 0.1);
    assert_int_equal(defaults.min_nodes, 1);
    assert_int_equal(defaults.max_nodes, 1);
    assert_int_equal(defaults.stdout_fd, -1);
    assert_int_equal(defaults.stderr_fd, -1);
    assert_null(defaults.context);
}

TEST(settings_without_their_initialiser_are_refused) {
    struct muster_agent_settings settings = good();
    assert_int_equal(muster_agent_start(&settings, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_bad_with(NULL, MUSTER_ERROR_INVALID, "NULL");
    settings.size = 0;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "initialiser");
}

TEST(there_has_to_be_one_thing_to_run) {
    struct muster_agent_settings settings = defaults;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "entrypoint");
    settings.entrypoint = "";
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "entrypoint");
    settings.entrypoint = "true";
    settings.function = do_nothing;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "function");
}

TEST(numbers_have_bounds) {
    struct muster_agent_settings settings = good();
    settings.local_world_size = 0;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "local_world_size is 0");
    settings.local_world_size = 4097;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "4097");
    settings = good();
    settings.max_nodes = 0;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "max_nodes 0");
    settings.max_nodes = 65537;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "65537");
    settings = good();
    settings.max_restarts = -1;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "max_restarts is -1");
    settings = good();
    settings.monitor_interval = 0;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "monitor_interval");
    settings.monitor_interval = (double)NAN;
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "monitor_interval");
}

TEST(texts_have_bounds) {
    struct muster_agent_settings settings = good();
    char *text = memory_allocate(200001);
    const char *list[] = {text, NULL};
    memset(text, 'x', 200000);
    settings.entrypoint = text;
    assert_bad_with(&settings, MUSTER_ERROR_LIMIT, "entrypoint");
    settings = good();
    settings.role = text;
    assert_bad_with(&settings, MUSTER_ERROR_LIMIT, "role");
    settings.role = "";
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "role");
    settings = good();
    settings.args = list;
    assert_bad_with(&settings, MUSTER_ERROR_LIMIT, "args");
    settings = good();
    settings.env = list;
    assert_bad_with(&settings, MUSTER_ERROR_LIMIT, "variables");
    free(text);
}

TEST(options_are_those_of_the_command) {
    struct muster_agent_settings settings = good();
    settings.rdzv_backend = "carrier-pigeon";
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "carrier-pigeon");
    settings = good();
    settings.options = (const char *const[]){"--no-such-option", NULL};
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "--no-such-option");
    settings.options = (const char *const[]){"--help", NULL};
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "options");
    settings.options = (const char *const[]){"script.py", NULL};
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "entrypoint");
    settings.options = (const char *const[]){"--run-path", NULL};
    assert_bad_with(&settings, MUSTER_ERROR_INVALID, "entrypoint");
}

FIXTURE_TEST_AFTER(calls_in_the_wrong_order_are_errors, set_up(&fixture, 1, "sleep 1000")) {
    const struct muster_run_result *result = NULL;
    long pid = 0;
    start(fixture);
    assert_int_equal(muster_agent_result(fixture->agent, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_agent_result(fixture->agent, &result, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_agent_pid(fixture->agent, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_agent_pid(fixture->agent, &pid, NULL), MUSTER_OK);
    assert_true(pid > 0 && pid != getpid());
    assert_int_equal(muster_agent_stop(fixture->agent, -1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_agent_stop(fixture->agent, 65, NULL), MUSTER_ERROR_INVALID);
    assert_null(result);
    assert_int_equal(muster_agent_kill(fixture->agent, NULL), MUSTER_OK);
    (void)wait_for_end(fixture);
    assert_int_equal(muster_agent_process(fixture->agent, NULL), MUSTER_OK); /* nothing is left */
    assert_int_equal(fixture->ended, 1);
    assert_int_equal(muster_agent_pid(fixture->agent, &pid, NULL), MUSTER_ERROR_STATE);
}
