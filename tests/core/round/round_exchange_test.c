/* SPDX-License-Identifier: BSD-3-Clause */
/* One test per rule, on one node. The parts of the exchange have tests of their own.
 * tests/simulation has several nodes together. */
#include "round_fixture.h"

#include <limits.h>

TEST(rank_0_publishes_its_store_and_assigns_the_ranks) {
    CLEARED_BY(scene_clear) struct scene scene = joined_scene();
}

TEST(ranks_wait_for_the_address_if_they_are_first) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    char role[] = "default";
    const struct role_info infos[] = {{role, 1, 0, 1, NULL}, {role, 1, 1, 1, NULL}};
    begin(&scene, 0, "ab", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; open_worker_store fresh; "
        "wait 0/role_infos/2");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/role_infos/2");
    step(&scene, role_infos(&scene, infos, 2), "set_assignments 0/assigned_ranks/0 of 2");
    step(&scene, opened(&scene, "a", 29400),
        "publish 0/publication a:29400 of " A "; disarm_timer; "
        "joined 0 rank=0 of 2 [0, 2, 0, 2] a:29400 restarts=2");
}

TEST(any_other_node_asks_for_address_and_ranks_at_once) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(
        &scene, 3, "ab", 'b', "arm_timer at=600.000; set_role_info 3/role_info/1; wait 3/world/1");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 3/world/1");
    step(&scene,
        values(&scene, ROUND_KEY_WORLD, 3,
            (struct round_values){
                .address = "a", .port = 29400, .has_ranks = true, .ranks = {1, 2, 1, 2}}),
        "disarm_timer; joined 3 rank=1 of 2 [1, 2, 1, 2] a:29400 restarts=2");
}

TEST(a_node_alone_asks_nobody) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 4);
    begin(&scene, 5, "a", 'a',
        "arm_timer at=600.000; set_role_info 5/role_info/0; "
        "set_assignments 5/assigned_ranks/0 of 1; open_worker_store fresh");
    step(&scene, opened(&scene, "a", 1),
        "publish 5/publication a:1 of " A "; disarm_timer; "
        "joined 5 rank=0 of 1 [0, 4, 0, 4] a:1 restarts=2; clear 0 to 3 of 1");
}

TEST(uniform_nodes_compute_their_ranks) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(true, 4);
    begin(&scene, 0, "ab", 'b', "arm_timer at=600.000; wait 0/address");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/address");
    step(&scene,
        values(&scene, ROUND_KEY_ADDRESS, 0, (struct round_values){.address = "a", .port = 1}),
        "disarm_timer; joined 0 rank=1 of 2 [4, 8, 4, 8] a:1 restarts=2");
    begin(&scene, 1, "ab", 'a', "arm_timer at=600.000; open_worker_store fresh");
    step(&scene, opened(&scene, "a", 2),
        "publish 1/publication a:2 of " A "; disarm_timer; "
        "joined 1 rank=0 of 2 [0, 8, 0, 8] a:2 restarts=2");
}

TEST(who_needs_the_exchange_tells_the_host_no_role) {
    struct round_settings settings = {.role = "trainer", .local_world_size = 2};
    assert_string_equal(round_settings_role(&settings).role, "trainer");
    settings.is_uniform = true;
    assert_null(round_settings_role(&settings).role);
    settings = (struct round_settings){
        .role = "trainer", .local_world_size = 2, .is_store_for_round = true};
    assert_null(round_settings_role(&settings).role);
}

TEST(nodes_may_differ_in_role_and_size) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    char alpha[] = "alpha";
    char beta[] = "beta";
    const struct role_info infos[] = {{alpha, 1, 0, 1, NULL}, {beta, 2, 1, 0, NULL}};
    struct rendezvous_state record = {.round = 0, .is_complete = true};
    struct node_identity nodes[] = {identity_of('a'), identity_of('b')};
    for (int rank = 0; rank < 2; rank++) {
        struct rendezvous_node *node = rendezvous_state_obtain(&record, &nodes[rank]);
        node->is_participant = true;
        node->rank = rank;
    }
    struct round_event event = plain(&scene, ROUND_EVENT_BEGIN);
    event.begin.node_count = 2;
    event.begin.state = &record;
    event.begin.identity = &nodes[0];
    struct round_effects effects;
    round_exchange_step(scene.exchange, &event, &effects);
    event = role_infos(&scene, infos, 2);
    round_exchange_step(scene.exchange, &event, &effects);
    assert_int_equal(effects.items[0].kind, ROUND_EFFECT_SET_ASSIGNMENTS);
    const struct rank_assignment *items = effects.items[0].assignments.items;
    const struct rank_assignment first = {0, 3, 0, 1};
    const struct rank_assignment second = {1, 3, 0, 2};
    assert_memory_equal(&items[0], &first, sizeof first);
    assert_memory_equal(&items[1], &second, sizeof second);
    rendezvous_state_clear(&record);
}

