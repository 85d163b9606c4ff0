/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures how long one worker has been in uninterruptible sleep (state D). Such a worker hangs in
 * the kernel, on a device or a dead file server, and not even SIGKILL ends it. This module reads no
 * process and no clock. Matches LocalElasticAgent._update_uninterruptible_dwell in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */
#ifndef MUSTER_CORE_AGENT_STUCK_WATCH_H
#define MUSTER_CORE_AGENT_STUCK_WATCH_H

#include <stdbool.h>

#include "base/duration.h"

/* A zeroed struct is valid: the worker was not seen stuck. */
struct stuck_watch {
    bool is_stuck;
    bool has_timed_out;
    struct instant since;
};

enum stuck_verdict {
    STUCK_NOTHING_NEW,
    STUCK_BEGINS,    /* seen in state D first, or again after another state */
    STUCK_TIMED_OUT, /* seen only in state D for `timeout`; returned once */
};

/* Takes the state letter of /proc/<pid>/stat as seen at `now`. */
enum stuck_verdict stuck_watch_see(
    struct stuck_watch *watch, char state, struct instant now, struct duration timeout);

#endif
