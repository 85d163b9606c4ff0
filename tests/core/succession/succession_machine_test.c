/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_hosts.h"

TEST(the_first_node_claims_the_first_term) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_HOST);
}

TEST(a_node_that_comes_second_follows_who_was_first) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("b");
    struct rendezvous_state none = {0};
    seek(&scene, 60, "read_register");
    plain(&scene, SUCCESSION_EVENT_READ, "append claim 1 term 1: round 0 open [] wait [] spare []");
    entry_of(&scene, SUCCESSION_EVENT_LOST, 1, 1, "a", &none, "dial at=3.000");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_FOLLOW);
}

TEST(a_round_is_told_after_it_is_an_entry) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    struct rendezvous_state open = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state whole = world(0, "abc");
    FREED char *expected = commit_of(2, 1, &whole);
    seen(&scene, &open, "");
    seen(&scene, &whole, expected);
    seen(&scene, &whole, "");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    seen(&scene, &whole, "");
}

TEST(a_closed_record_is_an_entry_too) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    struct rendezvous_state closed = {.is_closed = true};
    FREED char *expected = commit_of(2, 1, &closed);
    assert_false(succession_machine_owes_end(scene.machine));
    seen(&scene, &closed, expected);
    assert_true(succession_machine_owes_end(scene.machine));
    plain(&scene, SUCCESSION_EVENT_WON, "");
    assert_false(succession_machine_owes_end(scene.machine));
}

TEST(a_round_that_comes_while_another_is_appended_is_appended_next) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state first = world(0, "abc");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state second = world(1, "ab");
    FREED char *appended = commit_of(2, 1, &first);
    FREED char *then = commit_of(3, 1, &second);
    FREED char *told = text_format("tell_committed 0; %s", then);
    seen(&scene, &first, appended);
    seen(&scene, &second, "");
    plain(&scene, SUCCESSION_EVENT_WON, told);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 1");
}

TEST(an_append_that_loses_deposes_the_host) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state alone = world(1, "a");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state others = world(1, "bc");
    FREED char *expected = commit_of(2, 1, &alone);
    seen(&scene, &alone, expected);
    entry_of(&scene, SUCCESSION_EVENT_LOST, 2, 2, "b", &others, "end_hosting; tell_lost; " LEFT);
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_FOLLOW);
    seek(&scene, 60, "dial at=3.000");
}

TEST(an_append_whose_reply_was_lost_is_found_to_be_won) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state whole = world(0, "abc");
    FREED char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_UNKNOWN, "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &whole, "tell_committed 0");
}

TEST(an_append_that_may_still_happen_is_made_again) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    struct rendezvous_state none = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state whole = world(0, "abc");
    FREED char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_UNKNOWN, "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 1, 1, "a", &none, expected);
}

TEST(a_host_renews_its_term_and_reads_when_it_has_stood_still) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state others = world(1, "bc");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state whole = world(0, "abc");
    FREED char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    plain(&scene, SUCCESSION_EVENT_RENEWED, "");
    scene.seconds = 8;
    seen(&scene, &whole, "");
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    entry_of(&scene, SUCCESSION_EVENT_READ, 3, 2, "b", &others, "end_hosting; tell_lost; " LEFT);
}

TEST(a_host_whose_round_stays_open_looks_whether_it_is_deposed) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    struct rendezvous_state open = {.round = 1};
    seen(&scene, &open, "");
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
}

/* A dial that has no time left ends at once: another one after it would have none either. */
TEST(a_dial_that_ends_at_the_deadline_is_the_last_one) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 2, "dial at=2.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 2;
    lose(&scene, SUCCESSION_LOSS_SILENT, "gave_up no node hosts the job's store");
}

/* Any event may come just before the timer, which is armed anew after each of them. */
TEST(an_event_at_the_moment_of_the_timer_does_not_lose_it) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 1;
    step(&scene, renewal("1"), "");
    assert_true(scene.timer.is_set);
    assert_true(scene.timer.at.nanoseconds <= INT64_C(1000000000));
}

/* The host has ended, and another process was started at its address. */
TEST(an_address_at_which_somebody_else_listens_is_suspicious) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_OTHER, "look_at_renewal term 1");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_SUSPECT);
}

TEST(a_host_looks_now_and_then_whether_its_term_is_over) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state whole = world(0, "abc");
    FREED char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    for (int i = 1; i < 8; i++) {
        scene.seconds = i * RENEWAL;
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
        plain(&scene, SUCCESSION_EVENT_RENEWED, "");
    }
    scene.seconds = 8 * RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
}

TEST(a_host_whose_renewal_is_not_answered_looks_whether_it_is_deposed) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state whole = world(0, "abc");
    FREED char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    scene.seconds = 2 * RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; tell_register stuck; renew term 1");
}

TEST(a_node_named_by_an_entry_hosts) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "bc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "b", &record, "host term 2; dial self at=3.000");
}

TEST(all_nodes_started_again_go_on_from_the_last_entry) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("d");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 3, "a", &record, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "watch_register after 7");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 3, "a", &record, "");
    scene.seconds = 0.04;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 3, "a", &record,
        "append claim 8 term 4: round 4 complete " B " wait [] spare []");
}

/* Whether its last host is there does not matter. */
TEST(a_job_that_is_over_is_not_entered) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("d");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(7, "abc");
    record.is_closed = true;
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 9, 3, "a", &record,
        "gave_up the job is over: its record is closed; a new job needs another --rdzv-id");
}

TEST(a_register_that_cannot_be_used_is_given_up) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("b");
    seek(&scene, 60, "read_register");
    step(&scene,
        (struct succession_event){
            .kind = SUCCESSION_EVENT_FAILED, .failed = {"permission denied", true}},
        "gave_up permission denied");
}

TEST(a_register_that_is_away_is_asked_again) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("b");
    seek(&scene, 60, "read_register");
    step(&scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_FAILED, .failed = {"no quorum", false}},
        "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}
