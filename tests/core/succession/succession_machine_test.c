/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_hosts.h"

TEST(a_node_that_comes_second_follows_who_was_first) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("b");
    struct rendezvous_state none = {0};
    seek(&scene, 60, "read_register");
    plain(&scene, SUCCESSION_EVENT_READ, "append claim 1 term 1: round 0 open [] wait [] spare []");
    entry_of(&scene, SUCCESSION_EVENT_LOST, 1, 1, "a", &none, "dial at=3.000");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_FOLLOW);
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

/* A dial that has no time left ends at once: another one after it would have none either. */
TEST(a_dial_that_ends_at_the_deadline_is_the_last_one) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 2, "dial at=2.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 2;
    lose(&scene, SUCCESSION_LOSS_SILENT, "gave_up no node hosts the job's store");
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

/* Whether its last host is there does not matter. */
TEST(a_job_that_is_over_is_not_entered) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("d");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(7, "abc");
    record.is_closed = true;
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 9, 3, "a", &record,
        "gave_up the job is over: its record is closed; a new job needs another --rdzv-id");
}
