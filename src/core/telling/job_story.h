/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent says of its job at the log level INFO: what was asked for, its place in each world,
 * and why its workers stop and start. Sentences that torchrun has, too, are torchrun's, so that who
 * looks for them finds them; see launch_agent in torch/distributed/launcher/api.py, and
 * SimpleElasticAgent in torch/distributed/elastic/agent/server/api.py. Writes text, decides
 * nothing.
 */
#ifndef MUSTER_CORE_TELLING_JOB_STORY_H
#define MUSTER_CORE_TELLING_JOB_STORY_H

#include <stdbool.h>

#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/workers/worker_group.h"

/* What was asked for, and what was found out. Borrowed. */
struct job_story_launch {
    const struct launch_config *config;
    const char *entry_point; /* worker_command_display_name */
    const char *run_id;
    int worker_count;          /* of this node */
    const char *log_directory; /* NULL: none */
};

/* Appends several lines. */
void job_story_describe_launch(const struct job_story_launch *launch, struct text *out);

/* Appends several lines about the place of this node in the world it has joined. */
void job_story_describe_placement(
    const char *role, const struct node_placement *placement, struct text *out);

/* Appends one line about what a step of the machine means for the workers, and returns true; false
 * when there is nothing to say. `machine` has taken the event, and was in phase `before`. Of a
 * follower, for which another node tells, only what is about this node itself is said. */
bool job_story_describe_step(const struct launch_config *config,
    const struct agent_machine *machine, const struct agent_event *event, enum agent_phase before,
    bool is_followers, struct text *out);

#endif
