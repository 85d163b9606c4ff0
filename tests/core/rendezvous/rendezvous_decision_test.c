/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "rendezvous_scene.h"

static void check(const struct scene *scene,
    enum rendezvous_action (*decide)(const struct rendezvous_context *context),
    enum rendezvous_action expected) {
    assert_string_equal(
        torchrun_action_name(decide(&scene->context)), torchrun_action_name(expected));
}

/* Exit. */

SCENE_TEST(a_node_outside_the_round_has_exited_already) {
    struct scene *scene = set_scene(state, 1, 2);
    place_waiting(&scene->record, "me");
    scene->context.is_late = scene->context.is_too_late = true;
    scene->record.is_closed = true;
    check(scene, rendezvous_decide_exit, RENDEZVOUS_FINISH);
}

SCENE_TEST(a_participant_that_exits_late_has_timed_out) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    scene->context.is_late = true;
    check(scene, rendezvous_decide_exit, RENDEZVOUS_ERROR_TIMEOUT);
}

/* Join: the order of its checks. */

SCENE_TEST(a_closed_rendezvous_tells_a_late_joiner) {
    struct scene *scene = set_scene(state, 1, 2);
    scene->record.is_closed = true;
    scene->context.is_late = scene->context.is_too_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ERROR_CLOSED);
}

SCENE_TEST(a_spare_leaves_a_closed_rendezvous_gracefully) {
    struct scene *scene = set_scene(state, 1, 1);
    place_participant(&scene->record, "a");
    place_redundant(&scene->record, "me");
    scene->record.is_complete = scene->record.is_closed = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_GRACEFUL_EXIT);
}

SCENE_TEST(a_participant_of_a_complete_round_has_joined_however_late) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    scene->record.is_complete = true;
    scene->context.is_late = scene->context.is_too_late = true;
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_FINISH);
}

SCENE_TEST(a_late_waiting_node_rolls_back_while_it_may) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "a");
    place_waiting(&scene->record, "me");
    scene->record.is_complete = true;
    scene->context.is_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_REMOVE_FROM_WAIT_LIST);
    scene->context.is_too_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ERROR_TIMEOUT);
}

SCENE_TEST(an_open_round_takes_whoever_comes) {
    struct scene *scene = set_scene(state, 2, 2);
    check(scene, rendezvous_decide_join, RENDEZVOUS_ADD_TO_PARTICIPANTS);
    place_waiting(&scene->record, "me");
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ADD_TO_PARTICIPANTS);
}

SCENE_TEST(a_participant_waits_while_they_are_too_few) {
    struct scene *scene = set_scene(state, 2, 3);
    place_participant(&scene->record, "me");
    scene->record.has_deadline = true;
    scene->context.is_last_call_over = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_KEEP_ALIVE);
}

SCENE_TEST(more_participants_than_the_maximum_complete_no_round) {
    struct scene *scene = set_scene(state, 1, 1);
    place_participant(&scene->record, "me");
    place_participant(&scene->record, "a");
    scene->record.has_deadline = true;
    scene->context.is_last_call_over = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
}

/* The last call, where no participant has begun it. */

static bool call_last(struct scene *scene) {
    return rendezvous_call_last(
        &scene->record, scene->context.settings, (struct wall_time){1000000000});
}

SCENE_TEST(nobody_calls_last_in_a_round_with_too_few_or_too_many) {
    struct scene *scene = set_scene(state, 2, 3);
    place_participant(&scene->record, "me");
    assert_false(call_last(scene));
    place_participant(&scene->record, "a");
    place_participant(&scene->record, "b");
    place_participant(&scene->record, "c");
    assert_false(call_last(scene));
    assert_false(scene->record.is_complete || scene->record.has_deadline);
}

SCENE_TEST(a_round_with_enough_nodes_has_its_last_call_once) {
    struct scene *scene = set_scene(state, 2, 3);
    place_participant(&scene->record, "me");
    place_participant(&scene->record, "a");
    assert_true(call_last(scene));
    assert_true(scene->record.has_deadline);
    assert_false(scene->record.is_complete);
    assert_false(call_last(scene));
    scene->record.has_deadline = false;
    scene->record.wanted = 3;
    assert_false(call_last(scene));
}

SCENE_TEST(a_full_round_needs_no_last_call) {
    struct scene *scene = set_scene(state, 2, 2);
    place_participant(&scene->record, "me");
    place_participant(&scene->record, "a");
    assert_true(call_last(scene));
    assert_true(scene->record.is_complete);
    assert_false(call_last(scene));
}

/* Rendezvous action. */

SCENE_TEST(a_heartbeat_changes_nothing_else) {
    struct scene *scene = set_scene(state, 1, 2);
    place_waiting(&scene->record, "me");
    apply(scene, RENDEZVOUS_KEEP_ALIVE);
    check_record(&scene->record, "round 0 open [] wait [me_1_0] spare []");
    assert_int_equal(scene->record.nodes[0].heartbeat.nanoseconds, wall_seconds(1000).nanoseconds);
}

