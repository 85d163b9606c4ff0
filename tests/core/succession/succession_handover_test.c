/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_hosts.h"

#define B_AND_C "round 5 complete [b_1_1073741824:0 c_1_1073741824:1] wait [] spare []"

static void leave(
    struct scene *scene, const struct rendezvous_state *record, const char *expected) {
    step(scene, (struct succession_event){.kind = SUCCESSION_EVENT_LEAVE, .record = record},
        expected);
}

static void leave_of(struct scene *scene, const char *letters, const char *expected) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, letters);
    leave(scene, &record, expected);
}

/* Nothing happens to the record for a while. */
static void rest(struct scene *scene, const char *expected) {
    assert_true(scene->timer.is_set);
    scene->seconds += SUCCESSION_QUIET_MILLISECONDS / 1000.0;
    plain(scene, SUCCESSION_EVENT_TIMER_FIRED, expected);
}

static void gone(struct scene *scene, const char *address, const char *expected) {
    step(scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_NODE_GONE, .gone = node(address)},
        expected);
}

/* The host. */

TEST(the_first_node_that_stays_is_named_and_the_others_are_told_when_it_has_gone) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    leave_of(&scene, "abc", "");
    rest(&scene, "name b_1_1073741824");
    gone(&scene, "c", "");
    gone(&scene, "b", "dismiss to_successor");
    gone(&scene, "b", "");
}

TEST(who_is_done_or_only_waits_is_named_last) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "bcd");
    record.nodes[0].is_done = true;
    record.nodes[1].is_participant = false;
    leave(&scene, &record, "");
    rest(&scene, "name d_1_1073741824");
}

/* The register was being asked when the record was closed. */
TEST(the_end_of_the_job_becomes_an_entry_all_the_same) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    struct rendezvous_state open = {.round = 5};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state closed = world(5, "abc");
    closed.is_closed = true;
    seen(&scene, &open, "");
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    seen(&scene, &closed, "");
    leave(&scene, &closed, "dismiss");
    FREED char *commit = commit_of(2, 1, &closed);
    entry_of(&scene, SUCCESSION_EVENT_READ, 1, 1, "a", &open, commit);
}

TEST(what_is_being_appended_comes_before_the_name) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "bc");
    seen(&scene, &record, "append commit 2 term 1: " B_AND_C);
    leave(&scene, &record, "");
    rest(&scene, "");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 5");
    rest(&scene, "name b_1_1073741824");
}

TEST(when_all_others_have_left_the_host_goes_at_once) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    struct rendezvous_state record = {.round = 6};
    leave_of(&scene, "bc", "");
    seen(&scene, &record, "dismiss");
}

TEST(a_host_that_has_named_its_successor_appends_and_renews_nothing) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "bc");
    leave(&scene, &record, "");
    rest(&scene, "name b_1_1073741824");
    seen(&scene, &record, "");
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
}

TEST(a_successor_that_does_not_come_to_host_is_not_waited_for) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    leave_of(&scene, "bc", "");
    rest(&scene, "name b_1_1073741824");
    assert_true(scene.timer.is_set);
    assert_int_equal(scene.timer.at.nanoseconds,
        scene_at(SUCCESSION_HANDOVER_MILLISECONDS / 1000.0).nanoseconds);
    scene.seconds = SUCCESSION_HANDOVER_MILLISECONDS / 1000.0;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "dismiss");
}

TEST(a_node_that_hosts_no_more_has_nothing_to_hand_over) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    leave_of(&scene, "ac", "dismiss");
}

/* The others. */

TEST(who_is_named_asks_the_register_claims_at_once_and_hosts) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    plain(&scene, SUCCESSION_EVENT_NAMED, "read_register");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record,
        "append handover 8 term 2: round 4 complete " B " wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_lost; host term 2");
    seek(&scene, 60, "dial self at=3.000");
}

TEST(who_is_named_and_loses_to_a_commit_claims_after_it) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "bc");
    plain(&scene, SUCCESSION_EVENT_NAMED, "read_register");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state old = world(4, "abc");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &old,
        "append handover 8 term 2: round 4 complete " B " wait [] spare []");
    entry_of(
        &scene, SUCCESSION_EVENT_LOST, 8, 1, "a", &record, "append handover 9 term 2: " B_AND_C);
}

TEST(who_is_named_and_loses_to_another_host_follows_it) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    plain(&scene, SUCCESSION_EVENT_NAMED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "c", &record, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
}

TEST(who_is_named_asks_again_where_the_register_fails) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    plain(&scene, SUCCESSION_EVENT_NAMED, "read_register");
    step(&scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_FAILED, .failed = {"it is away", false}},
        "");
    scene.seconds = SUCCESSION_RETRY_MILLISECONDS / 1000.0;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}

TEST(a_name_is_of_the_connection_over_which_it_came) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    plain(&scene, SUCCESSION_EVENT_NAMED, "read_register");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    find_nothing_new(&scene); /* the next of the world has its turn first */
}

TEST(a_host_that_is_not_followed_yet_is_not_left) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    plain(&scene, SUCCESSION_EVENT_MOVED, "read_register");
    find_nothing_new(&scene);
}

TEST(who_is_not_connected_is_told_nothing) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    plain(&scene, SUCCESSION_EVENT_NAMED, "");
    plain(&scene, SUCCESSION_EVENT_MOVED, "");
}
