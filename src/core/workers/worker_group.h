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
#include "base/text.h"
#include "core/launch/launch_config.h"

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

/* Builds the command line of one worker. Matches config_from_args in torch/distributed/run.py, and
 * replace_macros in torch/distributed/elastic/utils/api.py: in arguments, but not in argv[0],
 * `${local_rank}` and `$local_rank` become the local rank, and `$$` becomes a dollar. All other
 * text stays. */

/* Builds the environment of one worker: the environment of the agent, and the variables from which
 * a script learns its place in the job. Names and spellings are TorchElastic's, see
 * LocalElasticAgent._start_workers in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */

/* The place of this node in the job, for one start of its workers. */
struct node_placement {
    const char *run_id;
    const char *node;           /* its identity in a dynamic rendezvous, else NULL */
    const char *master_address; /* MASTER_ADDR, without brackets */
    int master_port;
    int group_rank;
    int group_world_size;
    int local_world_size;
    struct rank_assignment ranks;
    int attempt;   /* restarts that the job has used: TORCHELASTIC_RESTART_COUNT */
    int64_t round; /* of a dynamic rendezvous, else 0; a new round may have the same attempt */
};

/* Fills `out_environment`: a copy of `inherited`, in which the variables are set. `error_file` is
 * the path to which the worker may write its error file; NULL or "" for none. FAILURE_INVALID when
 * the configuration asks for virtual local ranks and CUDA_VISIBLE_DEVICES names too few devices. */
__attribute__((warn_unused_result)) enum failure_code worker_environment_build(
    const struct launch_config *config, const struct node_placement *placement, int local_rank,
    const char *error_file, const struct text_list *inherited, struct text_list *out_environment);

/* Appends argv to `out_arguments`. The caller looks argv[0] up on the worker's PATH. `python` is
 * the interpreter: config->python if it is set, else the one that was found on PATH.
 *
 * With --run-path the script runs under runpy.run_path in a new interpreter. Where torch can be
 * imported it also runs under torch's @record, so that an uncaught exception leaves an error file,
 * as with torchrun. */
void worker_command_build(const struct launch_config *config, const char *python, int local_rank,
    struct text_list *out_arguments);

/* The name of the job in the failure report: the script or module, the program of --no-python, or
 * "run_script_path" with --run-path. Matches _get_entrypoint_name in
 * torch/distributed/launcher/api.py. The text belongs to `config`. */
const char *worker_command_display_name(const struct launch_config *config);

/* Whether the workers are Python's: a script, a module, or a --no-python program that is called
 * python…. */
bool worker_command_is_python(const struct launch_config *config);

#endif
