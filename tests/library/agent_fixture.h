/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents of programs, whose workers are shell commands, and what the program hears of them. */
#ifndef MUSTER_TESTS_LIBRARY_AGENT_FIXTURE_H
#define MUSTER_TESTS_LIBRARY_AGENT_FIXTURE_H

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <muster/agent.h>

#include "base/text.h"

struct fixture {
    struct muster_agent_settings settings;
    const char *args[3];
    char directory[64]; /* of the test: logs, and DIR of the workers */
    char logs[128];
    char *env[5];
    struct muster_agent *agent;
    struct muster_failure failure;
    struct text story;   /* "AGENT:RENDEZVOUS WORKER:START …" */
    struct text metrics; /* "workers.default.run_total=1 …", without the values of durations */
    double since;        /* the time of the last metric */
    int ended;           /* how often */
    int rendezvous_events;
};

static inline void note_event(void *context, const struct muster_agent_event *event) {
    static const char *const kinds[] = {"", "AGENT", "WORKER", "WATCHDOG", "STANDBY"};
    struct fixture *fixture = context;
    assert_non_null(event->name);
    assert_int_equal(event->json[0], '{');
    if (event->kind == MUSTER_AGENT_EVENT_RENDEZVOUS) {
        fixture->rendezvous_events++;
        return;
    }
    text_append_format(&fixture->story, "%s:%s ", kinds[event->kind], event->state);
}

static inline void note_metric(void *context, const struct muster_metric *metric) {
    struct fixture *fixture = context;
    assert_string_equal(metric->group_name, "torchelastic");
    assert_true(metric->timestamp >= fixture->since);
    fixture->since = metric->timestamp;
    if (strstr(metric->name, ".duration.ms") != NULL) {
        assert_true(metric->value >= 0);
        text_append_format(&fixture->metrics, "%s ", metric->name);
    } else {
        text_append_format(&fixture->metrics, "%s=%lld ", metric->name, (long long)metric->value);
    }
}

static inline void note_end(void *context, const struct muster_run_result *result) {
    struct fixture *fixture = context;
    assert_non_null(result);
    fixture->ended++;
}

static inline void set_up(struct fixture *fixture, int workers, const char *command) {
    static const struct muster_agent_settings defaults = MUSTER_AGENT_SETTINGS;
    *fixture = (struct fixture){.settings = defaults, .directory = "/tmp/muster_library_XXXXXX"};
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->logs, sizeof fixture->logs, "%s/logs", fixture->directory);
    fixture->args[0] = "-c";
    fixture->args[1] = command;
    fixture->env[0] = text_format("PATH=/usr/bin:/bin");
    fixture->env[1] = text_format("DIR=%s", fixture->directory);
    fixture->env[2] = text_format("MUSTER_RUNTIME_DIR=%s/jobs", fixture->directory);
    fixture->settings.entrypoint = "sh";
    fixture->settings.args = fixture->args;
    fixture->settings.env = (const char *const *)fixture->env;
    fixture->settings.local_world_size = workers;
    fixture->settings.max_restarts = 0;
    fixture->settings.log_dir = fixture->logs;
    fixture->settings.event = note_event;
    fixture->settings.metric = note_metric;
    fixture->settings.ended = note_end;
    fixture->settings.context = fixture;
}

/* Workers that run a function. */
static inline void set_up_function(struct fixture *fixture, int workers,
    int (*function)(void *context, struct muster_return_value *out_value)) {
    set_up(fixture, workers, NULL);
    fixture->settings.entrypoint = NULL;
    fixture->settings.args = NULL;
    fixture->settings.function = function;
}

static inline void tear_down(struct fixture *fixture) {
    /* An agent that was freed may still be at work in it. */
    char *command =
        text_format("until rm -rf '%s' 2>/dev/null; do sleep 0.01; done", fixture->directory);
    muster_agent_free(fixture->agent);
    text_clear(&fixture->story);
    text_clear(&fixture->metrics);
    for (size_t i = 0; i < 3; i++) {
        free(fixture->env[i]);
    }
    assert_int_equal(system(command), 0);
    free(command);
}

static inline void start(struct fixture *fixture) {
    enum muster_error error =
        muster_agent_start(&fixture->settings, &fixture->agent, &fixture->failure);
    if (error != MUSTER_OK) {
        print_error("%s\n", fixture->failure.message);
    }
    assert_int_equal(error, MUSTER_OK);
}

/* Takes what the agent says next. */
static inline void process_once(struct muster_agent *agent) {
    struct pollfd ready = {.fd = muster_agent_fd(agent), .events = POLLIN};
    assert_true(poll(&ready, 1, -1) == 1);
    assert_int_equal(muster_agent_process(agent, NULL), MUSTER_OK);
}

static inline const struct muster_run_result *wait_for_result(struct muster_agent *agent) {
    const struct muster_run_result *result = NULL;
    while (muster_agent_result(agent, &result, NULL) == MUSTER_ERROR_STATE) {
        process_once(agent);
    }
    assert_non_null(result);
    return result;
}

static inline const struct muster_run_result *wait_for_end(struct fixture *fixture) {
    const struct muster_run_result *result = wait_for_result(fixture->agent);
    assert_int_equal(fixture->ended, 1);
    return result;
}

static inline void wait_for_file(const char *directory, const char *name) {
    char *path = text_format("%s/%s", directory, name);
    while (access(path, F_OK) != 0) {
        usleep(1000);
    }
    free(path);
}

static inline size_t count_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t descriptors = 0;
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        descriptors++;
    }
    closedir(directory);
    return descriptors;
}

#endif
