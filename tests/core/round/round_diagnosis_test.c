/* SPDX-License-Identifier: BSD-3-Clause */
#include "round_fixture.h"

#define LATE "join_failed round 0 did not come about within 600 s: "

static struct round_event role_checked(const struct scene *scene, int node, bool is_present) {
    struct round_event event = checked(scene, ROUND_KEY_ROLE_INFO, scene->round, is_present);
    event.key.node = node;
    return event;
}

/* Rank 0 of these nodes when its join has timed out. Its store is open. */
static struct scene late_scene(const char *nodes) {
    struct scene scene = scene_new(false, 1);
    CLEARED_BY(text_clear) struct text expected = {0};
    text_append_format(&expected,
        "arm_timer at=600.000; set_role_info 0/role_info/0; open_worker_store fresh; "
        "wait 0/role_infos/%zu",
        strlen(nodes));
    begin(&scene, 0, nodes, nodes[0], text_string(&expected));
    step(&scene, opened(&scene, "a", 1), "publish 0/publication a:1 of " A);
    scene.seconds = 600;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=602.000; check 0/role_info/1");
    return scene;
}

TEST(rank_0_names_the_node_that_has_not_reported) {
    CLEARED_BY(scene_clear) struct scene scene = late_scene("abc");
    step(&scene, role_checked(&scene, 1, false), "check 0/role_info/2");
    step(&scene, role_checked(&scene, 2, true),
        "disarm_timer; " LATE "node 1 (" B ") has not reported");
}

TEST(rank_0_names_several_nodes) {
    CLEARED_BY(scene_clear) struct scene scene = late_scene("abc");
    step(&scene, role_checked(&scene, 1, false), "check 0/role_info/2");
    step(&scene, role_checked(&scene, 2, false),
        "disarm_timer; " LATE "node 1 (" B "), node 2 (c_1_1073741824) have not reported");
}

TEST(of_many_nodes_only_some_are_named) {
    CLEARED_BY(scene_clear) struct scene scene = late_scene("abcdefghijkl");
    CLEARED_BY(text_clear) struct text expected = {0};
    for (int node = 1; node < 11; node++) {
        text_append_format(&expected, "check 0/role_info/%d", node + 1);
        step(&scene, role_checked(&scene, node, false), text_string(&expected));
        text_clear(&expected);
    }
    text_append(&expected, "disarm_timer; " LATE);
    for (int node = 1; node <= 8; node++) {
        text_append_format(
            &expected, "%snode %d (%c_1_1073741824)", node == 1 ? "" : ", ", node, 'a' + node);
    }
    text_append(&expected, " and 3 more have not reported");
    step(&scene, role_checked(&scene, 11, false), text_string(&expected));
}

TEST(a_store_that_does_not_answer_is_said_to_be_silent) {
    CLEARED_BY(scene_clear) struct scene scene = late_scene("ab");
    scene.seconds = 602;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED), LATE "the store does not answer");
}

TEST(a_store_that_is_only_slow_blames_no_node) {
    CLEARED_BY(scene_clear) struct scene scene = late_scene("ab");
    step(&scene, role_checked(&scene, 1, true),
        "disarm_timer; " LATE "the store answers too slowly");
}

/* Rank 1 of these nodes when its join has timed out. */
static void check_guest(const char *nodes, bool is_published, const char *expected) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(&scene, 0, nodes, nodes[1],
        nodes[0] == 'a' ? "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1"
                        : "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/role_info/0");
    scene.seconds = 600;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED), "arm_timer at=602.000; check 0/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 0, is_published), expected);
}

TEST(any_other_node_says_what_rank_0_has_not_done) {
    check_guest("ab", false,
        "disarm_timer; " LATE "node 0 (" A ") has not published the address of the workers' store");
    check_guest("ab", true, "disarm_timer; " LATE "node 0 (" A ") has not assigned the ranks");
}

TEST(torchruns_habit_is_explained) {
    check_guest("Bb", false,
        "disarm_timer; " LATE "node 0 (B_1_0) has not published the address of the workers' store; "
        "an agent of torchrun does so once, unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 is set for "
        "it");
}

TEST(a_store_of_its_own_that_does_not_open_is_named) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(&scene, 0, "a", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; "
        "set_assignments 0/assigned_ranks/0 of 1; open_worker_store fresh");
    scene.seconds = 600;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=602.000; disarm_timer; " LATE "the store for the workers was not opened");
}