/* Rank 0 of two nodes gets these role infos. */
static void check_role_infos(const struct role_info *infos, const char *expected) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(&scene, 0, "ab", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; open_worker_store fresh; "
        "wait 0/role_infos/2");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/role_infos/2");
    step(&scene, role_infos(&scene, infos, 2), expected);
    step(&scene, opened(&scene, "a", 1), "");
}

TEST(a_role_info_without_sense_names_its_node) {
    char role[] = "default";
    const struct role_info unreadable[] = {{role, 1, 0, 1, NULL}, {NULL, 0, 0, 0, NULL}};
    const struct role_info anothers[] = {{role, 1, 0, 1, NULL}, {role, 1, 0, 1, NULL}};
    const char *expected =
        "disarm_timer; join_failed node 1 (" B ") reported a role info that makes no sense";
    check_role_infos(unreadable, expected);
    check_role_infos(anothers, expected);
}

TEST(more_workers_than_can_be_counted_fail_the_join) {
    char role[] = "default";
    const struct role_info infos[] = {{role, INT_MAX, 0, 1, NULL}, {role, 1, 1, 1, NULL}};
    check_role_infos(infos, "disarm_timer; join_failed the workers of 2 nodes are too many");
}

/* Rank 1 of two nodes, with three workers, gets these values. */
static void check_world(struct round_values found, const char *expected) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 3);
    begin(
        &scene, 0, "ab", 'b', "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/world/1");
    step(&scene, values(&scene, ROUND_KEY_WORLD, 0, found), expected);
}

TEST(an_address_without_sense_fails_the_join) {
    const char *expected = "disarm_timer; join_failed the address of the workers' store that was "
                           "published makes no sense";
    check_world((struct round_values){.port = 1, .has_ranks = true}, expected);
    check_world((struct round_values){.address = "a", .has_ranks = true}, expected);
}

/* It was stopped, and the others have gone on, and cleared this round away. */
TEST(a_node_that_was_left_behind_waits_to_be_told) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(
        &scene, 0, "ab", 'b', "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/world/1");
    struct round_event world = values(&scene, ROUND_KEY_WORLD, 0, (struct round_values){0});
    world.is_gone = true;
    step(&scene, world, "");
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "disarm_timer");
    begin(&scene, 1, "ab", 'a',
        "arm_timer at=600.000; set_role_info 1/role_info/0; open_worker_store fresh; "
        "wait 1/role_infos/2");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 1/role_infos/2");
    const struct role_info nothing[2] = {{0}};
    struct round_event roles = role_infos(&scene, nothing, 2);
    roles.is_gone = true;
    step(&scene, roles, "");
}

TEST(ranks_without_sense_name_who_assigned_them) {
    const char *expected =
        "disarm_timer; join_failed node 0 (" A ") assigned ranks that make no sense";
    check_world((struct round_values){.address = "a", .port = 1}, expected);
    check_world(
        (struct round_values){.address = "a", .port = 1, .has_ranks = true, .ranks = {1, 3, 1, 3}},
        expected);
}

TEST(a_record_without_sense_fails_the_join) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    struct rendezvous_state record = {.round = 4, .is_complete = true};
    struct node_identity nodes[] = {identity_of('a'), identity_of('b')};
    for (int rank = 0; rank < 2; rank++) {
        rendezvous_state_obtain(&record, &nodes[rank])->is_participant = true;
    }
    struct round_event event = {.kind = ROUND_EVENT_BEGIN,
        .round = 4,
        .begin = {.node_count = 2, .state = &record, .identity = &nodes[0]}};
    const char *expected = "join_failed the record of round 4 makes no sense: its ranks are not "
                           "those of its nodes";
    step(&scene, event, expected); /* both nodes have rank 0 */
    record.nodes[1].rank = 1;
    event.begin.node_count = 3;
    step(&scene, event, expected);
    event.begin.node_count = 2;
    event.begin.group_rank = 1;
    step(&scene, event, expected); /* the record gives this node rank 0 */
    record.nodes[1].rank = INT64_MAX;
    event.begin.group_rank = 0;
    step(&scene, event, expected);
    rendezvous_state_clear(&record);
}

TEST(a_store_that_cannot_be_opened_fails_the_join) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(&scene, 0, "a", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; "
        "set_assignments 0/assigned_ranks/0 of 1; open_worker_store fresh");
    struct round_event event = plain(&scene, ROUND_EVENT_STORE_FAILED);
    event.reason = "too many open files";
    step(&scene, event,
        "disarm_timer; join_failed the store for the workers cannot be opened: "
        "too many open files");
}

TEST(a_reason_has_a_ceiling) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    struct round_effects effects;
    struct round_event event = {.kind = ROUND_EVENT_STORE_FAILED};
    FREED char *endless = text_format("%5000d", 1);
    event.reason = endless;
    begin(&scene, 0, "a", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; "
        "set_assignments 0/assigned_ranks/0 of 1; open_worker_store fresh");
    round_exchange_step(scene.exchange, &event, &effects);
    assert_int_equal(effects.items[1].kind, ROUND_EFFECT_JOIN_FAILED);
    assert_int_equal(strlen(effects.items[1].reason), 1023);
}

