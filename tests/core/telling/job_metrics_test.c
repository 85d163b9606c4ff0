/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/telling/job_metrics.h"

struct fixture {
    struct agent_machine machine;
    struct job_metrics metrics;
    int64_t seconds;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    agent_machine_init(&fixture->machine, &(struct agent_settings){.worker_count = 1,
                                              .max_restarts = 3,
                                              .shutdown_timeout = duration_from_seconds(30),
                                              .has_peers = true});
}

/* Each event comes one second after the previous one. */
static void take(struct fixture *fixture, struct agent_event event) {
    struct agent_effects effects;
    enum agent_phase before = fixture->machine.phase;
    event.now.nanoseconds = ++fixture->seconds * 1000000000;
    agent_machine_step(&fixture->machine, &event, &effects);
    job_metrics_step(&fixture->metrics, before, &fixture->machine, &event);
}

static void take_kind(struct fixture *fixture, enum agent_event_kind kind) {
    take(fixture, (struct agent_event){.kind = kind});
}

static void run_workers(struct fixture *fixture) {
    if (fixture->machine.phase == AGENT_IDLE) {
        take_kind(fixture, AGENT_EVENT_START);
    }
    take(fixture, (struct agent_event){.kind = AGENT_EVENT_JOINED,
                      .joined = {.ticket = fixture->machine.ticket,
                          .restarts = agent_machine_attempt(&fixture->machine),
                          .node_count = 2}});
    take_kind(fixture, AGENT_EVENT_WORKERS_STARTED);
}

static void end_worker(struct fixture *fixture, int code) {
    take(fixture, (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
                      .worker_exited = {.exit = {.value = code}}});
}

static void assert_times(
    const struct fixture *fixture, enum job_activity activity, int count, int seconds) {
    const struct job_times *times = &fixture->metrics.activities[activity];
    assert_int_equal(times->count, count);
    assert_int_equal(times->sum.nanoseconds, seconds * INT64_C(1000000000));
}

static void assert_restarts(const struct fixture *fixture, int failures, int peers, int changes) {
    assert_int_equal(fixture->metrics.restarts[JOB_RESTART_WORKER_FAILURE], failures);
    assert_int_equal(fixture->metrics.restarts[JOB_RESTART_PEER], peers);
    assert_int_equal(fixture->metrics.restarts[JOB_RESTART_MEMBERSHIP_CHANGE], changes);
}

TEST(every_activity_is_timed_once) {
    struct fixture fixture;
    set_up(&fixture);
    run_workers(&fixture);
    end_worker(&fixture, 0);
    take_kind(&fixture, AGENT_EVENT_ALL_GONE);
    take_kind(&fixture, AGENT_EVENT_BARRIER_PASSED);
    for (int activity = 0; activity < JOB_ACTIVITY_COUNT; activity++) {
        assert_times(&fixture, (enum job_activity)activity, 1, 1);
        assert_int_equal(fixture.metrics.activities[activity].failures, 0);
    }
    assert_int_equal(fixture.metrics.succeeded_workers, 1);
    assert_restarts(&fixture, 0, 0, 0);
    agent_machine_clear(&fixture.machine);
}

TEST(a_restart_is_counted_by_its_cause) {
    struct fixture fixture;
    set_up(&fixture);
    run_workers(&fixture);
    end_worker(&fixture, 3);
    take_kind(&fixture, AGENT_EVENT_ROUND_OVER); /* the cause of the restart stays */
    assert_restarts(&fixture, 0, 0, 0);
    take_kind(&fixture, AGENT_EVENT_ALL_GONE);
    assert_restarts(&fixture, 1, 0, 0);
    assert_int_equal(fixture.metrics.activities[JOB_ACTIVITY_MONITOR].failures, 1);
    run_workers(&fixture);
    take(&fixture, (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = 2});
    end_worker(&fixture, 1);
    take_kind(&fixture, AGENT_EVENT_ALL_GONE);
    assert_restarts(&fixture, 1, 1, 0);
    run_workers(&fixture);
    take_kind(&fixture, AGENT_EVENT_ROUND_OVER);
    end_worker(&fixture, 1);
    take_kind(&fixture, AGENT_EVENT_ALL_GONE);
    assert_restarts(&fixture, 1, 1, 0); /* the next round tells the cause */
    run_workers(&fixture);
    assert_restarts(&fixture, 1, 1, 1);
    assert_int_equal(fixture.metrics.failed_workers, 1);
    assert_int_equal(fixture.metrics.stopped_workers, 2);
    agent_machine_clear(&fixture.machine);
}

TEST(a_worker_known_to_fail_before_the_others_are_stopped_has_failed_by_itself) {
    struct fixture fixture;
    set_up(&fixture);
    run_workers(&fixture);
    struct agent_event end = {.kind = AGENT_EVENT_WORKER_ENDING,
        .worker_exited = {.exit = {.value = 3}, .observed = {1000}}};
    take(&fixture, end);
    assert_int_equal(fixture.machine.phase, AGENT_STOPPING);
    end.kind = AGENT_EVENT_WORKER_EXITED;
    end.worker_exited.observed.nanoseconds = 2000;
    take(&fixture, end);
    assert_int_equal(fixture.metrics.failed_workers, 1);
    assert_int_equal(fixture.metrics.stopped_workers, 0);
    agent_machine_clear(&fixture.machine);
}

