/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/membership_world_end.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"

/* How long a node that is in haste starts no workers. Signals to all nodes at once come within it,
 * and the store's next host is found meanwhile. */
#define HASTE_MILLISECONDS 25

/* Any program can write the record. So the signal in it counts only if an agent can handle it. */
int membership_signal_told(const struct rendezvous_effect *effect) {
    return signal_may_be_handled(effect->told.signal) ? effect->told.signal : 0;
}

void membership_leave_round(struct membership_step *step) {
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    membership_push_kind(step, MEMBERSHIP_EFFECT_CANCEL_ROLL);
}

static void tell_round_over(
    struct membership_step *step, const char *reason, int signal, bool is_harmless) {
    struct node_membership *membership = step->membership;
    membership->stage = MEMBERSHIP_IDLE;
    if (!is_harmless) {
        membership_push(
            step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE,
                      .root_cause = {.round = membership->round}});
    }
    text_append_format(&membership->note, "joining the job's next round: %s", reason);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_tell_agent(
        step, (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER, .signal = signal});
}

void membership_end_world(struct membership_step *step) {
    membership_leave_round(step);
    const struct rendezvous_effect *told = step->event->rendezvous.effect;
    tell_round_over(step, told->told.reason, 0, told->told.is_harmless);
}

/* Settling: a signal to the whole job does not reach all nodes at once. A node that the signal has
 * not reached yet should not restart its workers, since the job is being stopped. */

static void begin_settling(struct membership_step *step, int signal, struct duration time) {
    struct node_membership *membership = step->membership;
    const char *reason = step->event->rendezvous.effect->told.reason;
    membership->stage = MEMBERSHIP_SETTLING;
    free(membership->settling.reason);
    membership->settling =
        (struct membership_settling){.signal = signal, .reason = memory_duplicate_string(reason)};
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_ARM_TIMER,
                              .deadline = instant_after(step->event->now, time)});
}

/* Enough nodes are left, and know of each other. The workers here get the signal that the other
 * node got. If it comes to this node as well, they do not get it again. */
static void end_world_in_haste(struct membership_step *step, int signal) {
    membership_leave_round(step);
    tell_round_over(step, step->event->rendezvous.effect->told.reason, signal, false);
    begin_settling(step, signal, duration_from_milliseconds(HASTE_MILLISECONDS));
    step->membership->settling.is_agent_told = true;
}

void membership_end_world_or_settle(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    const struct rendezvous_effect *told = step->event->rendezvous.effect;
    struct duration time = membership->settings.settling_time;
    int signal = membership_signal_told(told);
    if (signal == 0 || time.nanoseconds == 0) {
        membership_end_world(step);
        return;
    }
    if (membership->settings.is_hasty && told->told.is_next_whole) {
        end_world_in_haste(step, signal);
        return;
    }
    membership_leave_round(step);
    text_append_format(&membership->note,
        "another node was told to end by %s, which may be on its way to this node, too: the "
        "workers "
        "here run on for %g s (--settling-time)",
        signal_name_from_number(signal), duration_seconds(time));
    membership_note(step, LOG_LEVEL_WARNING);
    begin_settling(step, signal, time);
}

void membership_join_when_settled(struct membership_step *step) {
    membership_keep_join(step);
    step->membership->stage = MEMBERSHIP_SETTLING;
    step->membership->settling.is_join_asked = true;
}

/* Workers fail here because the workers of the other node are gone. Their world is over already, so
 * the failure needs no announcement. */
void membership_wait_for_join(struct membership_step *step) {
    step->membership->settling.is_agent_told = true;
}

void membership_blame_world(struct membership_step *step) {
    step->membership->settling.is_agent_told = true;
    membership_tell_agent_kind(step, AGENT_EVENT_ROUND_OVER);
}

void membership_end_settling(struct membership_step *step) {
    struct membership_settling *settling = &step->membership->settling;
    if (step->membership->end.last_word != MEMBERSHIP_NOTHING_TO_SAY) {
        return; /* this node leaves: the signal has reached it too */
    }
    if (settling->is_join_asked) {
        step->membership->stage = MEMBERSHIP_JOINING;
        membership_tell_rendezvous(step, RENDEZVOUS_EVENT_JOIN_ASKED, NULL);
    } else if (settling->is_agent_told) {
        step->membership->stage = MEMBERSHIP_IDLE;
    } else {
        tell_round_over(step, settling->reason, settling->signal, false);
    }
}