TEST(an_abandoned_round_is_called_off_and_forgotten) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(
        &scene, 0, "ab", 'b', "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1");
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "cancel_wait; disarm_timer");
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "");
    scene.seconds = 600;
    step(&scene, plain(&scene, ROUND_EVENT_TIMER_FIRED), "");
}

TEST(a_new_round_ends_the_one_before) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(
        &scene, 0, "ab", 'b', "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1");
    begin(&scene, 1, "ab", 'b',
        "cancel_wait; disarm_timer; arm_timer at=600.000; set_role_info 1/role_info/1; "
        "wait 1/world/1");
}

TEST(answers_for_another_round_are_ignored) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    begin(&scene, 1, "a", 'a',
        "arm_timer at=600.000; set_role_info 1/role_info/0; "
        "set_assignments 1/assigned_ranks/0 of 1; open_worker_store fresh");
    scene.round = 0;
    step(&scene, opened(&scene, "a", 1), "");
    step(&scene, values(&scene, ROUND_KEY_WORLD, 0, (struct round_values){0}), "");
    scene.round = 1;
    step(&scene, opened(&scene, "a", 2),
        "publish 1/publication a:2 of " A "; disarm_timer; "
        "joined 1 rank=0 of 1 [0, 1, 0, 1] a:2 restarts=2");
}

TEST(a_store_is_opened_anew_in_each_round) {
    CLEARED_BY(scene_clear) struct scene scene = joined_scene();
    begin(&scene, 1, "ab", 'a',
        "arm_timer at=600.000; set_role_info 1/role_info/0; open_worker_store fresh; "
        "wait 1/role_infos/2");
}

/* A round of one node where another may come to host the store. */
static struct scene scene_with_succession(void) {
    struct round_settings settings = {
        .role = "default",
        .local_world_size = 1,
        .has_succession = true,
        .timeout = duration_from_seconds(600),
        .exit_barrier_timeout = duration_from_seconds(300),
    };
    return (struct scene){.exchange = round_exchange_new(&settings)};
}

TEST(what_was_said_in_a_round_that_is_abandoned_is_not_for_the_next_host) {
    CLEARED_BY(scene_clear) struct scene scene = scene_with_succession();
    begin(
        &scene, 0, "ab", 'b', "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1");
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "cancel_wait; forget; disarm_timer");
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "");
}

TEST(a_round_begins_when_the_register_has_it_where_there_is_one) {
    CLEARED_BY(scene_clear) struct scene scene = scene_with_succession();
    struct round_event committed = {.kind = ROUND_EVENT_WAITED, .round = 0};
    struct round_event opened = {
        .kind = ROUND_EVENT_STORE_OPENED, .round = 0, .opened = {"a", 1234}};
    begin(&scene, 0, "a", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; set_assignments 0/assigned_ranks/0 of "
        "1; "
        "open_worker_store fresh");
    step(&scene, opened, "publish 0/publication a:1234 of " A "; wait 0/committed");
    step(&scene, committed, "disarm_timer; joined 0 rank=0 of 1 [0, 1, 0, 1] a:1234 restarts=2");
    step(&scene, (struct round_event){.kind = ROUND_EVENT_BARRIER_ASKED},
        "arm_timer at=300.000; set 0/done/0 <val_ignored>; wait 0/all_done/1");
    step(&scene, committed, "disarm_timer; barrier_passed");
}

TEST(the_register_is_waited_for_beside_the_last_answer_of_the_exchange) {
    CLEARED_BY(scene_clear) struct scene scene = scene_with_succession();
    struct round_event waited = {.kind = ROUND_EVENT_WAITED, .round = 0};
    struct round_event values = {.kind = ROUND_EVENT_VALUES,
        .round = 0,
        .key = {.kind = ROUND_KEY_WORLD, .round = 0, .node = 1},
        .values = {.address = "a", .port = 1234, .has_ranks = true, .ranks = {1, 2, 1, 2}}};
    begin(
        &scene, 0, "ab", 'b', "arm_timer at=600.000; set_role_info 0/role_info/1; wait 0/world/1");
    step(&scene, waited, "get 0/world/1; wait 0/committed");
    step(&scene, waited, "");
    step(&scene, values, "disarm_timer; joined 0 rank=1 of 2 [1, 2, 1, 2] a:1234 restarts=2");
}

TEST(a_round_that_is_not_committed_in_time_says_so) {
    CLEARED_BY(scene_clear) struct scene scene = scene_with_succession();
    struct round_event opened = {
        .kind = ROUND_EVENT_STORE_OPENED, .round = 0, .opened = {"a", 1234}};
    begin(&scene, 0, "a", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; set_assignments 0/assigned_ranks/0 of "
        "1; "
        "open_worker_store fresh");
    step(&scene, opened, "publish 0/publication a:1234 of " A "; wait 0/committed");
    scene.seconds = 600;
    step(&scene, (struct round_event){.kind = ROUND_EVENT_TIMER_FIRED},
        "arm_timer at=602.000; disarm_timer; join_failed round 0 did not come about within 600 s: "
        "the host of the job's store could not commit it to the register");
}
