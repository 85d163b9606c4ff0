/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of all workers of one round, computed from the roles of its nodes. The host of the
 * store computes them for the nodes that delegate to it, when a round begins in which all of them
 * do, and tells each node its own. Then these nodes need not tell each other (core/round). The
 * struct is one part of a rendezvous machine. Only this module changes it; others read it. The
 * ranks are those of SimpleElasticAgent._assign_worker_ranks in
 * torch/distributed/elastic/agent/server/api.py, where each node asks the store for its own. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_RANKING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/workers/rank_assignment.h"

/* A zeroed struct is valid: there are no ranks. */
struct rendezvous_ranking {
    int64_t round;
    size_t count;
    struct rank_assignment *items; /* by group rank; NULL: there are none */
};

void rendezvous_ranking_clear(struct rendezvous_ranking *ranking);

/* Computes the ranks of a round from the roles by group rank. A node without a role, or whose
 * number of workers is none, makes it fail. Returns whether there are ranks now. */
bool rendezvous_ranking_compute(
    struct rendezvous_ranking *ranking, int64_t round, const struct node_role *roles, size_t count);

/* The ranks of this node in this round. Its world size is 0 where there are none. */
struct rank_assignment rendezvous_ranking_of(
    const struct rendezvous_ranking *ranking, int64_t round, int64_t group_rank);

#endif
