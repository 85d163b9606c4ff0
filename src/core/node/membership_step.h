/* SPDX-License-Identifier: BSD-3-Clause */
/* What the three kinds of membership share: the effects of the current step, what the node knows,
 * and what the agent machine is told. This module decides nothing. */
#ifndef MUSTER_CORE_NODE_MEMBERSHIP_STEP_H
#define MUSTER_CORE_NODE_MEMBERSHIP_STEP_H

#include "core/node/node_membership.h"

/* One step: the membership, the event and the effects. */
struct membership_step {
    struct node_membership *membership;
    const struct membership_event *event;
    struct membership_effects *effects;
};

typedef void membership_handler(struct membership_step *step);

/* The handler of an event; NULL: the node ignores the event. */
membership_handler *membership_alone_handler(enum membership_event_kind kind);
membership_handler *membership_fixed_handler(enum membership_event_kind kind);
membership_handler *membership_changing_handler(
    enum membership_stage stage, enum membership_event_kind kind);

/* Effects. */
void membership_push(struct membership_step *step, struct membership_effect effect);
void membership_push_kind(struct membership_step *step, enum membership_effect_kind kind);
void membership_tell_agent(struct membership_step *step, struct agent_event event);
void membership_tell_agent_kind(struct membership_step *step, enum agent_event_kind kind);
void membership_tell_rendezvous(
    struct membership_step *step, enum rendezvous_event_kind kind, const char *reason_or_null);
void membership_tell_round(struct membership_step *step, enum round_event_kind kind);
/* Writes a line to the log. Its text is in membership->note. */
void membership_note(struct membership_step *step, enum log_level level);

/* The agent asks to join: keeps the ticket and the attempt. */
void membership_keep_join(struct membership_step *step);
/* The two answers to a join. The membership adds names and addresses to `placement` itself. */
void membership_know_placement(
    struct membership_step *step, struct node_placement placement, const char *master_address);
void membership_fail_join(struct membership_step *step, const char *reason);
/* Both answers, as the round exchange tells them. */
void membership_place(struct membership_step *step);
void membership_fail_round(struct membership_step *step);

/* Tells the agent that another node has failed for good, or that the store of the job is gone.
 * `signal`: the signal that told that node to end, or 0. */
void membership_fail_peer(struct membership_step *step, const char *reason, int signal);

/* Tells the round exchange that the workers of this node are done. */
void membership_enter_barrier(struct membership_step *step);
/* Says that this node waits on, because the job would end with its store. */
void membership_stay_in_barrier(struct membership_step *step);
/* Writes into the note what it means for everybody that this node, which hosts the store, leaves
 * because of this signal, or 0. Says it here, too, where there are other nodes. */
void membership_explain_leaving(struct membership_step *step, int signal);
/* Tells the agent that the exit barrier has ended. */
void membership_end_barrier(struct membership_step *step, bool has_passed);
void membership_pass_barrier(struct membership_step *step);

/* Notes that this node hosts the store; or that it does no more, where another node follows it. */
void membership_know_hosting(struct membership_step *step);
void membership_know_end_of_hosting(struct membership_step *step);

/* Wants SETTLED: the agent may end. */
void membership_settle(struct membership_step *step);

#endif
