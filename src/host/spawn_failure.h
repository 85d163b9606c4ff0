/* SPDX-License-Identifier: BSD-3-Clause */
/* Says why a process could not be started, in words that tell the user what to do: a script without
 * its first line, an interpreter that does not exist, a limit that was reached. Part of
 * process_spawn, which alone uses it. */
#ifndef MUSTER_HOST_SPAWN_FAILURE_H
#define MUSTER_HOST_SPAWN_FAILURE_H

#include "base/failure.h"
#include "base/text.h"

/* How far a child came. */
enum spawn_stage {
    SPAWN_STAGE_SESSION,
    SPAWN_STAGE_DEATH_SIGNAL,
    SPAWN_STAGE_DESCRIPTORS,
    SPAWN_STAGE_CPUS,
    SPAWN_STAGE_EXECUTE,
};

/* What a child that fails tells its parent. */
struct spawn_report {
    enum spawn_stage stage;
    int system_error;
};

/* The failure of a child; `program` as the user named it, `candidates` the paths that were tried.
 * Returns FAILURE_SYSTEM. */
enum failure_code spawn_failure_set(struct failure *failure, const struct spawn_report *report,
    const char *program, const struct text_list *candidates);

/* The failure of pipe() or fork(), before there was a child. Returns FAILURE_SYSTEM. */
enum failure_code spawn_failure_set_early(struct failure *failure, int system_error);

#endif
