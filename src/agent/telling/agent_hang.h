/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out that the job hangs (--hang-after). A node whose workers stand still looks where they
 * are, and tells the host of the job's store. The host knows when all nodes that take steps stand
 * still (core/telling/job_hang), and leaves in its store what it has found. The nodes that stand
 * still ask for it there. Nobody asks or tells anything while steps are taken.
 *
 * Where no agent hosts the store of several nodes, a node knows of itself alone. */
#ifndef MUSTER_AGENT_TELLING_AGENT_HANG_H
#define MUSTER_AGENT_TELLING_AGENT_HANG_H

#include "agent/failure/agent_evidence.h"
#include "agent/telling/agent_job_chronicle.h"
#include "agent/workers/agent_workers.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/telling/job_hang.h"
#include "host/loop/event_loop.h"

struct agent_hang;

struct agent_hang_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct log *log;
    const struct node_placement *placement;
    const struct agent_workers *workers;
    int worker_count;
    struct agent_evidence *evidence;
    struct agent_job_chronicle *job;
    /* The job hangs. `is_of_job`: no rank of it takes steps; else none of this node does. Tells the
     * local rank of a worker that was sent SIGKILL for that, or -1. */
    int (*found)(void *context, const struct job_hang *hang, bool is_of_job);
    /* That worker does not die of it. */
    void (*stuck)(void *context, int local_rank, struct duration how_long);
    void *context;
};

/* NULL when the job does not ask for it. The functions below accept that. */
struct agent_hang *agent_hang_new(
    struct event_loop *loop, const struct agent_hang_settings *settings);
/* When neither its evidence nor the connection to the job's store answers any more. */
void agent_hang_free(struct agent_hang *hang);

/* No worker of this node has taken a step for so long; or zero: one has. */
void agent_hang_stand(struct agent_hang *hang, struct duration silence);
/* The workers end. */
void agent_hang_end(struct agent_hang *hang);

/* As the host: another node has told that its workers stand still. */
void agent_hang_take_told(struct agent_hang *hang, struct slice told);

#endif