SCENE_TEST(joining_takes_a_node_off_the_wait_list_and_gives_it_a_heartbeat) {
    struct scene *scene = set_scene(state, 2, 3);
    place_waiting(&scene->record, "me");
    apply(scene, RENDEZVOUS_ADD_TO_PARTICIPANTS);
    check_record(&scene->record, "round 0 open [me_1_0] wait [] spare []");
    assert_true(scene->record.nodes[0].has_heartbeat);
    assert_int_equal(scene->record.nodes[0].heartbeat.nanoseconds, wall_seconds(1000).nanoseconds);
}

SCENE_TEST(a_last_call_without_end_does_not_run_over) {
    struct scene *scene = set_scene(state, 1, 2);
    scene->settings.last_call_timeout = DURATION_FOREVER;
    apply(scene, RENDEZVOUS_ADD_TO_PARTICIPANTS);
    assert_true(scene->record.deadline.nanoseconds == INT64_MAX);
}

SCENE_TEST(a_joining_node_has_no_rank_left_of_an_earlier_round) {
    struct scene *scene = set_scene(state, 2, 2);
    place_waiting(&scene->record, "me");
    scene->record.nodes[0].rank = 5;
    apply(scene, RENDEZVOUS_ADD_TO_PARTICIPANTS);
    assert_int_equal(scene->record.nodes[0].rank, 0);
}

SCENE_TEST(completion_ranks_the_nodes_and_ends_the_last_call) {
    struct scene *scene = set_scene(state, 2, 4);
    scene->record.wanted = 3;
    apply_as(scene, "z", RENDEZVOUS_ADD_TO_PARTICIPANTS);
    apply_as(scene, "a", RENDEZVOUS_ADD_TO_PARTICIPANTS);
    apply(scene, RENDEZVOUS_ADD_TO_PARTICIPANTS);
    apply(scene, RENDEZVOUS_MARK_COMPLETE);
    check_record(&scene->record, "round 0 complete [z_1_0:2 a_1_0:0 me_1_0:1] wait [] spare []");
    assert_false(scene->record.has_deadline);
}

SCENE_TEST(waiting_takes_a_node_off_the_redundancy_list) {
    struct scene *scene = set_scene(state, 1, 2);
    place_redundant(&scene->record, "me");
    apply(scene, RENDEZVOUS_ADD_TO_WAIT_LIST);
    check_record(&scene->record, "round 0 open [] wait [me_1_0] spare []");
    assert_int_equal(scene->record.nodes[0].heartbeat.nanoseconds, wall_seconds(1000).nanoseconds);
}

SCENE_TEST(a_new_spare_has_a_heartbeat) {
    struct scene *scene = set_scene(state, 1, 2);
    apply(scene, RENDEZVOUS_ADD_TO_REDUNDANCY_LIST);
    check_record(&scene->record, "round 0 open [] wait [] spare [me_1_0]");
    assert_true(scene->record.nodes[0].has_heartbeat);
}

SCENE_TEST(who_is_removed_leaves_no_heartbeat_behind) {
    struct scene *scene = set_scene(state, 1, 3);
    place_participant(&scene->record, "me");
    place_waiting(&scene->record, "w");
    place_redundant(&scene->record, "s");
    apply(scene, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
    apply_as(scene, "w", RENDEZVOUS_REMOVE_FROM_WAIT_LIST);
    apply_as(scene, "s", RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST);
    assert_int_equal(scene->record.count, 0);
}

SCENE_TEST(the_removal_of_a_stranger_changes_nothing) {
    struct scene *scene = set_scene(state, 1, 3);
    scene->record.is_complete = true;
    apply(scene, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
    check_record(&scene->record, "round 0 complete [] wait [] spare []");
}

SCENE_TEST(leaving_an_open_round_ends_its_last_call_when_they_are_too_few) {
    struct scene *scene = set_scene(state, 2, 4);
    apply_as(scene, "a", RENDEZVOUS_ADD_TO_PARTICIPANTS);
    apply_as(scene, "b", RENDEZVOUS_ADD_TO_PARTICIPANTS);
    apply(scene, RENDEZVOUS_ADD_TO_PARTICIPANTS);
    apply(scene, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
    assert_true(scene->record.has_deadline);
    apply_as(scene, "a", RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
    check_record(&scene->record, "round 0 open [b_1_0] wait [] spare []");
}

SCENE_TEST(answers_are_no_changes) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state before = {0};
    rendezvous_state_copy(&scene->record, &before);
    for (int action = RENDEZVOUS_SYNC; action <= RENDEZVOUS_GRACEFUL_EXIT; action++) {
        apply(scene, (enum rendezvous_action)action);
        assert_true(record_equals(&scene->record, &before));
    }
}

TEST(actions_have_upstreams_names) {
    assert_string_equal(torchrun_action_name(RENDEZVOUS_KEEP_ALIVE), "KEEP_ALIVE");
    assert_string_equal(torchrun_action_name(RENDEZVOUS_MARK_COMPLETE), "MARK_RENDEZVOUS_COMPLETE");
    assert_string_equal(torchrun_action_name(RENDEZVOUS_GRACEFUL_EXIT), "GRACEFUL_EXIT");
}
