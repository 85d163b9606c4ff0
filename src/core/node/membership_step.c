/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/membership_step.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"

void membership_push(struct membership_step *step, struct membership_effect effect) {
    assert(step->effects->count < MEMBERSHIP_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

void membership_push_kind(struct membership_step *step, enum membership_effect_kind kind) {
    membership_push(step, (struct membership_effect){.kind = kind});
}

void membership_tell_agent(struct membership_step *step, struct agent_event event) {
    membership_push(
        step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_AGENT, .agent = event});
}

void membership_tell_agent_kind(struct membership_step *step, enum agent_event_kind kind) {
    membership_tell_agent(step, (struct agent_event){.kind = kind});
}

void membership_tell_rendezvous(
    struct membership_step *step, enum rendezvous_event_kind kind, const char *reason_or_null) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_RENDEZVOUS,
                              .rendezvous = {.kind = kind, .reason = reason_or_null}});
}

void membership_tell_round(struct membership_step *step, enum round_event_kind kind) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = kind, .round = step->membership->round}});
}

/* The text is in membership->note. */
void membership_note(struct membership_step *step, enum log_level level) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                              .note = {level, text_string(&step->membership->note)}});
}

static void know_trouble(struct membership_step *step, const char *reason) {
    struct membership_knowledge *knowledge = &step->membership->knowledge;
    char *trouble = memory_duplicate_string(reason);
    free(knowledge->trouble);
    knowledge->trouble = trouble;
}

void membership_know_placement(
    struct membership_step *step, struct node_placement placement, const char *master_address) {
    const struct membership_settings *settings = &step->membership->settings;
    struct membership_knowledge *knowledge = &step->membership->knowledge;
    free(knowledge->master_address);
    knowledge->master_address = memory_duplicate_string(master_address);
    placement.run_id = settings->run_id;
    placement.node = knowledge->node;
    placement.master_address = knowledge->master_address;
    placement.local_world_size = settings->local_world_size;
    knowledge->placement = placement;
    failure_account_clear(&knowledge->root_cause);
    knowledge->has_root_cause = false;
    membership_tell_agent(step,
        (struct agent_event){.kind = AGENT_EVENT_JOINED,
            .joined = {step->membership->ticket, placement.attempt, placement.group_world_size}});
}

void membership_fail_join(struct membership_step *step, const char *reason) {
    step->membership->stage = MEMBERSHIP_GIVEN_UP;
    step->membership->end.is_leaving = true;
    know_trouble(step, reason);
    membership_tell_agent(step,
        (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = step->membership->ticket});
}

void membership_place(struct membership_step *step) {
    const struct round_effect *told = step->event->round;
    step->membership->stage = MEMBERSHIP_JOINED;
    membership_know_placement(step,
        (struct node_placement){
            .master_port = told->joined.master_port,
            .group_rank = told->joined.group_rank,
            .group_world_size = told->joined.node_count,
            .ranks = told->joined.ranks,
            .attempt = (int)told->joined.restarts,
            .round = told->round == ROUND_OF_FIXED_NODES ? 0 : told->round,
        },
        told->joined.master_address);
}

void membership_fail_round(struct membership_step *step) {
    membership_fail_join(step, step->event->round->reason);
}

void membership_fail_peer(struct membership_step *step, const char *reason, int signal) {
    step->membership->stage = MEMBERSHIP_IDLE;
    know_trouble(step, reason);
    membership_tell_agent(
        step, (struct agent_event){.kind = AGENT_EVENT_PEER_FAILED, .signal = signal});
}

void membership_keep_join(struct membership_step *step) {
    step->membership->ticket = step->event->join.ticket;
    step->membership->attempt = step->event->join.attempt;
    step->membership->stage = MEMBERSHIP_JOINING;
}

/* Handlers of all kinds of membership. */

void membership_know_hosting(struct membership_step *step) {
    step->membership->is_host = true;
    step->membership->settings.master_port = step->event->port;
}

void membership_know_end_of_hosting(struct membership_step *step) {
    step->membership->is_host = false;
}

void membership_settle(struct membership_step *step) {
    membership_push_kind(step, MEMBERSHIP_EFFECT_SETTLED);
}

void membership_enter_barrier(struct membership_step *step) {
    step->membership->stage = MEMBERSHIP_BARRIER;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = ROUND_EVENT_BARRIER_ASKED,
                                  .round = step->membership->round,
                                  .is_host = step->membership->is_host}});
}

void membership_stay_in_barrier(struct membership_step *step) {
    text_append_format(&step->membership->note,
        "%s; this node hosts the job's store, and keeps it until they are done",
        step->event->round->reason);
    membership_note(step, LOG_LEVEL_WARNING);
}

void membership_explain_leaving(struct membership_step *step, int signal) {
    struct node_membership *membership = step->membership;
    struct text *note = &membership->note;
    text_append_format(
        note, "node %s, which hosts the job's store, ", membership->settings.address);
    if (signal != 0) {
        text_append_format(note, "was told to end by %s", signal_name_from_number(signal));
    } else {
        text_append(note, "has left");
    }
    text_append(note, "; no other node can take its place (with --rdzv-backend dir one does)");
    if (membership->knowledge.placement.group_world_size > 1) {
        membership_note(step, LOG_LEVEL_WARNING);
    }
}

void membership_end_barrier(struct membership_step *step, bool has_passed) {
    step->membership->end.has_passed = has_passed;
    step->membership->stage = MEMBERSHIP_IDLE;
    membership_tell_agent_kind(
        step, has_passed ? AGENT_EVENT_BARRIER_PASSED : AGENT_EVENT_BARRIER_FAILED);
}

void membership_pass_barrier(struct membership_step *step) {
    membership_end_barrier(step, true);
}
