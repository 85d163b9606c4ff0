/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <limits.h>

#include "core/rendezvous/rendezvous_delegation.h"

static void each_node_of_the_round_has_its_ranks(void **state) {
    (void)state;
    struct rendezvous_ranking ranking = {0};
    const struct node_role roles[] = {{"trainer", 2}, {"reader", 1}, {"trainer", 3}};
    const struct rank_assignment last = {3, 6, 2, 5};
    assert_true(rendezvous_ranking_compute(&ranking, 4, roles, 3));
    struct rank_assignment found = rendezvous_ranking_of(&ranking, 4, 2);
    assert_memory_equal(&found, &last, sizeof last);
    assert_int_equal(rendezvous_ranking_of(&ranking, 4, 1).role_world_size, 1);
    assert_int_equal(rendezvous_ranking_of(&ranking, 4, 3).world_size, 0);
    assert_int_equal(rendezvous_ranking_of(&ranking, 4, -1).world_size, 0);
    assert_int_equal(rendezvous_ranking_of(&ranking, 5, 0).world_size, 0);
    rendezvous_ranking_clear(&ranking);
    assert_int_equal(rendezvous_ranking_of(&ranking, 0, 0).world_size, 0);
}

static void without_all_roles_there_are_no_ranks(void **state) {
    (void)state;
    struct rendezvous_ranking ranking = {0};
    const struct node_role known[] = {{"trainer", 2}, {"trainer", 1}};
    const struct node_role unknown[] = {{"trainer", 2}, {NULL, 0}};
    const struct node_role too_many[] = {{"trainer", INT_MAX}, {"trainer", 1}};
    assert_true(rendezvous_ranking_compute(&ranking, 4, known, 2));
    assert_false(rendezvous_ranking_compute(&ranking, 4, unknown, 2));
    assert_int_equal(rendezvous_ranking_of(&ranking, 4, 0).world_size, 0);
    assert_false(rendezvous_ranking_compute(&ranking, 4, too_many, 2));
    assert_false(rendezvous_ranking_compute(&ranking, 4, known, 0));
    rendezvous_ranking_clear(&ranking);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_node_of_the_round_has_its_ranks),
    cmocka_unit_test(without_all_roles_there_are_no_ranks),
};

UNIT_TESTS(tests)
