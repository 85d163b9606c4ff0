/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a whole job hangs. A node tells that its workers stand still
 * (core/telling/progress_watch) and where they are. The host of the job's store knows which nodes
 * take steps (core/telling/chronicle_status). When all of these stand still in one round, the job
 * hangs, and one of its ranks is to blame, as far as can be told from where they all are. As long
 * as one node takes steps, it does not. Where the host does not know all nodes, as those of
 * torchrun, each of the world has to stand still. */
#ifndef MUSTER_CORE_TELLING_JOB_HANG_H
#define MUSTER_CORE_TELLING_JOB_HANG_H

#include "base/duration.h"
#include "core/telling/chronicle_status.h"
#include "core/telling/folded_stacks.h"

/* What a node may tell. */
#define STANDSTILL_PLACES_MAXIMUM 64
#define STANDSTILL_RANKS_MAXIMUM 4096

/* The workers of a node take no steps. A zeroed struct is valid. */
struct standstill {
    int node_rank;
    int64_t round;
    struct duration silence; /* zero: they take steps again */
    struct folded_stacks places;
};

void standstill_clear(struct standstill *standstill);

/* The job hangs. A zeroed struct is valid. */
struct job_hang {
    int64_t round;
    struct duration silence; /* since the last step of all */
    int rank;                /* that is to blame */
    char *what;  /* "no rank has taken a step for 61.2 s: rank 417 in read (data.py:88); …" */
    char *where; /* the place of that rank */
};

void job_hang_clear(struct job_hang *hang);

/* Of these ranks together. There is at least one place. */
void job_hang_describe(struct folded_stacks *places, struct duration silence, int64_t round,
    struct job_hang *out_hang);

struct job_hang_watch;

struct job_hang_watch *job_hang_watch_new(void);
/* Accepts NULL. */
void job_hang_watch_free(struct job_hang_watch *watch);

/* A node has told this. It is left empty. */
void job_hang_watch_take(struct job_hang_watch *watch, struct standstill *told_taken);

/* Whether the job hangs, of which this is the status. What was told is forgotten then. The caller
 * clears the result. */
bool job_hang_watch_judge(
    struct job_hang_watch *watch, const struct chronicle_status *status, struct job_hang *out_hang);

#endif
