/* SPDX-License-Identifier: BSD-3-Clause */
/* What Slurm's variables say about the step that this process is a task of: which nodes it has, and
 * how many tasks run on each. They are read, not judged: what a job makes of them is up to
 * options/launch/config_builder. */
#ifndef MUSTER_OPTIONS_SLURM_SLURM_STEP_H
#define MUSTER_OPTIONS_SLURM_SLURM_STEP_H

#include <stdbool.h>

#include "base/text.h"

/* Slurm's short form of a list of hosts: "node[001-003,7],login", "rack[1-2]-[0-3].ib". Only the
 * names that Slurm itself writes into variables are read; its other spellings (blanks, strides,
 * letters as digits) are not. Nothing is asked of Slurm, so this works where its programs are
 * missing, as in a container. */

/* The longest list and the longest name that are read. */
#define HOSTLIST_MAXIMUM_HOSTS 65536
#define HOSTLIST_MAXIMUM_NAME 253

/* Appends the names to `out_hosts`, in the list's order; the caller clears it. FAILURE_MALFORMED
 * for other text (an empty one, too), FAILURE_LIMIT beyond the sizes above; `out_hosts` is then
 * unchanged. */
__attribute__((warn_unused_result)) enum failure_code hostlist_expand(
    const char *text, struct text_list *out_hosts);

struct slurm_step {
    int64_t job;
    int64_t step;
    struct text_list hosts; /* the names of its nodes, in Slurm's order */
    char *node_list;        /* the same as Slurm wrote them */
    char *node;             /* the name of this node; NULL: not known */
    int64_t tasks_per_node; /* the largest number of tasks on one node */
    int64_t gpus;           /* of the job on this node; 0: none, or not known */
};

/* How many nodes the variables say that the step has, and the job; 0 where they say nothing. */
int64_t slurm_step_node_count(const struct text_list *environment);
int64_t slurm_job_node_count(const struct text_list *environment);

/* Whether the job has parts of several kinds (a heterogeneous job). The variables of each part
 * describe that part alone. */
bool slurm_job_is_heterogeneous(const struct text_list *environment);

/* Reads the step. FAILURE_INVALID when a variable is missing, cannot be read or contradicts
 * another; the reason names it and its value. The caller clears the step in every case. */
__attribute__((warn_unused_result)) enum failure_code slurm_step_read(
    const struct text_list *environment, struct slurm_step *out_step, struct text *out_reason);

void slurm_step_clear(struct slurm_step *step);

#endif
