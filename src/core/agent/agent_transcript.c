/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/agent_transcript.h"

#include <inttypes.h>

static void describe_instant(struct instant instant, struct text *out) {
    int64_t milliseconds = instant.nanoseconds / 1000000;
    text_append_format(out, "%" PRId64 ".%03" PRId64, milliseconds / 1000, milliseconds % 1000);
}

static void describe_exit(struct process_exit exit, struct text *out) {
    text_append_format(out, " %s=%d", exit.is_signal ? "signal" : "code", exit.value);
    if (exit.has_dumped_core) {
        text_append(out, " core");
    }
}

static void describe_signal(int signal_or_none, struct text *out) {
    if (signal_or_none != 0) {
        text_append_format(out, " signal=%d", signal_or_none);
    }
}

static const char *const event_names[AGENT_EVENT_COUNT] = {
    [AGENT_EVENT_START] = "start",
    [AGENT_EVENT_JOINED] = "joined",
    [AGENT_EVENT_JOIN_FAILED] = "join_failed",
    [AGENT_EVENT_WORKERS_STARTED] = "workers_started",
    [AGENT_EVENT_START_FAILED] = "start_failed",
    [AGENT_EVENT_WORKER_ENDING] = "worker_ending",
    [AGENT_EVENT_WORKER_EXITED] = "worker_exited",
    [AGENT_EVENT_WORKER_STUCK] = "worker_stuck",
    [AGENT_EVENT_ALL_GONE] = "all_gone",
    [AGENT_EVENT_LOOK_BEGUN] = "look_begun",
    [AGENT_EVENT_LOOK_OVER] = "look_over",
    [AGENT_EVENT_TIMER_FIRED] = "timer_fired",
    [AGENT_EVENT_SIGNAL_RECEIVED] = "signal_received",
    [AGENT_EVENT_BARRIER_PASSED] = "barrier_passed",
    [AGENT_EVENT_BARRIER_FAILED] = "barrier_failed",
    [AGENT_EVENT_PEER_RESTART] = "peer_restart",
    [AGENT_EVENT_PEER_FAILED] = "peer_failed",
    [AGENT_EVENT_FAILURE_STANDS] = "failure_stands",
    [AGENT_EVENT_ROUND_OVER] = "round_over",
    [AGENT_EVENT_JOB_OVER] = "job_over",
    [AGENT_EVENT_CANNOT_GO_ON] = "cannot_go_on",
};

void agent_event_describe(const struct agent_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case AGENT_EVENT_JOINED:
        text_append_format(out, " ticket=%" PRId64 " restarts=%d nodes=%d", event->joined.ticket,
            event->joined.restarts, event->joined.node_count);
        break;
    case AGENT_EVENT_JOIN_FAILED:
        text_append_format(out, " ticket=%" PRId64, event->ticket);
        break;
    case AGENT_EVENT_START_FAILED:
        text_append_format(
            out, " rank=%d %s", event->start_failed.local_rank, event->start_failed.message);
        break;
    case AGENT_EVENT_WORKER_ENDING:
    case AGENT_EVENT_WORKER_EXITED:
        text_append_format(out, " rank=%d", event->worker_exited.local_rank);
        describe_exit(event->worker_exited.exit, out);
        break;
    case AGENT_EVENT_WORKER_STUCK:
        text_append_format(out, " rank=%d seconds=%.3f", event->worker_stuck.local_rank,
            duration_seconds(event->worker_stuck.stuck));
        break;
    case AGENT_EVENT_SIGNAL_RECEIVED:
        text_append_format(out, " %d", event->signal);
        break;
    case AGENT_EVENT_PEER_FAILED:
        describe_signal(event->signal, out);
        break;
    case AGENT_EVENT_ROUND_OVER:
        describe_signal(event->signal, out);
        if (event->is_counted) {
            text_append_format(out, " restarts=%d", event->restarts);
        }
        break;
    case AGENT_EVENT_PEER_RESTART:
        text_append_format(out, " attempt=%d", event->attempt);
        break;
    case AGENT_EVENT_START:
    case AGENT_EVENT_WORKERS_STARTED:
    case AGENT_EVENT_ALL_GONE:
    case AGENT_EVENT_LOOK_BEGUN:
    case AGENT_EVENT_LOOK_OVER:
    case AGENT_EVENT_TIMER_FIRED:
    case AGENT_EVENT_BARRIER_PASSED:
    case AGENT_EVENT_BARRIER_FAILED:
    case AGENT_EVENT_FAILURE_STANDS:
    case AGENT_EVENT_JOB_OVER:
    case AGENT_EVENT_CANNOT_GO_ON:
    case AGENT_EVENT_COUNT:
        break;
    }
}

