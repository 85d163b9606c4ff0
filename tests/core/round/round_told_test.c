/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "round_fixture.h"

static struct round_event released(
    const struct scene *scene, struct rank_assignment ranks, const char *address) {
    struct round_event event = plain(scene, ROUND_EVENT_RELEASED);
    event.released.ranks = ranks;
    event.released.master_address = address;
    event.released.master_port = address != NULL ? 7 : 0;
    return event;
}

TEST(nobody_joins_a_held_round_before_it_is_released) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    scene.delegates = true;
    scene.is_held = true;
    begin(&scene, 0, "ab", 'b', "arm_timer at=600.000");
    step(&scene, released(&scene, (struct rank_assignment){1, 2, 1, 2}, "a"),
        "disarm_timer; joined 0 rank=1 of 2 [1, 2, 1, 2] a:7 restarts=2");
    step(&scene, released(&scene, (struct rank_assignment){1, 2, 1, 2}, "a"), "");
    begin(&scene, 1, "ab", 'b', "arm_timer at=600.000");
    step(&scene, released(&scene, (struct rank_assignment){1, 2, 1, 2}, NULL), "wait 1/address");
    begin(&scene, 2, "ab", 'b', "cancel_wait; disarm_timer; arm_timer at=600.000");
    step(&scene, released(&scene, (struct rank_assignment){2, 2, 1, 2}, "a"),
        "disarm_timer; join_failed the host of the job's store has told ranks that make no sense");
}

TEST(rank_0_of_a_held_round_opens_its_store_meanwhile) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    scene.delegates = true;
    scene.is_held = true;
    begin(&scene, 3, "ab", 'a', "arm_timer at=600.000; open_worker_store fresh");
    step(&scene, opened(&scene, "a", 2), "publish 3/publication a:2 of " A "; opened a:2");
    step(&scene, released(&scene, (struct rank_assignment){0, 2, 0, 2}, "a"),
        "disarm_timer; joined 3 rank=0 of 2 [0, 2, 0, 2] a:2 restarts=2; clear 0 to 1 of 2");
}

TEST(a_release_that_comes_too_late_is_ignored) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    scene.delegates = true;
    scene.is_held = true;
    begin(&scene, 3, "ab", 'b', "arm_timer at=600.000");
    scene.seconds = 600;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=602.000; disarm_timer; join_failed round 3 did not come about within 600 s: "
        "not all of its nodes are ready: old workers still end on some of them, or their agents "
        "stand still");
    step(&scene, released(&scene, (struct rank_assignment){1, 2, 1, 2}, "a"), "");
    begin(&scene, 4, "ab", 'b', "arm_timer at=1200.000");
    scene.round = 3;
    step(&scene, released(&scene, (struct rank_assignment){1, 2, 1, 2}, "a"), "");
}

TEST(nodes_that_were_told_their_ranks_exchange_the_address_alone) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    scene.ranks = (struct rank_assignment){1, 2, 1, 2};
    begin(&scene, 0, "ab", 'b', "arm_timer at=600.000; wait 0/address");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/address");
    step(&scene,
        values(&scene, ROUND_KEY_ADDRESS, 0, (struct round_values){.address = "a", .port = 1}),
        "disarm_timer; joined 0 rank=1 of 2 [1, 2, 1, 2] a:1 restarts=2");
    scene.ranks = (struct rank_assignment){0, 2, 0, 2};
    begin(&scene, 1, "ab", 'a', "arm_timer at=600.000; open_worker_store fresh");
    step(&scene, opened(&scene, "a", 2),
        "publish 1/publication a:2 of " A "; opened a:2; disarm_timer; "
        "joined 1 rank=0 of 2 [0, 2, 0, 2] a:2 restarts=2");
    scene.ranks = (struct rank_assignment){2, 2, 0, 2};
    begin(&scene, 2, "ab", 'a',
        "join_failed the host of the job's store has told ranks that make no sense");
}

TEST(a_node_that_was_told_where_the_workers_meet_asks_for_nothing) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    scene.delegates = true;
    scene.address = "a";
    scene.ranks = (struct rank_assignment){1, 2, 1, 2};
    begin(&scene, 0, "ab", 'b',
        "arm_timer at=600.000; disarm_timer; joined 0 rank=1 of 2 [1, 2, 1, 2] a:7 restarts=2");
}
