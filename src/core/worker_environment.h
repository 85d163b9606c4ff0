/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of one worker: the agent's own, overlaid with the variables by which a script
 * learns its place. Names and spellings are TorchElastic's, see LocalElasticAgent._start_workers in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */
#ifndef MUSTER_CORE_WORKER_ENVIRONMENT_H
#define MUSTER_CORE_WORKER_ENVIRONMENT_H

#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/launch_config.h"
#include "core/rank_assignment.h"

/* Where this node stands in the job, for one start of its workers. */
struct node_placement {
    const char *run_id;
    const char *node;           /* its name in a dynamic rendezvous, else NULL */
    const char *master_address; /* MASTER_ADDR, without brackets */
    int master_port;
    int group_rank;
    int group_world_size;
    int local_world_size;
    struct rank_assignment ranks;
    int attempt;   /* restarts the job has used so far: TORCHELASTIC_RESTART_COUNT */
    int64_t round; /* of a dynamic rendezvous, where a new one may keep the attempt; else 0 */
};

/* Variables are set in `out_environment`, which starts as a copy of `inherited`. `error_file` is
 * where the worker may leave its error file; NULL or "" for none. FAILURE_INVALID when virtual
 * local ranks are asked for and CUDA_VISIBLE_DEVICES names too few devices. */
__attribute__((warn_unused_result)) enum failure_code worker_environment_build(
    const struct launch_config *config, const struct node_placement *placement, int local_rank,
    const char *error_file, const struct text_list *inherited, struct text_list *out_environment);

#endif
