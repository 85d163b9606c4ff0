/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers of one node during one attempt: what became of each, and the failures in the order
 * in which they were observed. It starts and stops nobody. The order and the choice of the root
 * cause match torch/distributed/elastic/multiprocessing/errors/__init__.py
 * ChildFailedError.get_first_failure, with one difference: a worker that died from the signal which
 * stopped the group is the root cause only when there is no other candidate. */
#ifndef MUSTER_CORE_WORKER_GROUP_H
#define MUSTER_CORE_WORKER_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/process_exit.h"

enum worker_state {
    WORKER_RUNNING,   /* starting or running */
    WORKER_SUCCEEDED, /* exited with 0 */
    WORKER_FAILED,    /* anything else, also "could not be started" and "hangs in the kernel" */
};

struct worker_failure {
    int local_rank;
    struct wall_time observed;
    struct process_exit exit; /* meaningless with a start_message, and when stuck */
    char *start_message;      /* why the worker could not be started, or NULL when it ran */
    struct duration stuck;    /* how long it had hung in the kernel; zero when it ended itself */
    bool is_from_our_signal;  /* it died from the signal that stopped the group */
    bool has_error_time;      /* the worker wrote an error file … */
    int64_t error_seconds;    /* … with this timestamp, Unix seconds */
};

struct worker_group {
    size_t count;
    enum worker_state *states; /* by local rank */
    size_t running_count;
    struct worker_failure *failures; /* in observed order; one per failed worker */
    size_t failure_count;
};

/* `count` workers, all WORKER_RUNNING. */
void worker_group_init(struct worker_group *group, size_t count);
void worker_group_clear(struct worker_group *group);

/* A new attempt: everybody runs again, earlier failures are forgotten. */
void worker_group_reset(struct worker_group *group);

/* Records the end of a worker. False, and nothing changes, for a rank that does not run. */
bool worker_group_record_exit(struct worker_group *group, int local_rank, struct process_exit exit,
    struct wall_time observed, bool is_from_our_signal);

/* Records that a worker could not be started; copies the message. False as above. */
bool worker_group_record_start_failure(
    struct worker_group *group, int local_rank, const char *message, struct wall_time observed);

/* Records that a worker hangs in the kernel and is given up; that it may end after all is of no
 * interest any more. False as above. */
bool worker_group_record_stuck(
    struct worker_group *group, int local_rank, struct duration stuck, struct wall_time observed);

bool worker_group_has_failure(const struct worker_group *group);
bool worker_group_is_running(const struct worker_group *group);
/* Every worker exited with 0. */
bool worker_group_has_succeeded(const struct worker_group *group);

/* Notes the timestamp in a failed worker's error file; later calls replace it. Ranks that did not
 * fail are ignored. */
void worker_group_set_error_time(struct worker_group *group, int local_rank, int64_t seconds);

/* The failure to blame, as an index into `failures`; SIZE_MAX when nobody failed. A worker that
 * could not be started comes first; then the smallest whole second, taken from the error file if
 * there is one and from the observation if not; then the first observed. */
size_t worker_group_root_cause(const struct worker_group *group);

#endif
