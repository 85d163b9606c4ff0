/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent says (wire/telling/agent_line), as the callbacks of a program, and its result. */
#ifndef MUSTER_LIBRARY_AGENT_READING_H
#define MUSTER_LIBRARY_AGENT_READING_H

#include <muster/agent.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "core/telling/event_record.h"

/* For what a node that the program places waits. */
enum agent_waiting {
    AGENT_WAITS_FOR_NOTHING,
    AGENT_WAITS_FOR_ROUND,
    AGENT_WAITS_FOR_OTHERS, /* in the exit barrier */
};

/* Begin with the first; the rest is zero. */
struct agent_reading {
    const struct muster_agent_settings *settings; /* borrowed: the callbacks */
    bool has_group;                               /* the agent has told of one */
    bool has_asked;                               /* for a round */
    enum agent_waiting waiting;
    struct run_group group;
    struct run_result run;
    bool is_complete;                /* the result has been said */
    struct muster_run_result result; /* valid after agent_reading_end; its texts are those of run */
    struct muster_worker_exit *workers;
    struct muster_process_failure *failures;
    struct muster_process_failure root_cause;
};

/* One line, without its newline. May call back. What makes no sense is passed over. */
void agent_reading_take(struct agent_reading *reading, struct slice line);
/* There are no more lines: makes the result. */
void agent_reading_end(struct agent_reading *reading);
void agent_reading_clear(struct agent_reading *reading);

#endif
