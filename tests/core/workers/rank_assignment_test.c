/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <limits.h>

#include "core/workers/worker_group.h"

static void check(struct rank_assignment actual, int base, int world, int role_base, int role) {
    assert_int_equal(actual.base_rank, base);
    assert_int_equal(actual.world_size, world);
    assert_int_equal(actual.role_base_rank, role_base);
    assert_int_equal(actual.role_world_size, role);
}

TEST(nodes_count_in_order_and_roles_by_themselves) {
    static const struct node_role nodes[] = {
        {"trainer", 2}, {"reader", 1}, {"trainer", 4}, {"reader", 3}};
    struct rank_assignment ranks[4];
    assert_int_equal(rank_assignment_compute(nodes, 4, ranks), FAILURE_NONE);
    check(ranks[0], 0, 10, 0, 6);
    check(ranks[1], 2, 10, 0, 4);
    check(ranks[2], 3, 10, 2, 6);
    check(ranks[3], 7, 10, 1, 4);
}

TEST(torchrun_gives_the_same_ranks) {
    /* The ranks that torchrun gives to two nodes: one with 1 worker, and one of another role with 2
     * workers. */
    static const struct node_role nodes[] = {{"trainer", 1}, {"reader", 2}};
    struct rank_assignment ranks[2];
    assert_int_equal(rank_assignment_compute(nodes, 2, ranks), FAILURE_NONE);
    check(ranks[0], 0, 3, 0, 1);
    check(ranks[1], 1, 3, 0, 2);
}

TEST(a_node_without_workers_is_refused) {
    static const struct node_role nodes[] = {{"trainer", 1}, {"trainer", 0}};
    struct rank_assignment ranks[2] = {{.base_rank = 77}};
    assert_int_equal(rank_assignment_compute(nodes, 2, ranks), FAILURE_INVALID);
    assert_int_equal(ranks[0].base_rank, 77);
}

TEST(a_world_too_large_for_int_is_refused) {
    static const struct node_role nodes[] = {{"trainer", INT_MAX}, {"trainer", 1}};
    struct rank_assignment ranks[2];
    assert_int_equal(rank_assignment_compute(nodes, 2, ranks), FAILURE_LIMIT);
}