static const char *const effect_names[AGENT_EFFECT_COUNT] = {
    [AGENT_EFFECT_JOIN] = "join",
    [AGENT_EFFECT_START_WORKERS] = "start_workers",
    [AGENT_EFFECT_SIGNAL_WORKERS] = "signal_workers",
    [AGENT_EFFECT_LOOK_AT_WORKERS] = "look_at_workers",
    [AGENT_EFFECT_KILL_WORKERS] = "kill_workers",
    [AGENT_EFFECT_ARM_TIMER] = "arm_timer",
    [AGENT_EFFECT_DISARM_TIMER] = "disarm_timer",
    [AGENT_EFFECT_ENTER_BARRIER] = "enter_barrier",
    [AGENT_EFFECT_ANNOUNCE_RESTART] = "announce_restart",
    [AGENT_EFFECT_DOUBT_FAILURE] = "doubt_failure",
    [AGENT_EFFECT_ANNOUNCE_FAILURE] = "announce_failure",
    [AGENT_EFFECT_ANNOUNCE_LEAVE] = "announce_leave",
    [AGENT_EFFECT_ANNOUNCE_SUCCESS] = "announce_success",
    [AGENT_EFFECT_FINISH] = "finish",
};

static void describe_outcome(const struct agent_outcome *outcome, struct text *out) {
    static const char *const names[] = {
        [AGENT_OUTCOME_SUCCEEDED] = "succeeded",
        [AGENT_OUTCOME_FAILED] = "failed",
        [AGENT_OUTCOME_PEER_FAILED] = "peer_failed",
        [AGENT_OUTCOME_JOIN_FAILED] = "join_failed",
        [AGENT_OUTCOME_SIGNALLED] = "signalled",
    };
    text_append_format(out, " %s", names[outcome->kind]);
    if (outcome->kind == AGENT_OUTCOME_SIGNALLED) {
        text_append_format(out, "=%d", outcome->signal);
    }
    if (outcome->has_abandoned_processes) {
        text_append(out, " abandoned");
    }
}

void agent_effect_describe(const struct agent_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case AGENT_EFFECT_JOIN:
        text_append_format(
            out, " ticket=%" PRId64 " attempt=%d", effect->join.ticket, effect->join.attempt);
        break;
    case AGENT_EFFECT_START_WORKERS:
    case AGENT_EFFECT_ENTER_BARRIER:
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        text_append_format(out, " attempt=%d", effect->attempt);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        text_append_format(out, " %d%s", effect->signal, effect->is_relayed ? " relayed" : "");
        break;
    case AGENT_EFFECT_ANNOUNCE_LEAVE:
        describe_signal(effect->signal, out);
        break;
    case AGENT_EFFECT_ARM_TIMER:
        text_append(out, " at=");
        describe_instant(effect->deadline, out);
        break;
    case AGENT_EFFECT_FINISH:
        describe_outcome(&effect->outcome, out);
        break;
    case AGENT_EFFECT_LOOK_AT_WORKERS:
    case AGENT_EFFECT_KILL_WORKERS:
    case AGENT_EFFECT_DISARM_TIMER:
    case AGENT_EFFECT_DOUBT_FAILURE:
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
    case AGENT_EFFECT_ANNOUNCE_SUCCESS:
    case AGENT_EFFECT_COUNT:
        break;
    }
}

const char *agent_phase_name(enum agent_phase phase) {
    static const char *const names[AGENT_PHASE_COUNT] = {
        [AGENT_IDLE] = "idle",
        [AGENT_JOINING] = "joining",
        [AGENT_STARTING] = "starting",
        [AGENT_RUNNING] = "running",
        [AGENT_STOPPING] = "stopping",
        [AGENT_LEAVING] = "leaving",
        [AGENT_DOUBTING] = "doubting",
        [AGENT_DONE] = "done",
    };
    return names[phase];
}
