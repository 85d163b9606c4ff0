/* SPDX-License-Identifier: BSD-3-Clause */
/* One step of agent_machine: an event and its effects. Only the handlers of agent_machine use it.
 */
#ifndef MUSTER_CORE_AGENT_AGENT_STEP_H
#define MUSTER_CORE_AGENT_AGENT_STEP_H

#include "core/agent/agent_machine.h"

/* By which workers are asked to end. */
#define SIGNAL_NUMBER_TERMINATE 15

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
/* Does nothing when no timer is armed. */
void agent_step_disarm_timer(struct agent_step *step);

/* Announces something to other nodes, if the job may have any and this node has asked to join. */
void agent_step_announce(struct agent_step *step, enum agent_effect_kind kind);

/* Sends the signal once all looks at workers are over. A signal could end the worker under a look,
 * and its evidence would be lost. */
void agent_step_signal_workers(struct agent_step *step, int signal);
void agent_step_begin_stop(struct agent_step *step, enum agent_stop_reason reason, int signal);
/* Kills at once, without waiting for looks. */
void agent_step_kill_workers(struct agent_step *step);

void agent_step_finish(struct agent_step *step, enum agent_outcome_kind kind);

/* This agent cannot go on: before workers run, while they run, and while they are stopped. */
void agent_step_finish_unable(struct agent_step *step);
void agent_step_stop_unable(struct agent_step *step);
void agent_step_fail_unable_instead(struct agent_step *step);

#endif
