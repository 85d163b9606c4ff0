/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains why a process could not be started, in words that tell the user what to do: a script
 * without a first line, an interpreter that does not exist, a limit that was reached. Only
 * process_spawn uses it. */
#ifndef MUSTER_HOST_PROCESS_SPAWN_FAILURE_H
#define MUSTER_HOST_PROCESS_SPAWN_FAILURE_H

#include "base/failure.h"
#include "base/text.h"

/* The stage that a child reached. */
enum spawn_stage {
    SPAWN_STAGE_SESSION,
    SPAWN_STAGE_DEATH_SIGNAL,
    SPAWN_STAGE_DESCRIPTORS,
    SPAWN_STAGE_CPUS,
    SPAWN_STAGE_EXECUTE,
};

/* What a failing child reports to its parent. */
struct spawn_report {
    enum spawn_stage stage;
    int system_error;
};

/* Sets the failure that a child reported. `program` is what the user named, `candidates` are the
 * paths that were tried. Returns FAILURE_SYSTEM. */
enum failure_code spawn_failure_set(struct failure *failure, const struct spawn_report *report,
    const char *program, const struct text_list *candidates);

/* Sets the failure of pipe() or fork(), when there was no child yet. Returns FAILURE_SYSTEM. */
enum failure_code spawn_failure_set_early(struct failure *failure, int system_error);

#endif
