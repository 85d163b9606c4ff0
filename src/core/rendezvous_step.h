/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a rendezvous machine do things with: effects of the step under way, points in
 * time, the place of this node in the record, and the draft of what is to be written. Decides
 * nothing. A part of rendezvous_machine; not for others. */
#ifndef MUSTER_CORE_RENDEZVOUS_STEP_H
#define MUSTER_CORE_RENDEZVOUS_STEP_H

#include <stdbool.h>

#include "core/rendezvous_machine_state.h"

/* One step: who, why, and what is to be done. */
struct rendezvous_step {
    struct rendezvous_machine *machine;
    const struct rendezvous_event *event;
    struct rendezvous_effects *effects;
};

/* Points in time. */
bool moment_has_come(const struct moment *moment, struct instant now);
void moment_set(struct moment *moment, struct instant at);
void moment_set_after(
    struct moment *moment, const struct rendezvous_step *step, struct duration duration);
void moment_clear(struct moment *moment);

/* Appends an effect; with `_kind` one without values. */
void rendezvous_step_push(struct rendezvous_step *step, struct rendezvous_effect effect);
void rendezvous_step_push_kind(struct rendezvous_step *step, enum rendezvous_effect_kind kind);
/* Ties the node's identity to the connection, and says whether its workers are done. */
void rendezvous_step_present(struct rendezvous_step *step);

bool rendezvous_is_connected(const struct rendezvous_machine *machine);
/* This node in the record as seen last, or NULL. */
const struct rendezvous_node *rendezvous_self(const struct rendezvous_machine *machine);
bool rendezvous_is_participant(const struct rendezvous_machine *machine);
/* Whether no participant of the complete round comes before this one. */
bool rendezvous_is_first(const struct rendezvous_machine *machine);
/* Whether this node looks after what concerns all: it hosts a store that serves presence, or, where
 * nobody does, it comes first in the world. */
bool rendezvous_is_watchkeeper(const struct rendezvous_machine *machine);

/* Whether a node is in the exit barrier of the round seen. The store is asked, at most once between
 * two beats; until it answers, somebody is. */
bool rendezvous_is_somebody_done(struct rendezvous_step *step);

/* A copy of the record as seen last, to be changed … */
struct rendezvous_state *rendezvous_draft_begin(struct rendezvous_machine *machine);
/* … and written. True, as for all functions which say whether they have written. */
bool rendezvous_draft_write(struct rendezvous_step *step, bool is_quiet);

/* This node's patience for a world begins, unless it has begun. */
void rendezvous_need_world(struct rendezvous_step *step);
/* The world this node runs in is over … */
void rendezvous_leave_world(struct rendezvous_step *step);
/* … and the agent is told so; once per round. */
void rendezvous_end_world(struct rendezvous_step *step, const char *reason);
/* The three ends of this node's part: the record is closed; it failed; it has closed or left. */
void rendezvous_close_part(struct rendezvous_step *step);
/* This node's part ends with a last write (CLOSE or LEAVE), if it can make one. */
void rendezvous_end_part(struct rendezvous_step *step, enum rendezvous_goal goal);
void rendezvous_fail(struct rendezvous_step *step, const char *reason);
void rendezvous_settle(struct rendezvous_step *step);
/* Tells an end again to an agent that asks on. */
void rendezvous_repeat_end(struct rendezvous_step *step);

#endif