TEST(a_round_that_cost_the_job_a_restart_ended_by_another_nodes_failure) {
    struct fixture fixture;
    set_up(&fixture);
    for (int restarts = 0; restarts < 3; restarts++) {
        if (restarts > 0) {
            take_kind(&fixture, AGENT_EVENT_ROUND_OVER);
            end_worker(&fixture, 0);
            take_kind(&fixture, AGENT_EVENT_ALL_GONE);
        } else {
            take_kind(&fixture, AGENT_EVENT_START);
        }
        take(&fixture,
            (struct agent_event){.kind = AGENT_EVENT_JOINED,
                .joined = {
                    .ticket = fixture.machine.ticket, .restarts = restarts, .node_count = 2}});
        take_kind(&fixture, AGENT_EVENT_WORKERS_STARTED);
        assert_restarts(&fixture, 0, restarts, 0);
    }
    agent_machine_clear(&fixture.machine);
}

TEST(a_node_that_is_done_and_called_back_has_restarted) {
    struct fixture fixture;
    set_up(&fixture);
    run_workers(&fixture);
    end_worker(&fixture, 0);
    take_kind(&fixture, AGENT_EVENT_ALL_GONE);
    take_kind(&fixture, AGENT_EVENT_ROUND_OVER);
    assert_int_equal(fixture.machine.phase, AGENT_JOINING);
    run_workers(&fixture);
    assert_restarts(&fixture, 0, 0, 1);
    agent_machine_clear(&fixture.machine);
}

TEST(failed_joins_and_starts_are_told_apart) {
    struct fixture fixture;
    set_up(&fixture);
    take_kind(&fixture, AGENT_EVENT_START);
    take(&fixture,
        (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = fixture.machine.ticket});
    assert_int_equal(fixture.metrics.activities[JOB_ACTIVITY_RENDEZVOUS].failures, 1);
    agent_machine_clear(&fixture.machine);
}

TEST(the_watchdogs_kills_are_timed_from_the_deadline) {
    struct job_metrics metrics = {0};
    struct event_timer_record timer = {.expiration = {1000}};
    job_metrics_watchdog(&metrics, EVENT_WATCHDOG_TIMER_EXPIRED, &timer, (struct wall_time){1500});
    job_metrics_watchdog(&metrics, EVENT_WATCHDOG_KILL, &timer, (struct wall_time){1500});
    job_metrics_watchdog(&metrics, EVENT_WATCHDOG_KILL, &timer, (struct wall_time){900});
    job_metrics_watchdog(&metrics, EVENT_WATCHDOG_STOPPED, NULL, (struct wall_time){2000});
    assert_int_equal(metrics.expired_timers, 1);
    assert_int_equal(metrics.kills.count, 2);
    assert_int_equal(metrics.kills.sum.nanoseconds, 500);
}

/* The time of a whole job. */

static void pass(struct chronicle_status *status, enum job_state state, int seconds) {
    status->account.states[state].nanoseconds += seconds * INT64_C(1000000000);
    status->now.nanoseconds += seconds * INT64_C(1000000000);
}

static void assert_told(const struct job_times_told *told, enum job_time time, int seconds) {
    int64_t away = told->times[time].nanoseconds - seconds * INT64_C(1000000000);
    assert_in_range(away + JOB_TIME_COUNT, 0, 2 * JOB_TIME_COUNT); /* nanoseconds are rounded */
}

TEST(time_that_proves_to_be_redone_is_told_later_and_none_is_taken_back) {
    struct chronicle_status status = {.source = PROGRESS_PROGRAM};
    struct job_times_told told = {0};
    pass(&status, JOB_TRAINING, 100);
    job_times_told_follow(&told, &status, true);
    assert_told(&told, JOB_TIME_TRAINING_KEPT, 100);
    status.account.redone = duration_from_seconds(30);
    pass(&status, JOB_RECOVERING, 6);
    job_times_told_follow(&told, &status, true);
    assert_told(&told, JOB_TIME_TRAINING_KEPT, 100);
    assert_told(&told, JOB_TIME_RECOVERING, 1);
    assert_told(&told, JOB_TIME_REDONE, 5);
    pass(&status, JOB_TRAINING, 40);
    job_times_told_follow(&told, &status, true);
    assert_told(&told, JOB_TIME_TRAINING_KEPT, 110);
    assert_told(&told, JOB_TIME_RECOVERING, 6);
    assert_told(&told, JOB_TIME_REDONE, 30);
    job_times_told_follow(&told, &status, true);
    assert_told(&told, JOB_TIME_TRAINING_KEPT, 110);
}

TEST(time_before_the_first_step_waits_to_be_known_where_steps_are_told) {
    struct chronicle_status status = {0};
    struct job_times_told told = {0};
    struct job_times_told without = {0};
    status.since_started = duration_from_seconds(20);
    pass(&status, JOB_RUNNING, 20);
    job_times_told_follow(&told, &status, true);
    job_times_told_follow(&without, &status, false);
    assert_told(&told, JOB_TIME_RUNNING, 0);
    assert_told(&without, JOB_TIME_RUNNING, 20);
    status.account.states[JOB_STARTING] = status.since_started; /* the first step has come */
    status.account.states[JOB_RUNNING] = status.since_started = (struct duration){0};
    pass(&status, JOB_TRAINING, 5);
    job_times_told_follow(&told, &status, true);
    assert_told(&told, JOB_TIME_STARTING, 20);
    assert_told(&told, JOB_TIME_TRAINING_KEPT, 5);
    assert_told(&told, JOB_TIME_RUNNING, 0);
}

TEST(a_job_that_never_takes_a_step_is_told_to_run) {
    struct chronicle_status status = {0};
    struct job_times_told told = {0};
    status.since_started = duration_from_seconds(601);
    pass(&status, JOB_RUNNING, 601);
    job_times_told_follow(&told, &status, true);
    assert_told(&told, JOB_TIME_RUNNING, 601);
}
