/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/round/round_step.h"
#include "core/round/round_transcript.h"

struct scene {
    struct round_exchange *exchange;
    struct round_event event;
    struct round_effects effects;
    struct round_step step;
};

static void scene_begin(struct scene *scene) {
    struct round_settings settings = {.role = "default", .local_world_size = 1};
    *scene = (struct scene){.exchange = round_exchange_new(&settings)};
    scene->exchange->round = 4;
    scene->step = (struct round_step){scene->exchange, &scene->event, &scene->effects};
}

static void check(struct scene *scene, const char *expected) {
    struct text transcript = {0};
    for (size_t i = 0; i < scene->effects.count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        round_effect_describe(&scene->effects.items[i], &transcript);
        assert_int_equal(scene->effects.items[i].round, 4);
    }
    assert_string_equal(text_string(&transcript), expected);
    text_clear(&transcript);
    scene->effects.count = 0;
}

TEST(one_wait_is_under_way_and_the_newest_follows) {
    struct scene scene;
    scene_begin(&scene);
    round_step_want(&scene.step, round_step_key(&scene.step, ROUND_KEY_ADDRESS));
    round_step_want(&scene.step, round_step_node_key(&scene.step, ROUND_KEY_ROLE_INFO, 2));
    round_step_want(&scene.step, round_step_key(&scene.step, ROUND_KEY_PUBLISHER));
    check(&scene, "wait 4/address");
    assert_true(scene.exchange->has_wanted);
    assert_int_equal(scene.exchange->wanted.kind, ROUND_KEY_PUBLISHER);
    round_exchange_free(scene.exchange);
}

TEST(what_is_waited_for_is_not_waited_for_twice) {
    struct scene scene;
    scene_begin(&scene);
    round_step_want(&scene.step, round_step_key(&scene.step, ROUND_KEY_ADDRESS));
    round_step_want(&scene.step, round_step_key(&scene.step, ROUND_KEY_ADDRESS));
    check(&scene, "wait 4/address");
    assert_false(scene.exchange->has_wanted);
    round_exchange_free(scene.exchange);
}

TEST(a_timer_is_disarmed_only_when_it_runs) {
    struct scene scene;
    scene_begin(&scene);
    round_step_disarm_timer(&scene.step);
    check(&scene, "");
    round_step_arm_timer(&scene.step, (struct instant){.nanoseconds = 1500000000});
    round_step_disarm_timer(&scene.step);
    check(&scene, "arm_timer at=1.500; disarm_timer");
    round_exchange_free(scene.exchange);
}

TEST(a_reason_has_a_ceiling) {
    struct scene scene;
    scene_begin(&scene);
    char *endless = text_format("%5000d", 1);
    round_step_fail(&scene.step, "because %s", endless);
    assert_int_equal(scene.effects.items[0].kind, ROUND_EFFECT_JOIN_FAILED);
    assert_int_equal(strlen(scene.effects.items[0].reason), 1023);
    free(endless);
    round_exchange_free(scene.exchange);
}
