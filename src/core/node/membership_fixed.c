/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/membership_step.h"

/* How long the store may take for the last requests of a fixed node. */
#define FLUSHING_MILLISECONDS 1000
/* How long the host stays for nodes that have still to read how the job has ended. */
#define PARTING_MILLISECONDS 500

static membership_handler join_fixed, restart_fixed, fail_fixed, leave_fixed, flush, fail_barrier,
    stay_in_barrier, go_when_alone, stop_parting, warn_of_dispute, follow_peer_restart,
    follow_peer_failure;

/* Fixed nodes: core/round/round_exchange decides together with the other nodes. The nodes tell
 * each other that they failed, but not why. Events without a handler are ignored. */
static membership_handler *const handlers[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_HOSTING] = membership_know_hosting,
    [MEMBERSHIP_EVENT_JOIN_ASKED] = join_fixed,
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = membership_enter_barrier,
    [MEMBERSHIP_EVENT_RESTART_ASKED] = restart_fixed,
    [MEMBERSHIP_EVENT_FAILURE_ASKED] = fail_fixed,
    [MEMBERSHIP_EVENT_LEAVE_ASKED] = leave_fixed, /* the job cannot go on without this node */
    [MEMBERSHIP_EVENT_END_ASKED] = flush,
    [MEMBERSHIP_EVENT_LEFT] = go_when_alone,
    [MEMBERSHIP_EVENT_TIMER_FIRED] = stop_parting,
    [MEMBERSHIP_EVENT_PLACED] = membership_place,
    [MEMBERSHIP_EVENT_NOT_PLACED] = membership_fail_round,
    [MEMBERSHIP_EVENT_BARRIER_PASSED] = membership_pass_barrier,
    [MEMBERSHIP_EVENT_BARRIER_FAILED] = fail_barrier,
    [MEMBERSHIP_EVENT_BARRIER_LATE] = stay_in_barrier,
    [MEMBERSHIP_EVENT_RANK_DISPUTED] = warn_of_dispute,
    [MEMBERSHIP_EVENT_PEER_RESTART] = follow_peer_restart,
    [MEMBERSHIP_EVENT_PEER_FAILED] = follow_peer_failure,
};

membership_handler *membership_fixed_handler(enum membership_event_kind kind) {
    return handlers[kind];
}

static void join_fixed(struct membership_step *step) {
    const struct membership_settings *settings = &step->membership->settings;
    membership_keep_join(step);
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = ROUND_EVENT_BEGIN,
                                  .round = ROUND_OF_FIXED_NODES,
                                  .begin = {.group_rank = settings->node_rank,
                                      .node_count = settings->node_count,
                                      .attempt = step->event->join.attempt,
                                      .master_address = settings->master_address,
                                      .master_port = settings->master_port}}});
}

static void restart_fixed(struct membership_step *step) {
    membership_tell_round(step, ROUND_EVENT_RESTART_ASKED);
}

static void fail_fixed(struct membership_step *step) {
    membership_tell_round(step, ROUND_EVENT_FAILURE_ASKED);
}

static void leave_fixed(struct membership_step *step) {
    membership_push(
        step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                  .round = {.kind = ROUND_EVENT_FAILURE_ASKED, .signal = step->event->signal}});
}

static void flush(struct membership_step *step) {
    step->membership->end.is_asked = true;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_FLUSH,
                              .patience = duration_from_milliseconds(FLUSHING_MILLISECONDS)});
}

static void follow_peer_failure(struct membership_step *step) {
    const struct round_effect *told = step->event->round;
    membership_fail_peer(step, told->reason, told->signal);
}

static void warn_of_dispute(struct membership_step *step) {
    text_append(&step->membership->note, step->event->round->reason);
    membership_note(step, LOG_LEVEL_WARNING);
}

static void follow_peer_restart(struct membership_step *step) {
    int attempt = (int)step->event->round->attempt;
    text_append_format(
        &step->membership->note, "another node restarts its workers: joining attempt %d", attempt);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_tell_agent(
        step, (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = attempt});
}

static void fail_barrier(struct membership_step *step) {
    membership_end_barrier(step, false);
}

/* LINGER ends when no other node is connected: a node of torchrun that dies is noticed only by its
 * connections. */
static void stay_in_barrier(struct membership_step *step) {
    membership_stay_in_barrier(step);
    membership_push(step,
        (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER, .patience = DURATION_FOREVER});
}

/* The end of the job is in the store, which ends with this node. The others end their connections
 * as soon as they have read it; without this moment some would find the store gone. */
static void part(struct membership_step *step) {
    step->membership->end.is_parting = true;
    membership_push(step,
        (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER, .patience = DURATION_FOREVER});
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_ARM_TIMER,
                              .deadline = instant_after(step->event->now,
                                  duration_from_milliseconds(PARTING_MILLISECONDS))});
}

static void settle_fixed(struct membership_step *step) {
    step->membership->end.is_asked = false;
    membership_settle(step);
}

static void stop_parting(struct membership_step *step) {
    if (step->membership->end.is_asked && step->membership->end.is_parting) {
        settle_fixed(step);
    }
}

/* No other node is connected any more, or the last requests are answered. A node that has left the
 * barrier for a restart ignores both. */
static void go_when_alone(struct membership_step *step) {
    struct membership_end *ending = &step->membership->end;
    if (ending->is_asked && ending->has_passed && step->membership->is_host &&
        !ending->is_parting) {
        part(step);
    } else if (ending->is_asked) {
        settle_fixed(step);
    } else if (step->membership->stage == MEMBERSHIP_BARRIER) {
        membership_end_barrier(step, false);
    }
}
