/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/telling/event_record.h"

static const struct wall_time then = {1};

static struct worker_group three_workers(void) {
    struct worker_group group;
    worker_group_init(&group, 3);
    return group;
}

static struct process_exit exit_code(int code) {
    return (struct process_exit){.value = code};
}

static struct process_exit signalled(int number) {
    return (struct process_exit){.is_signal = true, .value = number};
}

static struct event_plan plan(enum agent_phase before, enum agent_phase after) {
    struct agent_machine machine = {.phase = after};
    return event_plan_step(before, &machine);
}

TEST(joining_and_starting_are_recorded_once) {
    assert_true(plan(AGENT_IDLE, AGENT_JOINING).has_begun_rendezvous);
    assert_false(plan(AGENT_JOINING, AGENT_JOINING).has_begun_rendezvous);
    assert_false(plan(AGENT_JOINING, AGENT_STARTING).has_begun_rendezvous);
    assert_false(plan(AGENT_IDLE, AGENT_JOINING).has_left_rendezvous);
    assert_false(plan(AGENT_JOINING, AGENT_JOINING).has_left_rendezvous);
    assert_true(plan(AGENT_JOINING, AGENT_STARTING).has_left_rendezvous);
    assert_true(plan(AGENT_JOINING, AGENT_STARTING).has_joined);
    assert_false(plan(AGENT_STARTING, AGENT_STARTING).has_started);
    assert_true(plan(AGENT_STARTING, AGENT_RUNNING).has_started);
    assert_false(plan(AGENT_STARTING, AGENT_STOPPING).has_started);
}

TEST(every_worker_has_its_own_end) {
    struct agent_outcome failed = {.kind = AGENT_OUTCOME_FAILED};
    struct worker_group group = three_workers();
    assert_true(worker_group_record_exit(&group, 0, exit_code(0), then, false));
    assert_true(worker_group_record_exit(&group, 1, exit_code(3), then, false));
    assert_true(worker_group_record_exit(&group, 2, signalled(15), then, true));
    assert_true(event_plan_has_worker_ends(&failed, &group));
    assert_int_equal(event_plan_worker_end(&group, 0), EVENT_STATE_SUCCEEDED);
    assert_int_equal(event_plan_worker_end(&group, 1), EVENT_STATE_FAILED);
    assert_int_equal(event_plan_worker_end(&group, 2), EVENT_STATE_TERMINATED);
    assert_null(event_plan_failure(&group, 2));
    assert_int_equal(event_plan_failure(&group, 1)->exit.value, 3);
    assert_int_equal(event_plan_agent_end(&failed, &group), EVENT_STATE_SUCCEEDED);
    worker_group_clear(&group);
}

TEST(an_agent_that_could_not_start_its_workers_has_failed) {
    struct agent_outcome failed = {.kind = AGENT_OUTCOME_FAILED};
    struct worker_group group = three_workers();
    assert_true(worker_group_record_start_failure(&group, 0, "exec failed", then));
    assert_false(event_plan_has_worker_ends(&failed, &group));
    assert_int_equal(event_plan_agent_end(&failed, &group), EVENT_STATE_FAILED);
    worker_group_clear(&group);
}

TEST(agents_that_did_not_run_to_the_end_have_failed) {
    const enum agent_outcome_kind kinds[] = {
        AGENT_OUTCOME_SIGNALLED, AGENT_OUTCOME_JOIN_FAILED, AGENT_OUTCOME_PEER_FAILED};
    struct worker_group group = three_workers();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct agent_outcome outcome = {.kind = kinds[i]};
        assert_false(event_plan_has_worker_ends(&outcome, &group));
        assert_int_equal(event_plan_agent_end(&outcome, &group), EVENT_STATE_FAILED);
    }
    worker_group_clear(&group);
}

TEST(a_job_that_never_needed_this_node_has_no_worker_ends) {
    struct agent_outcome outcome = {.kind = AGENT_OUTCOME_SUCCEEDED};
    struct worker_group group = three_workers();
    assert_false(event_plan_has_worker_ends(&outcome, &group));
    assert_int_equal(event_plan_agent_end(&outcome, &group), EVENT_STATE_SUCCEEDED);
    worker_group_clear(&group);
}

TEST(a_watchdog_that_stops_after_a_success_is_told_of_after_the_workers) {
    struct agent_machine machine = {.phase = AGENT_STOPPING, .stop_reason = AGENT_STOP_CLEAN_UP};
    assert_true(event_plan_holds_watchdog_stop(&machine));
    machine.stop_reason = AGENT_STOP_RESTART;
    assert_false(event_plan_holds_watchdog_stop(&machine));
    machine.stop_reason = AGENT_STOP_FAILURE;
    assert_false(event_plan_holds_watchdog_stop(&machine));
    machine.stop_reason = AGENT_STOP_SIGNAL;
    assert_false(event_plan_holds_watchdog_stop(&machine));
}
