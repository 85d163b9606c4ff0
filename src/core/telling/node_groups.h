/* SPDX-License-Identifier: BSD-3-Clause */
/* Folds the nodes of a job: those that stand equally are one group, so that ten thousand nodes are
 * a few lines. The odd ones come first. Names are ranges, as Slurm writes them:
 * gpu-n[000-051,053-899]. */
#ifndef MUSTER_CORE_TELLING_NODE_GROUPS_H
#define MUSTER_CORE_TELLING_NODE_GROUPS_H

#include <stddef.h>

#include "base/text.h"
#include "core/telling/chronicle_status.h"

/* Of which the last one has all the rest, where there are more. */
#define NODE_GROUPS_MAXIMUM ((size_t)64)

struct node_group {
    enum chronicle_node_state state;
    int failed_first;
    bool is_mixed;         /* all the rest: state and failed_first are those of one of them */
    size_t count;          /* of nodes, which are here by their places in the status: */
    const size_t *members; /* in the order of their names */
    struct wall_time said; /* by the one that has told least lately; zero: one has never */
};

struct node_groups {
    struct node_group groups[NODE_GROUPS_MAXIMUM];
    size_t count;
    size_t *places; /* its own */
};

/* The caller clears them, and keeps the status. */
void node_groups_make(const struct chronicle_status *status, struct node_groups *out_groups);
void node_groups_clear(struct node_groups *groups);

/* Appends the names, no more ranges than `most`; how many more nodes there are is said. */
void node_groups_append_names(const struct chronicle_status *status, const struct node_group *group,
    size_t most, struct text *out);

#endif
