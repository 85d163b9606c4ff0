/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/health.h"

static enum health_phase judge_phase(const struct health_facts *facts) {
    enum health_phase beginning = facts->has_started ? HEALTH_RESTARTING : HEALTH_JOINING;
    switch (facts->phase) {
    case AGENT_IDLE:
    case AGENT_HELD:
    case AGENT_JOINING:
    case AGENT_STARTING:
        return beginning;
    case AGENT_RUNNING:
        return HEALTH_RUNNING;
    case AGENT_STOPPING:
        return facts->stop_reason == AGENT_STOP_RESTART ? HEALTH_RESTARTING : HEALTH_DRAINING;
    case AGENT_LEAVING:
    case AGENT_DOUBTING:
    case AGENT_DONE:
    case AGENT_PHASE_COUNT:
        break;
    }
    return HEALTH_DRAINING;
}

struct health_verdict health_judge(const struct health_facts *facts) {
    int64_t silence = facts->now.nanoseconds - facts->last_progress.nanoseconds;
    struct health_verdict verdict = {
        .phase = judge_phase(facts),
        .silence = {silence > 0 ? silence : 0}, /* a clock may have been set back */
        .timeout = facts->timeout,
    };
    verdict.is_alive = verdict.silence.nanoseconds <= verdict.timeout.nanoseconds;
    return verdict;
}

const char *health_phase_name(enum health_phase phase) {
    static const char *const names[] = {"joining", "running", "restarting", "draining"};
    return names[phase];
}

const char *health_phase_meaning(enum health_phase phase) {
    static const char *const meanings[] = {
        "waiting for the nodes of the job, or starting its workers",
        "the workers run",
        "the workers are being started anew",
        "the workers are done or being ended",
    };
    return meanings[phase];
}
