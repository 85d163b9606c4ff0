/* SPDX-License-Identifier: BSD-3-Clause */
/* One node of two with a rank that another node may have. Each step is compared with the transcript
 * of its effects. */
#include "unit.h"

#include "round_fixture.h"

#define FIRST "c_3_1073741824"
#define ASKED "set claim/1 " B "; get claim/1"
#define LOOKED "get claim/1"
#define MET "add init 1; set_role_info role_info/1; wait assigned_ranks/1; arm_timer at="
#define TOLD                                                                                       \
    "rank_disputed rank 1 (--node-rank) belongs to another node, c (pid 3), and this one is b "    \
    "(pid 1): give each node a rank of its own; this one waits for 200 s, in case it has been "    \
    "started again and the other is gone"

static void take(struct scene *scene, struct round_event event, const char *expected) {
    event.round = ROUND_OF_FIXED_NODES;
    step(scene, event, expected);
}

static void take_kind(struct scene *scene, enum round_event_kind kind, const char *expected) {
    take(scene, (struct round_event){.kind = kind}, expected);
}

static struct scene connected_scene(int timeout_seconds) {
    const struct round_settings settings = {
        .role = "default",
        .local_world_size = 1,
        .timeout = duration_from_seconds(timeout_seconds),
        .where = "master:29500",
        .claim = B,
    };
    struct scene scene = {.exchange = round_exchange_new(&settings), .round = ROUND_OF_FIXED_NODES};
    FREED char *begun = text_format("arm_timer at=%d.000; connect", timeout_seconds);
    take(&scene,
        (struct round_event){.kind = ROUND_EVENT_BEGIN,
            .begin =
                {.group_rank = 1, .node_count = 2, .master_address = "host", .master_port = 29500}},
        begun);
    take_kind(&scene, ROUND_EVENT_CONNECTED, "check claim/served");
    return scene;
}

static void take_checked(
    struct scene *scene, enum round_key_kind kind, bool is_present, const char *expected) {
    take(scene,
        (struct round_event){.kind = ROUND_EVENT_CHECKED,
            .key = {kind, ROUND_OF_FIXED_NODES, 1},
            .is_present = is_present},
        expected);
}

static void take_claim(
    struct scene *scene, enum round_key_kind kind, const char *found, const char *expected) {
    take(scene,
        (struct round_event){.kind = ROUND_EVENT_VALUES,
            .key = {kind, ROUND_OF_FIXED_NODES, 1},
            .is_gone = found == NULL,
            .values.claim = found},
        expected);
}

static struct scene asking_scene(int timeout_seconds) {
    struct scene scene = connected_scene(timeout_seconds);
    take_checked(&scene, ROUND_KEY_CLAIM_SERVED, true, ASKED);
    return scene;
}

/* It has seen the other one twice. */
static struct scene disputing_scene(int timeout_seconds) {
    struct scene scene = asking_scene(timeout_seconds);
    take_claim(&scene, ROUND_KEY_CLAIM, FIRST, "arm_timer at=1.000");
    scene.seconds = 1;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED, LOOKED);
    take_claim(
        &scene, ROUND_KEY_CLAIM, FIRST, "set claim/rival/1 " B "; " TOLD "; arm_timer at=2.000");
    return scene;
}

TEST(a_node_with_its_claim_meets_the_others) {
    CLEARED_BY(scene_clear) struct scene scene = asking_scene(900);
    take_claim(&scene, ROUND_KEY_CLAIM, B, MET "2.000");
    take_claim(&scene, ROUND_KEY_CLAIM, FIRST, "");
    take_checked(&scene, ROUND_KEY_CLAIM_SERVED, true, "");
}

TEST(where_no_claims_are_served_there_are_none) {
    CLEARED_BY(scene_clear) struct scene scene = connected_scene(900);
    take_checked(&scene, ROUND_KEY_CLAIM_SERVED, false, MET "2.000");
}

TEST(a_node_whose_rank_is_anothers_tells_both_and_waits) {
    CLEARED_BY(scene_clear) struct scene scene = disputing_scene(900);
    scene.seconds = 2;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED, LOOKED);
    take_claim(&scene, ROUND_KEY_CLAIM, FIRST, "arm_timer at=3.000");
}

