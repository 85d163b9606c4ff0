/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs how the job goes: what was asked for, this node's place in each world, where its workers'
 * logs are, why they stop, and what a failure costs. The sentences are core/telling/job_story's. Of
 * what the first node of a round says for all, the others say one line. */
#ifndef MUSTER_AGENT_TELLING_AGENT_STORY_H
#define MUSTER_AGENT_TELLING_AGENT_STORY_H

#include "agent/failure/agent_report.h"
#include "agent/telling/agent_voice.h"
#include "agent/workers/agent_preparation.h"
#include "agent/workers/agent_workers.h"
#include "base/log.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "host/loop/tally.h"

/* What it points to is borrowed. */
struct agent_story {
    const struct launch_config *config;
    const struct agent_preparation *preparation;
    const struct agent_machine *machine;
    const struct node_placement *placement; /* of the round that was joined last */
    struct agent_voice *voice;
    const struct agent_workers *workers;
    struct tally *worker_store; /* what nobody but workers asks of their store; NULL: others, too */
    struct last_words *last_words; /* of workers for whom others are started; NULL: not told */
    bool has_standby;              /* there are standby workers, or may be later */
    const struct log *log;         /* NULL: nothing is said */
    struct instant started;        /* the first workers, which is filled in here; zero: not yet */
};

/* The agent starts. */
void agent_story_begin(const struct agent_story *story);

/* The machine has taken an event in phase `before`; nothing of what it wants has been done yet. */
void agent_story_step(
    struct agent_story *story, const struct agent_event *event, enum agent_phase before);

#endif
