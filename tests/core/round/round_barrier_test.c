/* SPDX-License-Identifier: BSD-3-Clause */
#include "round_fixture.h"

#define ENTER "arm_timer at=5.000; add 0/num_members 1; wait 0/last_member"

static struct scene leaving_scene(void) {
    struct scene scene = joined_scene();
    step(&scene, plain(&scene, ROUND_EVENT_BARRIER_ASKED), ENTER);
    return scene;
}

static struct round_event counted(const struct scene *scene, int64_t count) {
    struct round_event event =
        answer_of(scene, ROUND_EVENT_COUNTED, ROUND_KEY_NUM_MEMBERS, scene->round);
    event.count = count;
    return event;
}

TEST(a_finished_node_waits_for_the_others) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, counted(&scene, 1), "");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "disarm_timer; barrier_passed");
}

TEST(the_last_one_lets_all_go) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, counted(&scene, 2), "set 0/last_member <val_ignored>");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "disarm_timer; barrier_passed");
}

static struct scene scene_of_a_delegate(bool is_host, const char *expected) {
    struct scene scene = scene_new(false, 1);
    struct round_event asked = {.kind = ROUND_EVENT_BARRIER_ASKED, .is_host = is_host};
    scene.delegates = true;
    scene.address = "a";
    scene.ranks = (struct rank_assignment){1, 2, 1, 2};
    begin(&scene, 0, "ab", 'b',
        "arm_timer at=600.000; disarm_timer; joined 0 rank=1 of 2 [1, 2, 1, 2] a:7 restarts=2");
    step(&scene, asked, expected);
    return scene;
}

TEST(a_node_that_delegates_waits_for_no_key) {
    struct scene scene = scene_of_a_delegate(false, "arm_timer at=5.000; add 0/num_members 1");
    step(&scene, counted(&scene, 1), "");
    step(&scene, counted(&scene, 2),
        "set 0/last_member <val_ignored>; disarm_timer; barrier_passed");
    scene_clear(&scene);
    scene =
        scene_of_a_delegate(true, "arm_timer at=5.000; add 0/num_members 1; wait 0/last_member");
    step(&scene, counted(&scene, 2), "set 0/last_member <val_ignored>");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "disarm_timer; barrier_passed");
    scene_clear(&scene);
}

TEST(a_node_in_no_round_passes_no_barrier) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    step(&scene, plain(&scene, ROUND_EVENT_BARRIER_ASKED),
        "barrier_failed this node is in no round");
}

TEST(a_barrier_that_takes_too_long_says_how_many_had_come) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, counted(&scene, 1), "");
    scene.seconds = 4;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED), "");
    scene.seconds = 299;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=300.000; add 0/num_members 0");
    step(&scene, counted(&scene, 1), "");
    scene.seconds = 300;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=302.000; add 0/num_members 0");
    step(&scene, counted(&scene, 1),
        "disarm_timer; barrier_failed 1 of 2 nodes had come to the exit barrier within 300 s");
}

TEST(the_host_of_the_store_waits_as_long_as_the_others_work) {
    CLEARED_BY(scene_clear) struct scene scene = joined_scene();
    struct round_event asked = plain(&scene, ROUND_EVENT_BARRIER_ASKED);
    asked.is_host = true;
    step(&scene, asked, "arm_timer at=5.000; add 0/num_members 1; wait 0/last_member");
    scene.seconds = 300;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=302.000; add 0/num_members 0");
    step(&scene, counted(&scene, 1),
        "arm_timer at=305.000; barrier_late 1 of 2 nodes had come to the exit barrier within 300 "
        "s");
    scene.seconds = 3000;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=3005.000; add 0/num_members 0");
    step(&scene, counted(&scene, 1), "");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "disarm_timer; barrier_passed");
}

TEST(a_store_that_is_silent_does_not_hold_a_node_for_ever) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    scene.seconds = 300;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=302.000; add 0/num_members 0");
    scene.seconds = 302;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "barrier_failed 0 of 2 nodes had come to the exit barrier within 300 s");
}

TEST(whoever_sees_all_counted_lets_them_go) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, counted(&scene, 1), "");
    scene.seconds = 300;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=302.000; add 0/num_members 0");
    step(&scene, counted(&scene, 2),
        "set 0/last_member <val_ignored>; disarm_timer; barrier_passed");
}

TEST(a_last_one_that_could_not_tell_is_noticed) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, counted(&scene, 1), "");
    scene.seconds = 5;
    step(
        &scene, plain(&scene, ROUND_EVENT_TIMER_FIRED), "arm_timer at=10.000; add 0/num_members 0");
    step(&scene, counted(&scene, 2), "set 0/last_member <val_ignored>");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "disarm_timer; barrier_passed");
}

TEST(a_round_that_is_abandoned_calls_the_barrier_off) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "cancel_wait; disarm_timer");
    step(&scene, counted(&scene, 2), "");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "");
}
