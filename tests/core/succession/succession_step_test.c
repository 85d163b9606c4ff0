/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_scene.h"

#include "core/succession/succession_step.h"

/* How many nodes of the world a, b, c, d, whose host was `host`, claim before this one. */
static int turn_of(const char *me, const char *host) {
    struct scene scene = scene_of(me);
    scene.machine->record = world(0, "abcd");
    scene.machine->entry.host = node(host);
    int turn = succession_turn(scene.machine);
    scene_clear(&scene);
    return turn;
}

static void nodes_claim_in_the_order_of_their_ranks_without_the_host(void **state) {
    (void)state;
    assert_int_equal(turn_of("b", "a"), 0);
    assert_int_equal(turn_of("c", "a"), 1);
    assert_int_equal(turn_of("a", "c"), 0);
    assert_int_equal(turn_of("d", "c"), 2);
}

static void a_node_outside_the_world_claims_after_all_of_it(void **state) {
    (void)state;
    assert_int_equal(turn_of("x", "a"), 3);
    assert_int_equal(turn_of("x", "y"), SUCCESSION_TURNS_MAXIMUM);
}

static void a_process_is_known_under_another_name(void **state) {
    (void)state;
    struct node_identity left = node("a");
    struct node_identity right = left;
    right.local_id++;
    assert_true(succession_is_same_process(&left, &right));
    right.pid++;
    assert_false(succession_is_same_process(&left, &right));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_claim_in_the_order_of_their_ranks_without_the_host),
    cmocka_unit_test(a_node_outside_the_world_claims_after_all_of_it),
    cmocka_unit_test(a_process_is_known_under_another_name),
};

TEST_MAIN(tests)
