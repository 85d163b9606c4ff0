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

SCENE_TEST(a_participant_exits_by_leaving) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    check(scene, rendezvous_decide_exit, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
    scene->record.is_closed = true;
    check(scene, rendezvous_decide_exit, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
}

SCENE_TEST(a_participant_that_exits_late_has_timed_out) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    scene->context.is_late = true;
    check(scene, rendezvous_decide_exit, RENDEZVOUS_ERROR_TIMEOUT);
}

/* Join: the order of its checks. */

SCENE_TEST(a_closed_rendezvous_is_told_even_to_a_participant_of_its_round) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    scene->record.is_complete = scene->record.is_closed = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ERROR_CLOSED);
}

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

SCENE_TEST(a_spare_waits_for_ever_while_the_round_is_full) {
    struct scene *scene = set_scene(state, 1, 1);
    place_participant(&scene->record, "a");
    place_redundant(&scene->record, "me");
    scene->record.is_complete = true;
    scene->context.is_late = scene->context.is_too_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_KEEP_ALIVE);
}

SCENE_TEST(a_spare_steps_forward_when_there_is_room) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "a");
    place_redundant(&scene->record, "me");
    scene->context.is_late = scene->context.is_too_late = true;
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST);
    scene->record.is_complete = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST);
}

/* Other nodes were told a larger maximum. A spare that left the list would come back at once, and
 * so on, with a write each time. */
SCENE_TEST(a_spare_of_a_round_with_more_than_its_maximum_waits_too) {
    struct scene *scene = set_scene(state, 1, 1);
    place_participant(&scene->record, "a");
    place_participant(&scene->record, "b");
    place_redundant(&scene->record, "me");
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
    scene->record.is_complete = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
}

SCENE_TEST(a_participant_of_a_complete_round_has_joined_however_late) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    scene->record.is_complete = true;
    scene->context.is_late = scene->context.is_too_late = true;
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_FINISH);
}

SCENE_TEST(a_late_participant_rolls_back_while_it_may) {
    struct scene *scene = set_scene(state, 2, 2);
    place_participant(&scene->record, "me");
    scene->context.is_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
    scene->context.is_too_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ERROR_TIMEOUT);
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

SCENE_TEST(a_late_node_in_no_list_has_timed_out_at_once) {
    struct scene *scene = set_scene(state, 1, 2);
    scene->context.is_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ERROR_TIMEOUT);
}

SCENE_TEST(lateness_comes_before_the_last_call) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "me");
    scene->record.has_deadline = true;
    scene->context.is_last_call_over = true;
    scene->context.is_late = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_REMOVE_FROM_PARTICIPANTS);
}

SCENE_TEST(a_newcomer_waits_for_the_next_round_when_this_one_has_room) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "a");
    scene->record.is_complete = true;
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ADD_TO_WAIT_LIST);
}

SCENE_TEST(extra_nodes_are_parked_as_spares) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "a");
    place_participant(&scene->record, "b");
    scene->record.is_complete = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_ADD_TO_REDUNDANCY_LIST);
    place_participant(&scene->record, "c");
    check(scene, rendezvous_decide_join, RENDEZVOUS_ADD_TO_REDUNDANCY_LIST);
}

SCENE_TEST(a_waiting_node_stays_where_it_is_whether_there_is_room_or_not) {
    struct scene *scene = set_scene(state, 1, 2);
    place_participant(&scene->record, "a");
    place_waiting(&scene->record, "me");
    scene->record.is_complete = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
    place_participant(&scene->record, "b");
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_KEEP_ALIVE);
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

SCENE_TEST(when_the_last_call_is_over_any_participant_completes_the_round) {
    struct scene *scene = set_scene(state, 2, 3);
    place_participant(&scene->record, "me");
    place_participant(&scene->record, "a");
    scene->record.has_deadline = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
    scene->context.is_last_call_over = true;
    scene->context.is_keep_alive_due = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_MARK_COMPLETE);
}

SCENE_TEST(without_a_last_call_no_participant_completes_the_round) {
    struct scene *scene = set_scene(state, 1, 3);
    place_participant(&scene->record, "me");
    scene->context.is_last_call_over = true;
    check(scene, rendezvous_decide_join, RENDEZVOUS_SYNC);
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
