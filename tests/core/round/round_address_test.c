/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of how Muster's nodes keep the address that torchrun's nodes have cached. */
#include "round_fixture.h"

static const struct round_values of_torchrun = {.address = "T", .port = 7};

/* Rank 0 of a later round, in which torchrun's node T takes part. It looks into the round before.
 */
static struct scene seeking_scene(const char *nodes, bool is_uniform) {
    struct scene scene = scene_new(is_uniform, 1);
    begin(&scene, 3, nodes, 'a',
        is_uniform ? "arm_timer at=600.000; check 2/address"
                   : "arm_timer at=600.000; set_role_info 3/role_info/0; check 2/address");
    return scene;
}

TEST(rank_0_publishes_its_own_store_again) {
    CLEARED_BY(scene_clear) struct scene scene = seeking_scene("aT", false);
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 2, true), "check 2/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 2, true), "get 2/publication");
    step(&scene,
        values(&scene, ROUND_KEY_PUBLICATION, 2,
            (struct round_values){.address = "a", .port = 1, .publisher = A}),
        "open_worker_store wiped");
}

TEST(rank_0_does_not_trust_an_address_without_sense) {
    CLEARED_BY(scene_clear) struct scene scene = seeking_scene("aT", false);
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 2, true), "check 2/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 2, false), "get 2/address");
    step(&scene, values(&scene, ROUND_KEY_ADDRESS, 2, (struct round_values){.address = "T"}),
        "open_worker_store wiped");
}

/* A node of Muster that owns the address and is no longer rank 0. */

static struct scene summoning_scene(void) {
    struct scene scene = seeking_scene("abT", false);
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 2, true), "check 2/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 2, true), "get 2/publication");
    step(&scene,
        values(&scene, ROUND_KEY_PUBLICATION, 2,
            (struct round_values){.address = "b", .port = 5, .publisher = B}),
        "set 3/publisher " B "; wait 3/role_infos/3");
    return scene;
}

TEST(rank_0_summons_the_node_whose_address_torchrun_knows) {
    CLEARED_BY(scene_clear) struct scene scene = summoning_scene();
    char role[] = "default";
    const struct role_info infos[] = {
        {role, 1, 0, 1, NULL}, {role, 1, 1, 1, NULL}, {role, 1, 2, 0, NULL}};
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "wait 3/address; get 3/role_infos/3");
    step(&scene, role_infos(&scene, infos, 3), "set_assignments 3/assigned_ranks/0 of 3");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 3/address");
    step(&scene,
        values(&scene, ROUND_KEY_ADDRESS, 3, (struct round_values){.address = "b", .port = 5}),
        "disarm_timer; joined 3 rank=0 of 3 [0, 3, 0, 3] b:5 restarts=2");
}

TEST(rank_0_blames_the_node_that_does_not_follow_its_summons) {
    CLEARED_BY(scene_clear) struct scene scene = summoning_scene();
    char role[] = "default";
    const struct role_info infos[] = {
        {role, 1, 0, 1, NULL}, {role, 1, 1, 1, NULL}, {role, 1, 2, 0, NULL}};
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "wait 3/address; get 3/role_infos/3");
    step(&scene, role_infos(&scene, infos, 3), "set_assignments 3/assigned_ranks/0 of 3");
    scene.seconds = 600;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=602.000; disarm_timer; join_failed round 3 did not come about within 600 s: "
        "node 1 (" B ") has not published the address of its store for the workers");
}

/* Node b was rank 0 in the round before, and has another rank in this round. */
static struct scene summoned_scene(void) {
    struct scene scene = scene_new(false, 1);
    begin(&scene, 0, "bT", 'b',
        "arm_timer at=600.000; set_role_info 0/role_info/0; open_worker_store wiped; "
        "wait 0/role_infos/2");
    step(&scene, opened(&scene, "b", 5), "publish 0/publication b:5 of " B);
    begin(&scene, 1, "abT", 'b',
        "cancel_wait; disarm_timer; arm_timer at=600.000; set_role_info 1/role_info/1; "
        "wait 1/publisher");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 1/publisher");
    return scene;
}

TEST(a_summoned_node_publishes_its_store_again) {
    CLEARED_BY(scene_clear) struct scene scene = summoned_scene();
    step(&scene, values(&scene, ROUND_KEY_PUBLISHER, 1, (struct round_values){.publisher = B}),
        "open_worker_store wiped");
    step(&scene, opened(&scene, "b", 5), "publish 1/publication b:5 of " B "; wait 1/world/1");
}

TEST(a_node_that_is_not_summoned_waits_like_the_others) {
    CLEARED_BY(scene_clear) struct scene scene = summoned_scene();
    step(&scene,
        values(&scene, ROUND_KEY_PUBLISHER, 1, (struct round_values){.publisher = "T_1_0"}),
        "wait 1/world/1");
    scene_clear(&scene);
    scene = summoned_scene();
    step(
        &scene, values(&scene, ROUND_KEY_PUBLISHER, 1, (struct round_values){0}), "wait 1/world/1");
}

TEST(a_node_that_never_had_a_store_is_not_summoned) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(
        &scene, 1, "abT", 'b', "arm_timer at=600.000; set_role_info 1/role_info/1; wait 1/world/1");
}

/* torchrun's node owns the address, and rank 0 is Muster's. */

