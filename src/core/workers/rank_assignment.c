/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/rank_assignment.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/table.h"

/* The worker counts of one role. */
struct role_total {
    int size;     /* workers on all nodes */
    int assigned; /* workers on the nodes so far */
};

void role_info_clear(struct role_info *info) {
    free(info->addresses);
    free(info->role);
    *info = (struct role_info){0};
}

static enum failure_code measure_world(
    const struct node_role *nodes, size_t count, int *out_world_size) {
    int64_t world_size = 0;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].local_world_size < 1) {
            return FAILURE_INVALID;
        }
        world_size += nodes[i].local_world_size;
        if (world_size > INT_MAX) {
            return FAILURE_LIMIT;
        }
    }
    *out_world_size = (int)world_size;
    return FAILURE_NONE;
}

static struct table *total_roles(const struct node_role *nodes, size_t count) {
    struct table *roles = table_new(free);
    for (size_t i = 0; i < count; i++) {
        struct slice key = slice_from_string(nodes[i].role);
        struct role_total *total = table_get(roles, key);
        if (total == NULL) {
            total = memory_allocate(sizeof *total);
            table_put(roles, key, total);
        }
        total->size += nodes[i].local_world_size;
    }
    return roles;
}

enum failure_code rank_assignment_compute(
    const struct node_role *nodes, size_t count, struct rank_assignment *out_assignments) {
    int world_size;
    enum failure_code code = measure_world(nodes, count, &world_size);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct table *roles = total_roles(nodes, count);
    int base_rank = 0;
    for (size_t i = 0; i < count; i++) {
        struct role_total *total = table_get(roles, slice_from_string(nodes[i].role));
        out_assignments[i] = (struct rank_assignment){
            .base_rank = base_rank,
            .world_size = world_size,
            .role_base_rank = total->assigned,
            .role_world_size = total->size,
        };
        base_rank += nodes[i].local_world_size;
        total->assigned += nodes[i].local_world_size;
    }
    table_free(roles);
    return FAILURE_NONE;
}
