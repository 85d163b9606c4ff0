/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's directory in memory for what its workers keep between their restarts (--scratch): made
 * before the first workers, removed after the last ones, also by the guardian when the agent is
 * killed. It says what the workers are told of it. The directory itself is in
 * host/scratch/scratch_directory.h. */
#ifndef MUSTER_AGENT_SCRATCH_AGENT_SCRATCH_H
#define MUSTER_AGENT_SCRATCH_AGENT_SCRATCH_H

#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "host/process/guardian.h"

struct agent_scratch;

struct agent_scratch_settings {
    const struct launch_config *config;  /* borrowed, as all of this */
    const struct text_list *environment; /* $XDG_RUNTIME_DIR */
    const struct log *log;
    struct guardian *guardian;
};

/* Makes the directory in /dev/shm, otherwise in $XDG_RUNTIME_DIR, and removes those there that
 * killed jobs of this user have left behind. The result is NULL when the user did not ask for one.
 * FAILURE_LIMIT when there is less memory or room than was asked for; FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code agent_scratch_new(
    const struct agent_scratch_settings *settings, struct agent_scratch **out_scratch,
    struct failure *failure);

/* Before workers start: makes the directory anew at its path where it was removed, or elsewhere.
 * Where that fails, too, workers are told of none. Accepts NULL. */
void agent_scratch_renew(struct agent_scratch *scratch);

/* Removes the directory with everything in it. Call it while the guardian still knows of it, and
 * when no worker is left. Accepts NULL. */
void agent_scratch_free(struct agent_scratch *scratch);

/* MUSTER_SCRATCH and MUSTER_SCRATCH_BYTES, in a worker's environment. Accepts NULL. */
void agent_scratch_set_variables(
    const struct agent_scratch *scratch, struct text_list *environment);

#endif