static struct scene listening_scene(void) {
    struct scene scene = seeking_scene("abT", false);
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 2, true), "check 2/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 2, false), "get 2/address");
    step(&scene, values(&scene, ROUND_KEY_ADDRESS, 2, of_torchrun),
        "wait 3/role_info/2; arm_timer at=5.000");
    return scene;
}

TEST(rank_0_publishes_what_torchrun_has_cached) {
    CLEARED_BY(scene_clear) struct scene scene = listening_scene();
    char role[] = "default";
    const struct role_info infos[] = {
        {role, 1, 0, 1, NULL}, {role, 1, 1, 1, NULL}, {role, 1, 2, 0, NULL}};
    step(&scene, plain(&scene, ROUND_EVENT_WAITED),
        "arm_timer at=600.000; publish 3/publication T:7 of T_1_0; wait 3/role_infos/3");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 3/role_infos/3");
    step(&scene, role_infos(&scene, infos, 3),
        "set_assignments 3/assigned_ranks/0 of 3; disarm_timer; "
        "joined 3 rank=0 of 3 [0, 3, 0, 3] T:7 restarts=2");
}

TEST(rank_0_publishes_its_own_when_torchrun_waits_for_it) {
    CLEARED_BY(scene_clear) struct scene scene = listening_scene();
    scene.seconds = 5;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED),
        "arm_timer at=600.000; open_worker_store wiped");
    step(&scene, opened(&scene, "a", 1), "publish 3/publication a:1 of " A);
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "wait 3/role_infos/3");
}

TEST(a_uniform_rank_0_takes_torchruns_address_at_once) {
    CLEARED_BY(scene_clear) struct scene scene = seeking_scene("aT", true);
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 2, true), "check 2/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 2, false), "get 2/address");
    step(&scene, values(&scene, ROUND_KEY_ADDRESS, 2, of_torchrun),
        "publish 3/publication T:7 of T_1_0; disarm_timer; "
        "joined 3 rank=0 of 2 [0, 2, 0, 2] T:7 restarts=2");
}

/* Rank 0 is torchrun's. */

static struct scene under_torchrun(void) {
    struct scene scene = scene_new(false, 1);
    begin(&scene, 3, "Ta", 'a',
        "arm_timer at=600.000; set_role_info 3/role_info/1; wait 3/role_info/0");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "check 3/address");
    return scene;
}

TEST(what_torchruns_rank_0_published_is_taken) {
    CLEARED_BY(scene_clear) struct scene scene = under_torchrun();
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 3, true),
        "set 3/publisher T_1_0; wait 3/world/1");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 3/world/1");
    step(&scene,
        values(&scene, ROUND_KEY_WORLD, 3,
            (struct round_values){
                .address = "T", .port = 7, .has_ranks = true, .ranks = {1, 2, 1, 2}}),
        "disarm_timer; joined 3 rank=1 of 2 [1, 2, 1, 2] T:7 restarts=2");
}

TEST(anothers_address_is_not_taken_for_torchruns_rank_0) {
    CLEARED_BY(scene_clear) struct scene scene = under_torchrun();
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 3, false), "check 2/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 2, true), "check 2/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 2, true), "get 2/publication");
    step(&scene,
        values(&scene, ROUND_KEY_PUBLICATION, 2,
            (struct round_values){.address = "T", .port = 1, .publisher = "T_9_0"}),
        "check 1/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 1, false), "check 0/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 0, false), "wait 3/world/1");
}

TEST(answers_about_a_round_not_looked_into_are_ignored) {
    CLEARED_BY(scene_clear) struct scene scene = under_torchrun();
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 3, false), "check 2/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 1, true), "");
    step(&scene, values(&scene, ROUND_KEY_ADDRESS, 1, of_torchrun), "");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 3, true), "");
}

TEST(looking_back_has_an_end) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(true, 1);
    int64_t round = INT64_MAX;
    begin(&scene, round, "aT", 'a', "arm_timer at=600.000; check 9223372036854775806/address");
    for (int64_t back = 1; back < ROUND_EXCHANGE_LOOK_BACK; back++) {
        CLEARED_BY(text_clear) struct text expected = {0};
        text_append_format(&expected, "check %lld/address", (long long)(round - back - 1));
        step(&scene, checked(&scene, ROUND_KEY_ADDRESS, round - back, false),
            text_string(&expected));
    }
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, round - ROUND_EXCHANGE_LOOK_BACK, false),
        "open_worker_store wiped");
}

/* Uniform nodes write no role infos. */
static struct scene uniform_under_torchrun(void) {
    struct scene scene = scene_new(true, 1);
    begin(&scene, 1, "Ta", 'a', "arm_timer at=600.000; wait 1/address; arm_timer at=5.000");
    return scene;
}

TEST(a_uniform_node_gives_torchrun_some_time_to_publish) {
    CLEARED_BY(scene_clear) struct scene scene = uniform_under_torchrun();
    scene.seconds = 5;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED), "arm_timer at=600.000; check 1/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 1, false), "check 0/address");
    step(&scene, checked(&scene, ROUND_KEY_ADDRESS, 0, true), "check 0/publisher");
    step(&scene, checked(&scene, ROUND_KEY_PUBLISHER, 0, false), "get 0/address");
    step(&scene, values(&scene, ROUND_KEY_ADDRESS, 0, of_torchrun),
        "publish 1/publication T:7 of T_1_0");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 1/address");
}
