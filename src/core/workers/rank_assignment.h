/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes the global ranks and role ranks of all workers from the role and the worker count of
 * every node. Global ranks are assigned to the nodes in the order of their group ranks; role ranks
 * in the same order among the nodes of the role. Nodes may differ in worker count and role. Matches
 * SimpleElasticAgent._assign_worker_ranks in torch/distributed/elastic/agent/server/api.py. */
#ifndef MUSTER_CORE_WORKERS_RANK_ASSIGNMENT_H
#define MUSTER_CORE_WORKERS_RANK_ASSIGNMENT_H

#include <stddef.h>

#include "base/failure.h"

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

#endif
