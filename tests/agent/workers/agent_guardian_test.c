/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/workers/agent_guardian.h"
#include "agent_fixture.h"
#include "processes.h"

struct fixture {
    struct agent_fixture agent;
    struct agent_preparation preparation;
    struct event_loop *loop;
    struct log log;
    struct agent_guardian *guardian;
    char line[256]; /* the last one of the log */
    bool may_fence;
    int sign_count;
    int fence_count;
};

static void note_line(
    void *context, enum log_level level, const char *origin, const char *message) {
    struct fixture *fixture = context;
    (void)level;
    (void)origin;
    snprintf(fixture->line, sizeof fixture->line, "%s", message);
    event_loop_stop(fixture->loop);
}

/* Three signs of life, and then the guardian does not wait for long. */
static struct duration say_patience(void *context) {
    struct fixture *fixture = context;
    if (++fixture->sign_count == 3) {
        event_loop_stop(fixture->loop);
    }
    return duration_from_milliseconds(fixture->sign_count < 3 ? 1000 : 50);
}

static void note_fence(void *context, struct duration silence) {
    struct fixture *fixture = context;
    (void)silence;
    fixture->fence_count++;
}

static void set_up(struct fixture *fixture, bool may_fence) {
    *fixture =
        (struct fixture){.log = {.write = note_line, .context = fixture}, .may_fence = may_fence};
    agent_fixture_init(&fixture->agent, 1, "exit 0");
    struct agent_guardian_settings settings = {
        .config = &fixture->agent.config,
        .preparation = &fixture->preparation,
        .log = &fixture->log,
        .patience = fixture->may_fence ? say_patience : NULL,
        .fenced = note_fence,
        .context = fixture,
    };
    assert_int_equal(agent_prepare(&fixture->agent.config, &fixture->agent.environment, NULL,
                         &fixture->preparation, NULL),
        FAILURE_NONE);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        agent_guardian_new(fixture->loop, &settings, &fixture->guardian, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    agent_guardian_free(fixture->guardian);
    assert_true(event_loop_free(fixture->loop));
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->agent);
}

FIXTURE_TEST_AFTER(a_replaced_guardian_is_said_with_both_processes, set_up(&fixture, false)) {
    const struct guardian *process = agent_guardian_process(fixture->guardian);
    pid_t old = guardian_pid(process);
    assert_int_equal(kill(old, SIGKILL), 0);
    event_loop_run(fixture->loop);
    assert_int_not_equal(guardian_pid(process), old);
    char *line = text_format("the guardian (process %d) has ended; process %d takes its place",
        (int)old, (int)guardian_pid(process));
    assert_string_equal(fixture->line, line);
    free(line);
}

FIXTURE_TEST_AFTER(signs_of_life_come_from_the_loop, set_up(&fixture, true)) {
    struct guardian *process = agent_guardian_process(fixture->guardian);
    struct process worker =
        processes_start_shell("exec sleep 1000", -1, guardian_descriptor(process));
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->fence_count, 0);
    assert_int_equal(WTERMSIG(processes_wait(&worker)), SIGKILL); /* now the loop stands still */
    agent_guardian_listen(fixture->guardian);
    assert_int_equal(fixture->fence_count, 1);
}

/* The loop stands still before it has given one. */
FIXTURE_TEST_AFTER(a_sign_of_life_is_given_when_it_is_asked_for, set_up(&fixture, true)) {
    struct guardian *process = agent_guardian_process(fixture->guardian);
    struct process worker =
        processes_start_shell("exec sleep 1000", -1, guardian_descriptor(process));
    fixture->sign_count = 3;
    agent_guardian_speak(fixture->guardian);
    assert_int_equal(WTERMSIG(processes_wait(&worker)), SIGKILL);
    agent_guardian_listen(fixture->guardian);
    assert_int_equal(fixture->fence_count, 1);
}

TEST(nobody_is_a_guardian_too) {
    agent_guardian_free(NULL);
    agent_guardian_listen(NULL);
    agent_guardian_speak(NULL);
    assert_null(agent_guardian_process(NULL));
}
