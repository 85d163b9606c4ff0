/* SPDX-License-Identifier: BSD-3-Clause */
/* Global and role ranks from what every node brings: nodes count in group-rank order, a role counts
 * only the nodes of the same role. Nodes may differ in worker count and role. Matches
 * SimpleElasticAgent._assign_worker_ranks in torch/distributed/elastic/agent/server/api.py. */
#ifndef MUSTER_CORE_RANK_ASSIGNMENT_H
#define MUSTER_CORE_RANK_ASSIGNMENT_H

#include <stddef.h>

#include "base/failure.h"

/* What one node brings; its place in the array is its group rank. */
struct node_role {
    const char *role; /* borrowed */
    int local_world_size;
};

/* What a node told the others about itself. */
struct role_info {
    char *role;
    int local_world_size;
    int group_rank;
    int muster_version; /* 0: an agent of another kind */
};

void role_info_clear(struct role_info *info);

/* What a node is assigned: worker i has global rank base_rank + i and role rank role_base_rank + i.
 */
struct rank_assignment {
    int base_rank;
    int world_size;
    int role_base_rank;
    int role_world_size;
};

/* Fills `out_assignments[0..count-1]`. FAILURE_INVALID when a node has no worker, FAILURE_LIMIT
 * when the world would pass INT_MAX; then nothing is written. */
__attribute__((warn_unused_result)) enum failure_code rank_assignment_compute(
    const struct node_role *nodes, size_t count, struct rank_assignment *out_assignments);

#endif
