/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_scene.h"

#include "core/succession/succession_machine.h"

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

#define FENCED                                                                                     \
    "fenced neither the host of the job's store nor its register was heard of for fence_timeout"

/* Node b has followed a, in a committed world of a, b and c, and has lost it to silence. */
static struct scene alone(void) {
    struct scene scene = scene_of("b");
    struct rendezvous_state record = world(4, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "dial at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    rendezvous_state_clear(&record);
    return scene;
}

static void take_renewal(struct scene *scene, const char *text, const char *expected) {
    step(scene, (struct succession_event){.kind = SUCCESSION_EVENT_RENEWAL, .renewal = text},
        expected);
}

/* It tells nothing of other terms. */
static void a_renewal_does_not_put_the_fence_off(void **state) {
    (void)state;
    struct scene scene = alone();
    for (int second = 1; second < 5; second++) {
        scene.seconds = second;
        take_renewal(&scene, second % 2 == 0 ? "even" : "odd", "");
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1");
    }
    scene.seconds = 5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, FENCED);
    scene_clear(&scene);
}

/* What takes long to find out is not given as much time again. */
static void the_fence_counts_from_the_last_sign_of_a_host_that_is_silent(void **state) {
    (void)state;
    struct scene scene = scene_of("b");
    struct rendezvous_state record = world(4, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "dial at=3.000");
    scene.seconds = 1;
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    scene.seconds = 24.5;
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=27.500; read_register");
    scene.seconds = 25.9;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
    scene.seconds = 26;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, FENCED);
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

/* What was committed after it was asked for, it need not tell. */
static void a_late_answer_puts_the_fence_off_from_the_moment_of_the_question(void **state) {
    (void)state;
    struct scene scene = alone();
    struct rendezvous_state record = world(4, "abc");
    scene.seconds = 3;
    take_renewal(&scene, "1", "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "");
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    scene.seconds = 7;
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "");
    scene.seconds = 7.9;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
    scene.seconds = 8;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, FENCED);
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_claim_in_the_order_of_their_ranks_without_the_host),
    cmocka_unit_test(a_node_outside_the_world_claims_after_all_of_it),
    cmocka_unit_test(a_renewal_does_not_put_the_fence_off),
    cmocka_unit_test(the_fence_counts_from_the_last_sign_of_a_host_that_is_silent),
    cmocka_unit_test(a_late_answer_puts_the_fence_off_from_the_moment_of_the_question),
};

UNIT_TESTS(tests)
