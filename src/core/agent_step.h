/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of agent_machine do things with: one event, and the effects of it. Nobody else
 * looks inside. */
#ifndef MUSTER_CORE_AGENT_STEP_H
#define MUSTER_CORE_AGENT_STEP_H

#include "core/agent_machine.h"

struct agent_step {
    struct agent_machine *machine;
    const struct agent_event *event;
    struct agent_effects *effects;
};

void agent_step_push(struct agent_step *step, struct agent_effect effect);
void agent_step_push_kind(struct agent_step *step, enum agent_effect_kind kind);
/* For effects that name the attempt. */
void agent_step_push_attempt(struct agent_step *step, enum agent_effect_kind kind);

void agent_step_arm_timer(struct agent_step *step, struct instant deadline);
/* Does nothing when it is not armed. */
void agent_step_disarm_timer(struct agent_step *step);

/* To other nodes, if there may be any and this one has made itself known to them. */
void agent_step_announce(struct agent_step *step, enum agent_effect_kind kind);

/* Waits until nobody is looked at any more: what is looked at would end with it, and nobody know
 * what it was doing. */
void agent_step_signal_workers(struct agent_step *step, int signal);
void agent_step_begin_stop(struct agent_step *step, enum agent_stop_reason reason, int signal);
/* At once. */
void agent_step_kill_workers(struct agent_step *step);

void agent_step_finish(struct agent_step *step, enum agent_outcome_kind kind);

#endif
