/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the workers' interpreter with an empty program, to see whether the way to it leads through
 * the hook on this node. Without the hook a standby worker would run the workers' program at once.
 * Where workers have run, their hello tells; a node that is new has none. */
#ifndef MUSTER_AGENT_STANDBY_STANDBY_PROBE_H
#define MUSTER_AGENT_STANDBY_STANDBY_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/text.h"

struct agent_standby_starter;

struct standby_probe {
    pid_t pid;  /* 0: it does not run */
    int record; /* when it runs */
};

/* Starts it as a spare of the starter's family. `environment` is that of a worker. */
__attribute__((warn_unused_result)) enum failure_code standby_probe_start(
    struct standby_probe *probe, const struct agent_standby_starter *starter,
    const struct text_list *environment, const char *hook_directory, struct failure *failure);

/* Its process has ended. Returns whether the hook was reached. */
bool standby_probe_end(struct standby_probe *probe);

/* Whether the process has said hello in its record. */
bool standby_probe_has_hello(int record, pid_t pid);

#endif
