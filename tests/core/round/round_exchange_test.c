/* SPDX-License-Identifier: BSD-3-Clause */
/* One test per rule, on one node. The parts of the exchange have tests of their own.
 * tests/simulation has several nodes together. */
#include "unit.h"

#include <limits.h>
#include <stdio.h>

#include "core/round/round_exchange.h"
#include "round_fixture.h"

TEST(who_needs_the_exchange_tells_the_host_no_role) {
    struct round_settings settings = {.role = "trainer", .local_world_size = 2};
    assert_string_equal(round_settings_role(&settings).role, "trainer");
    settings.is_uniform = true;
    assert_null(round_settings_role(&settings).role);
    settings = (struct round_settings){
        .role = "trainer", .local_world_size = 2, .is_store_for_round = true};
    assert_null(round_settings_role(&settings).role);
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

/* Round told. */

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

/* Round admission. */

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

/* Round clearing. */

/* Lets a node join a round in which it is alone. */
static void join_alone(struct scene *scene, int64_t round, const char *then) {
    char joined[200];
    char asked[200];
    snprintf(asked, sizeof asked,
        "arm_timer at=600.000; set_role_info %d/role_info/0; "
        "set_assignments %d/assigned_ranks/0 of 1; open_worker_store fresh",
        (int)round, (int)round);
    begin(scene, round, "a", 'a', asked);
    snprintf(joined, sizeof joined,
        "publish %d/publication a:1 of " A "; disarm_timer; "
        "joined %d rank=0 of 1 [0, 4, 0, 4] a:1 restarts=2%s",
        (int)round, (int)round, then);
    step(scene, opened(scene, "a", 1), joined);
}

TEST(what_earlier_rounds_left_is_cleared_away_once) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 4);
    join_alone(&scene, 0, "");
    join_alone(&scene, 1, "");
    join_alone(&scene, 2, "; clear 0 to 0 of 1");
    join_alone(&scene, 3, "; clear 1 to 1 of 1");
    join_alone(&scene, 6, "; clear 2 to 4 of 1");
    join_alone(&scene, 1000, "; clear 995 to 998 of 1");
}

/* The nodes of such rounds have written nothing. */
TEST(what_ranked_rounds_left_is_little) {
    CLEARED_BY(scene_clear) struct scene scene = scene_new(false, 1);
    const struct rank_assignment ranks = {0, 2, 0, 2};
    scene.delegates = true;
    for (int64_t round = 0; round < 8; round++) {
        static const char *const cleared[] = {"", "", "; clear 0 to 0 of 1", "; clear 1 to 1 of 1",
            "", /* round 4 is not ranked, and is given up */
            "; clear 2 to 3 of 2", "; clear 4 to 4 of 2", "; clear 5 to 5 of 1"};
        CLEARED_BY(text_clear) struct text expected = {0};
        text_append_format(&expected,
            "publish %lld/publication a:2 of " A
            "; opened a:2; disarm_timer; joined %lld rank=0 of 2 [0, 2, 0, 2] a:2 restarts=2%s",
            (long long)round, (long long)round, cleared[round]);
        if (round == 4) {
            scene.ranks = (struct rank_assignment){0};
            begin(&scene, 4, "ab", 'a',
                "arm_timer at=600.000; set_role_info 4/role_info/0; open_worker_store fresh; "
                "wait 4/role_infos/2");
        } else {
            scene.ranks = ranks;
            begin(&scene, round, "ab", 'a',
                round == 5 ? "cancel_wait; disarm_timer; arm_timer at=600.000; "
                             "open_worker_store fresh"
                           : "arm_timer at=600.000; open_worker_store fresh");
            step(&scene, opened(&scene, "a", 2), text_string(&expected));
        }
    }
    scene.had_roll = true;
    begin(&scene, 8, "ab", 'a', "arm_timer at=600.000; open_worker_store fresh");
    step(&scene, opened(&scene, "a", 2),
        "publish 8/publication a:2 of " A "; opened a:2; disarm_timer; "
        "joined 8 rank=0 of 2 [0, 2, 0, 2] a:2 restarts=2; clear 6 to 6 of 2");
}

/* Round diagnosis. */

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

/* Round barrier. */

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

TEST(a_round_that_is_abandoned_calls_the_barrier_off) {
    CLEARED_BY(scene_clear) struct scene scene = leaving_scene();
    step(&scene, plain(&scene, ROUND_EVENT_ABANDON), "cancel_wait; disarm_timer");
    step(&scene, counted(&scene, 2), "");
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "");
}
