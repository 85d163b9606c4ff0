/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the environment of one worker: the environment of the agent, and the variables from which
 * a script learns its place in the job. Names and spellings are TorchElastic's, see
 * LocalElasticAgent._start_workers in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */
#ifndef MUSTER_CORE_WORKERS_WORKER_ENVIRONMENT_H
#define MUSTER_CORE_WORKERS_WORKER_ENVIRONMENT_H

#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/rank_assignment.h"

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

#endif
