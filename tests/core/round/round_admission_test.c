/* SPDX-License-Identifier: BSD-3-Clause */
#include "round_fixture.h"

#include <stdio.h>

#include "core/round/round_exchange.h"

static struct scene guarded_scene(bool is_uniform) {
    struct round_settings settings = {
        .role = "default",
        .local_world_size = 1,
        .is_uniform = is_uniform,
        .is_store_for_round = true,
        .timeout = duration_from_seconds(600),
        .exit_barrier_timeout = duration_from_seconds(300),
    };
    return (struct scene){.exchange = round_exchange_new(&settings)};
}

static void begin_two(struct scene *scene, int64_t round) {
    char expected[200];
    snprintf(expected, sizeof expected,
        "arm_timer at=600.000; set_role_info %d/role_info/0; open_worker_store fresh; "
        "wait %d/role_infos/2",
        (int)round, (int)round);
    begin(scene, round, "ab", 'a', expected);
    snprintf(expected, sizeof expected, "get %d/role_infos/2", (int)round);
    step(scene, plain(scene, ROUND_EVENT_WAITED), expected);
}

TEST(the_addresses_of_all_nodes_are_admitted_before_the_ranks_are_written) {
    CLEARED_BY(scene_clear) struct scene scene = guarded_scene(false);
    char role[] = "default";
    char here[] = "10.0.0.1 fd00::1";
    char there[] = "10.0.0.2";
    const struct role_info infos[] = {{role, 1, 0, 1, here}, {role, 1, 1, 1, there}};
    begin_two(&scene, 0);
    step(&scene, role_infos(&scene, infos, 2),
        "admit 10.0.0.1 fd00::1 10.0.0.2; set_assignments 0/assigned_ranks/0 of 2");
}

TEST(a_node_that_tells_no_addresses_opens_the_store_to_everybody_and_is_named) {
    CLEARED_BY(scene_clear) struct scene scene = guarded_scene(false);
    struct round_effects effects;
    char role[] = "default";
    char here[] = "10.0.0.1";
    const struct role_info infos[] = {{role, 1, 0, 1, here}, {role, 1, 1, 1, NULL}};
    begin_two(&scene, 0);
    struct round_event event = role_infos(&scene, infos, 2);
    round_exchange_step(scene.exchange, &event, &effects);
    assert_int_equal(effects.items[0].kind, ROUND_EFFECT_ADMIT);
    assert_null(effects.items[0].admitted.addresses);
    assert_string_equal(effects.items[0].admitted.silent, "node 1 (" B ")");
    char there[] = "10.0.0.2";
    const struct role_info later[] = {{role, 1, 0, 1, here}, {role, 1, 1, 1, there}};
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "disarm_timer");
    begin_two(&scene, 1);
    step(&scene, role_infos(&scene, later, 2),
        "admit 10.0.0.1 10.0.0.2; set_assignments 1/assigned_ranks/0 of 2");
}

TEST(a_node_alone_admits_nobody_else) {
    CLEARED_BY(scene_clear) struct scene scene = guarded_scene(false);
    begin(&scene, 5, "a", 'a',
        "arm_timer at=600.000; set_role_info 5/role_info/0; admit nobody else; "
        "set_assignments 5/assigned_ranks/0 of 1; open_worker_store fresh");
}

TEST(where_no_ranks_are_exchanged_no_addresses_are_known) {
    CLEARED_BY(scene_clear) struct scene scene = guarded_scene(true);
    begin(&scene, 0, "ab", 'a', "arm_timer at=600.000; admit everybody; open_worker_store fresh");
    begin(&scene, 1, "ab", 'b', "disarm_timer; arm_timer at=600.000; wait 1/address");
}