TEST(a_node_that_was_started_again_gets_its_rank_without_a_word) {
    CLEARED_BY(scene_clear) struct scene scene = asking_scene(900);
    take_claim(&scene, ROUND_KEY_CLAIM, FIRST, "arm_timer at=1.000");
    scene.seconds = 1;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED, LOOKED);
    take_claim(&scene, ROUND_KEY_CLAIM, NULL, "arm_timer at=2.000");
    scene.seconds = 2;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED, ASKED);
    take_claim(&scene, ROUND_KEY_CLAIM, B, MET "4.000");
}

/* The other one goes between the two requests. */
TEST(a_claim_that_is_gone_is_asked_for_again) {
    CLEARED_BY(scene_clear) struct scene scene = asking_scene(900);
    take_claim(&scene, ROUND_KEY_CLAIM, NULL, "arm_timer at=1.000");
    scene.seconds = 1;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED, ASKED);
    take_claim(&scene, ROUND_KEY_CLAIM, B, MET "3.000");
}

TEST(a_third_node_with_the_rank_is_told_of_as_well) {
    CLEARED_BY(scene_clear) struct scene scene = disputing_scene(900);
    take_claim(&scene, ROUND_KEY_CLAIM, A, "arm_timer at=2.000");
    scene.seconds = 2;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED, LOOKED);
    take_claim(&scene, ROUND_KEY_CLAIM, A,
        "set claim/rival/1 " B "; rank_disputed rank 1 (--node-rank) belongs to another node, a "
        "(pid 1), and this one is b (pid 1): give each node a rank of its own; this one waits for "
        "200 s, in case it has been started again and the other is gone; arm_timer at=3.000");
}

TEST(a_claim_that_is_no_identity_is_shown_as_it_is) {
    CLEARED_BY(scene_clear) struct scene scene = asking_scene(900);
    take_claim(&scene, ROUND_KEY_CLAIM, "nonsense", "arm_timer at=1.000");
    scene.seconds = 200;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED,
        "join_failed rank 1 (--node-rank) belongs to another node, nonsense, which is still there "
        "after 200 s: give each node a rank of its own");
}

TEST(a_node_gives_up_when_the_time_for_joining_is_over) {
    CLEARED_BY(scene_clear) struct scene scene = disputing_scene(30);
    scene.seconds = 30;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED,
        "join_failed rank 1 (--node-rank) belongs to another node, c (pid 3), which is still there "
        "after 30 s: give each node a rank of its own");
}

TEST(a_store_that_does_not_answer_is_named) {
    CLEARED_BY(scene_clear) struct scene scene = asking_scene(30);
    scene.seconds = 30;
    take_kind(&scene, ROUND_EVENT_TIMER_FIRED,
        "join_failed the job's store at master:29500 does not say whether rank 1 is free");
}

TEST(a_node_without_its_rank_leaves_the_others_alone) {
    CLEARED_BY(scene_clear) struct scene scene = disputing_scene(900);
    take_kind(&scene, ROUND_EVENT_FAILURE_ASKED, "disarm_timer");
    scene_clear(&scene);
    scene = disputing_scene(900);
    take_kind(&scene, ROUND_EVENT_CONNECTION_LOST,
        "disarm_timer; join_failed the store is gone (node 0)");
}

TEST(a_node_that_waits_for_the_meeting_learns_of_its_rival_once) {
    CLEARED_BY(scene_clear) struct scene scene = asking_scene(900);
    take_claim(&scene, ROUND_KEY_CLAIM, B, MET "2.000");
    scene.seconds = 2;
    take_kind(
        &scene, ROUND_EVENT_TIMER_FIRED, "check start/0; check claim/rival/1; arm_timer at=4.000");
    take_checked(&scene, ROUND_KEY_RIVAL, false, "");
    take_checked(&scene, ROUND_KEY_RIVAL, true, "get claim/rival/1");
    take_claim(&scene, ROUND_KEY_RIVAL, NULL, "");
    take_claim(&scene, ROUND_KEY_RIVAL, B, "");
    take_claim(&scene, ROUND_KEY_RIVAL, FIRST,
        "rank_disputed another node has come with rank 1 (--node-rank), c (pid 3), and this one is "
        "b (pid 1), which keeps the rank: give each node a rank of its own");
    take_claim(&scene, ROUND_KEY_RIVAL, FIRST, "");
}
