/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_ranking.h"

#include <stdlib.h>

#include "base/memory.h"

void rendezvous_ranking_clear(struct rendezvous_ranking *ranking) {
    free(ranking->items);
    *ranking = (struct rendezvous_ranking){0};
}

static bool are_known(const struct node_role *roles, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (roles[i].role == NULL) {
            return false;
        }
    }
    return count > 0;
}

bool rendezvous_ranking_compute(struct rendezvous_ranking *ranking, int64_t round,
    const struct node_role *roles, size_t count) {
    rendezvous_ranking_clear(ranking);
    if (!are_known(roles, count)) {
        return false;
    }
    struct rank_assignment *items = memory_allocate(count * sizeof *items);
    if (rank_assignment_compute(roles, count, items) != FAILURE_NONE) {
        free(items);
        return false;
    }
    *ranking = (struct rendezvous_ranking){.round = round, .count = count, .items = items};
    return true;
}

struct rank_assignment rendezvous_ranking_of(
    const struct rendezvous_ranking *ranking, int64_t round, int64_t group_rank) {
    bool is_known = ranking->items != NULL && ranking->round == round && group_rank >= 0 &&
                    (uint64_t)group_rank < ranking->count;
    return is_known ? ranking->items[group_rank] : (struct rank_assignment){0};
}
