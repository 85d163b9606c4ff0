/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"
#include "core/telling/job_metrics.h"

struct fixture {
    struct agent_machine machine;
    struct metric_stream stream;
    int64_t seconds;
    struct text told; /* "NAME=VALUE " … */
};

static void note(void *context, const struct metric *metric) {
    struct fixture *fixture = context;
    text_append_format(&fixture->told, "%s=%lld ", metric->name, (long long)metric->value);
}

static void set_up(struct fixture *fixture, int max_restarts) {
    *fixture = (struct fixture){0};
    fixture->stream =
        (struct metric_stream){.role = "r", .max_restarts = max_restarts, .sink = {note, fixture}};
    agent_machine_init(&fixture->machine, &(struct agent_settings){.worker_count = 1,
                                              .max_restarts = max_restarts,
                                              .shutdown_timeout = duration_from_seconds(30)});
}

/* Each event comes one second after the previous one. */
static void take(struct fixture *fixture, struct agent_event event) {
    struct agent_effects effects;
    enum agent_phase before = fixture->machine.phase;
    event.now.nanoseconds = ++fixture->seconds * 1000000000;
    agent_machine_step(&fixture->machine, &event, &effects);
    metric_stream_step(&fixture->stream, before, &fixture->machine, &event, (struct wall_time){0});
}

static void take_kind(struct fixture *fixture, enum agent_event_kind kind) {
    take(fixture, (struct agent_event){.kind = kind});
}

static void join(struct fixture *fixture) {
    take(fixture, (struct agent_event){.kind = AGENT_EVENT_JOINED,
                      .joined = {.ticket = fixture->machine.ticket,
                          .restarts = agent_machine_attempt(&fixture->machine),
                          .node_count = 1}});
}

static void run_workers(struct fixture *fixture) {
    take_kind(fixture, AGENT_EVENT_START);
    join(fixture);
    take_kind(fixture, AGENT_EVENT_WORKERS_STARTED);
}

static void end_worker(struct fixture *fixture, int code) {
    take(fixture, (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
                      .worker_exited = {.exit = {.value = code}}});
    take_kind(fixture, AGENT_EVENT_ALL_GONE);
}

static void assert_told(struct fixture *fixture, const char *expected) {
    assert_string_equal(text_string(&fixture->told), expected);
    text_clear(&fixture->told);
}

static void tear_down(struct fixture *fixture) {
    text_clear(&fixture->told);
    agent_machine_clear(&fixture->machine);
}

#define TAKEN(name, milliseconds) name ".success=1 " name ".duration.ms=" milliseconds " "
#define STARTED                                                                                    \
    TAKEN("SimpleElasticAgent._rendezvous", "1000")                                                \
    TAKEN("SimpleElasticAgent._assign_worker_ranks", "0")                                          \
    TAKEN("LocalElasticAgent._start_workers", "1000")                                              \
    TAKEN("SimpleElasticAgent._initialize_workers", "2000")
#define LOOKED(remaining, state)                                                                   \
    TAKEN("LocalElasticAgent._monitor_workers", "0")                                               \
    "workers.r.remaining_restarts=" remaining " workers.r." state "=1 "

FIXTURE_TEST_AFTER(restart_takes_the_stop_and_the_start, set_up(&fixture, 2)) {
    run_workers(fixture);
    text_clear(&fixture->told);
    end_worker(fixture, 1);
    assert_told(fixture, LOOKED("2", "failed") TAKEN("LocalElasticAgent._stop_workers", "1000"));
    join(fixture);
    take_kind(fixture, AGENT_EVENT_WORKERS_STARTED);
    assert_told(fixture,
        STARTED TAKEN("SimpleElasticAgent._restart_workers", "3000") LOOKED("1", "healthy"));
}

FIXTURE_TEST_AFTER(success_stops_no_workers, set_up(&fixture, 2)) {
    run_workers(fixture);
    text_clear(&fixture->told);
    end_worker(fixture, 0);
    assert_int_equal(fixture->machine.phase, AGENT_DONE);
    assert_told(fixture, LOOKED("2", "succeeded"));
}

static void end(struct fixture *fixture, enum agent_outcome_kind kind) {
    const struct agent_outcome outcome = {.kind = kind};
    text_clear(&fixture->told);
    metric_stream_end(&fixture->stream, &fixture->machine, &outcome,
        (struct instant){++fixture->seconds * 1000000000}, (struct wall_time){0});
}

#define RECORD(flakiness, success_with, success_without, failed_with, failed_without)              \
    "workers.r.flakiness=" flakiness " workers.r.run_total=1 "                                     \
    "workers.r.run_success_with_retries=" success_with " "                                         \
    "workers.r.run_success_no_retries=" success_without " "                                        \
    "workers.r.run_failed_with_retries=" failed_with " "                                           \
    "workers.r.run_failed_no_retries=" failed_without " "

FIXTURE_TEST_AFTER(end_tells_whether_restarts_were_needed, set_up(&fixture, 2)) {
    run_workers(fixture);
    end(fixture, AGENT_OUTCOME_SUCCEEDED);
    assert_told(fixture, RECORD("0", "0", "1", "0", "0") TAKEN("SimpleElasticAgent.run", "3000"));
    end_worker(fixture, 1);
    end(fixture, AGENT_OUTCOME_SUCCEEDED);
    assert_told(fixture, RECORD("33", "1", "0", "0", "0") TAKEN("SimpleElasticAgent.run", "6000"));
    end(fixture, AGENT_OUTCOME_FAILED);
    assert_told(fixture, RECORD("100", "0", "0", "1", "0") TAKEN("SimpleElasticAgent.run", "7000"));
}

FIXTURE_TEST_AFTER(agent_without_a_result_fails_to_run, set_up(&fixture, 0)) {
    take_kind(fixture, AGENT_EVENT_START);
    take(fixture,
        (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = fixture->machine.ticket});
    assert_told(fixture, "SimpleElasticAgent._rendezvous.failure=1 "
                         "SimpleElasticAgent._rendezvous.duration.ms=1000 "
                         "SimpleElasticAgent._initialize_workers.failure=1 "
                         "SimpleElasticAgent._initialize_workers.duration.ms=1000 ");
    end(fixture, AGENT_OUTCOME_JOIN_FAILED);
    assert_told(
        fixture, "SimpleElasticAgent.run.failure=1 SimpleElasticAgent.run.duration.ms=2000 ");
}
