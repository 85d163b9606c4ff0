/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/telling/health.h"

#define SECOND INT64_C(1000000000)

static struct health_verdict judge(enum agent_phase phase, enum agent_stop_reason reason,
    bool has_started, int64_t silent_seconds) {
    struct health_facts facts = {
        .phase = phase,
        .stop_reason = reason,
        .has_started = has_started,
        .now = {1000 * SECOND},
        .last_progress = {(1000 - silent_seconds) * SECOND},
        .timeout = {60 * SECOND},
    };
    return health_judge(&facts);
}

TEST(no_phase_is_dead) {
    for (int phase = AGENT_IDLE; phase <= AGENT_DONE; phase++) {
        for (int reason = AGENT_STOP_NONE; reason <= AGENT_STOP_SIGNAL; reason++) {
            assert_true(
                judge((enum agent_phase)phase, (enum agent_stop_reason)reason, true, 0).is_alive);
        }
    }
}

TEST(the_first_start_is_joining_and_a_later_one_restarting) {
    const enum agent_phase phases[] = {AGENT_IDLE, AGENT_JOINING, AGENT_STARTING};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(judge(phases[i], AGENT_STOP_NONE, false, 0).phase, HEALTH_JOINING);
        assert_int_equal(judge(phases[i], AGENT_STOP_RESTART, true, 0).phase, HEALTH_RESTARTING);
    }
    assert_int_equal(judge(AGENT_RUNNING, AGENT_STOP_NONE, true, 0).phase, HEALTH_RUNNING);
}

TEST(stopping_for_good_and_leaving_is_draining) {
    assert_int_equal(judge(AGENT_STOPPING, AGENT_STOP_RESTART, false, 0).phase, HEALTH_RESTARTING);
    const enum agent_stop_reason reasons[] = {
        AGENT_STOP_CLEAN_UP, AGENT_STOP_FAILURE, AGENT_STOP_PEER_FAILURE, AGENT_STOP_SIGNAL};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(judge(AGENT_STOPPING, reasons[i], true, 0).phase, HEALTH_DRAINING);
    }
    assert_int_equal(judge(AGENT_LEAVING, AGENT_STOP_CLEAN_UP, true, 0).phase, HEALTH_DRAINING);
    assert_int_equal(judge(AGENT_DONE, AGENT_STOP_CLEAN_UP, true, 0).phase, HEALTH_DRAINING);
}

TEST(no_progress_is_allowed_as_long_as_it_was_said_and_no_more) {
    assert_true(judge(AGENT_RUNNING, AGENT_STOP_NONE, true, 60).is_alive);
    struct health_verdict verdict = judge(AGENT_RUNNING, AGENT_STOP_NONE, true, 61);
    assert_false(verdict.is_alive);
    assert_int_equal(verdict.silence.nanoseconds, 61 * SECOND);
}

TEST(progress_in_the_future_is_progress) {
    struct health_verdict verdict = judge(AGENT_RUNNING, AGENT_STOP_NONE, true, -500);
    assert_true(verdict.is_alive);
    assert_int_equal(verdict.silence.nanoseconds, 0);
}

TEST(phases_have_names_and_meanings) {
    assert_string_equal(health_phase_name(HEALTH_JOINING), "joining");
    assert_string_equal(health_phase_name(HEALTH_DRAINING), "draining");
    assert_string_equal(health_phase_meaning(HEALTH_RUNNING), "the workers run");
}
