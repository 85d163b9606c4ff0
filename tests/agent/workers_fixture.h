/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers on a loop of the test's own, and the story of what was reported about them. Include
 * agent_fixture.h first. */
#ifndef MUSTER_TESTS_AGENT_WORKERS_FIXTURE_H
#define MUSTER_TESTS_AGENT_WORKERS_FIXTURE_H

#include "agent/workers/agent_workers.h"
#include "core/workers/worker_group.h"

struct workers_fixture {
    struct agent_fixture agent;
    struct agent_preparation preparation;
    struct event_loop *loop;
    struct agent_workers *workers;
    struct node_placement placement;
    struct worker_group group; /* filled as the agent machine would */
    /* One letter per report: s started, f failed to start, e ending, 0-9 exited, g gone */
    char story[128];
    struct process_exit last_exit;
    char *message;
};

static inline void workers_fixture_tell(struct workers_fixture *fixture, char letter) {
    fixture->story[strlen(fixture->story)] = letter;
}

static inline void workers_fixture_started(void *context) {
    workers_fixture_tell(context, 's');
}

static inline void workers_fixture_start_failed(
    void *context, int local_rank, const char *message) {
    struct workers_fixture *fixture = context;
    workers_fixture_tell(fixture, 'f');
    workers_fixture_tell(fixture, (char)('0' + local_rank));
    free(fixture->message);
    fixture->message = memory_duplicate_string(message);
}

static inline void workers_fixture_ending(void *context, int local_rank, struct process_exit how) {
    struct workers_fixture *fixture = context;
    (void)local_rank;
    workers_fixture_tell(fixture, 'e');
    fixture->last_exit = how;
}

static inline void workers_fixture_exited(void *context, int local_rank, struct process_exit how) {
    struct workers_fixture *fixture = context;
    workers_fixture_tell(fixture, (char)('0' + local_rank));
    fixture->last_exit = how;
    worker_group_record_exit(
        &fixture->group, local_rank, how, event_loop_wall_time(fixture->loop), false);
}

static inline void workers_fixture_errors_read(void *context) {
    struct workers_fixture *fixture = context;
    event_loop_stop(fixture->loop);
}

static inline void workers_fixture_all_gone(void *context) {
    struct workers_fixture *fixture = context;
    workers_fixture_tell(fixture, 'g');
    agent_workers_await_errors(fixture->workers, WORKER_ERRORS_ALL, duration_from_seconds(60),
        workers_fixture_errors_read, fixture);
}

static inline void workers_fixture_init(
    struct workers_fixture *fixture, int worker_count, const char *command) {
    *fixture = (struct workers_fixture){0};
    agent_fixture_init(&fixture->agent, worker_count, command);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(agent_prepare(&fixture->agent.config, &fixture->agent.environment, NULL,
                         &fixture->preparation, NULL),
        FAILURE_NONE);
    struct agent_workers_settings settings = {
        .config = &fixture->agent.config,
        .preparation = &fixture->preparation,
        .environment = &fixture->agent.environment,
        .descriptor_limit = -1,
        .processors = 4,
        .observer = {workers_fixture_started, workers_fixture_start_failed, workers_fixture_ending,
            workers_fixture_exited, workers_fixture_all_gone, fixture, NULL},
    };
    assert_int_equal(
        agent_workers_new(fixture->loop, &settings, &fixture->workers, NULL), FAILURE_NONE);
    worker_group_init(&fixture->group, (size_t)worker_count);
    fixture->placement = (struct node_placement){
        .run_id = "run",
        .master_address = "localhost",
        .master_port = 1,
        .group_world_size = 1,
        .local_world_size = worker_count,
        .ranks = {0, worker_count, 0, worker_count},
    };
}

/* Starts the workers and waits until they run, or cannot. */
static inline void workers_fixture_start(struct workers_fixture *fixture) {
    size_t told = strlen(fixture->story);
    agent_workers_start(fixture->workers, &fixture->placement);
    while (fixture->story[told] == '\0') {
        event_loop_run_ready(fixture->loop);
    }
}

/* Starts the workers and waits until all are gone. */
static inline void workers_fixture_run(struct workers_fixture *fixture) {
    agent_workers_start(fixture->workers, &fixture->placement);
    event_loop_run(fixture->loop);
}

static inline void workers_fixture_clear(struct workers_fixture *fixture) {
    agent_workers_free(fixture->workers);
    assert_true(event_loop_free(fixture->loop));
    worker_group_clear(&fixture->group);
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->agent);
    free(fixture->message);
}

/* A test that is given a fixture (unit.h). */
#define WORKERS_TEST(name, beginning)                                                              \
    TEST_OF(workers_fixture, name, beginning, workers_fixture_clear)

#endif
