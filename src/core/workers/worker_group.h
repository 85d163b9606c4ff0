/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers of one node during one attempt: the state of each worker, and the failures in the
 * order in which they were observed. This module starts and stops no worker. The order and the
 * choice of the root cause match torch/distributed/elastic/multiprocessing/errors/__init__.py
 * ChildFailedError.get_first_failure, with one difference: a worker that died from the signal which
 * stopped the group is the root cause only when no other worker failed. */
#ifndef MUSTER_CORE_WORKERS_WORKER_GROUP_H
#define MUSTER_CORE_WORKERS_WORKER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"

/* Computes the global ranks and role ranks of all workers from the role and the worker count of
 * every node. Global ranks are assigned to the nodes in the order of their group ranks; role ranks
 * in the same order among the nodes of the role. Nodes may differ in worker count and role. Matches
 * SimpleElasticAgent._assign_worker_ranks in torch/distributed/elastic/agent/server/api.py. */

/* The role and worker count of one node. Its index in the array is its group rank. */
struct node_role {
    const char *role; /* borrowed */
    int local_world_size;
};

/* What a node tells the other nodes about itself. */
struct role_info {
    char *role;
    int local_world_size;
    int group_rank;
    int muster_version; /* 0: the agent is not Muster's */
    char *addresses;    /* of the node's machine, parted by blanks; NULL: it has not told them */
};

void role_info_clear(struct role_info *info);

/* The ranks of a node's workers: worker i has the global rank base_rank + i and the role rank
 * role_base_rank + i. */
struct rank_assignment {
    int base_rank;
    int world_size;
    int role_base_rank;
    int role_world_size;
};

/* Fills `out_assignments[0..count-1]`. FAILURE_INVALID when a node has no worker. FAILURE_LIMIT
 * when the world size would exceed INT_MAX. After a failure nothing was written. */
__attribute__((warn_unused_result)) enum failure_code rank_assignment_compute(
    const struct node_role *nodes, size_t count, struct rank_assignment *out_assignments);

/* How a process ended, as the kernel reports it to the parent. The host floor fills in these
 * values. */

struct process_exit {
    bool is_signal;       /* the process ended by a signal, else by exit() */
    int value;            /* the exit code (0-255), or the signal number */
    bool has_dumped_core; /* only set with is_signal */
};

/* The exit code by Python's convention, which error files and torchrun's reports use: a signal is a
 * negative code. */
static inline int process_exit_python_code(struct process_exit exit) {
    return exit.is_signal ? -exit.value : exit.value;
}

enum worker_state {
    WORKER_RUNNING,   /* starting or running */
    WORKER_SUCCEEDED, /* exited with 0 */
    WORKER_FAILED,    /* any other end; also when it could not be started or hangs in the kernel */
};

struct worker_failure {
    int local_rank;
    struct wall_time observed;
    struct process_exit exit; /* not set with a start_message, and when stuck */
    char *start_message;      /* why the worker could not be started; NULL when it ran */
    struct duration stuck;    /* how long it hung in the kernel; zero when it ended */
    bool is_from_our_signal;  /* it died from the signal that stopped the group */
    bool is_ending;           /* it is known how it ends, but it has not ended */
    bool has_error_time;      /* the worker wrote an error file */
    int64_t error_seconds;    /* the timestamp in the error file, Unix seconds */
};

struct worker_group {
    size_t count;
    enum worker_state *states; /* by local rank */
    size_t running_count;
    struct worker_failure *failures; /* in the order of observation; one per failed worker */
    size_t failure_count;
};

/* All `count` workers are WORKER_RUNNING. */
void worker_group_init(struct worker_group *group, size_t count);
void worker_group_clear(struct worker_group *group);

/* Begins a new attempt: all workers run again, and earlier failures are forgotten. */
void worker_group_reset(struct worker_group *group);

/* Records the end of a worker. Returns false, and changes nothing, for a worker that is not
 * running. Of one that is known to be ending only the exit is recorded, and false is returned. */
bool worker_group_record_exit(struct worker_group *group, int local_rank, struct process_exit exit,
    struct wall_time observed, bool is_from_our_signal);

/* Records how a worker ends before it has ended, which the kernel may tell early; observed then.
 * Its end is recorded as well, which adds no failure. Returns false, and changes nothing, for a
 * worker that is not running, and when it ends with success. */
bool worker_group_record_ending(struct worker_group *group, int local_rank,
    struct process_exit exit, struct wall_time observed);

/* Records that a worker could not be started. Copies the message. Returns false as above. */
bool worker_group_record_start_failure(
    struct worker_group *group, int local_rank, const char *message, struct wall_time observed);

/* Records that a worker hangs in the kernel and was given up. When it ends after all, its end is
 * not recorded. Returns false as above. */
bool worker_group_record_stuck(
    struct worker_group *group, int local_rank, struct duration stuck, struct wall_time observed);

bool worker_group_has_failure(const struct worker_group *group);
/* Whether every worker exited with 0. */
bool worker_group_has_succeeded(const struct worker_group *group);

/* Notes the timestamp in the error file of a failed worker. A later call replaces it. Ignores
 * workers that did not fail. */
void worker_group_set_error_time(struct worker_group *group, int local_rank, int64_t seconds);

/* The failure that is the root cause, as an index into `failures`; SIZE_MAX when no worker failed.
 * A worker that could not be started comes first. Then the smallest time in whole seconds decides,
 * which is from the error file if there is one, and else from the observation. Then the order of
 * observation decides. */
size_t worker_group_root_cause(const struct worker_group *group);

/* Measures how long one worker has been in uninterruptible sleep (state D). Such a worker hangs in
 * the kernel, on a device or a dead file server, and not even SIGKILL ends it. This module reads no
 * process and no clock. Matches LocalElasticAgent._update_uninterruptible_dwell in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */

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
