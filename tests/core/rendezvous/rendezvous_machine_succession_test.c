/* SPDX-License-Identifier: BSD-3-Clause */
/* A node whose store is hosted by another node after its host was lost. */
#include "unit.h"

#include <stdio.h>

#include "rendezvous_bench.h"

#define A "a_1_1073741824"
#define B "b_1_1073741824"
#define Z "z_1_1073741824"
#define ME "me_1_1073741824"
#define SOUGHT "connect 30.000 or refused for 5.000"

static int set_up(void **state) {
    if (bench_set_up(state) != 0) {
        return -1;
    }
    ((struct bench *)*state)->settings.has_succession = true;
    return 0;
}

static void lose_host(struct bench *bench) {
    bench->held = RENDEZVOUS_EFFECT_KIND_COUNT;
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                          .lost = {.reason = "no host", .is_host_sought = true}});
}

/* The workers of this node run. */
static void seek_host(struct bench *bench) {
    bench_tell_kind(bench, RENDEZVOUS_EVENT_PLACED);
    lose_host(bench);
}

#define WITH_SUCCESSION(test) TEST_WITH(test, set_up, bench_tear_down)

WITH_SUCCESSION(a_world_runs_on_while_its_host_is_sought) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    seek_host(bench);
    bench_expect(bench, SOUGHT);
    bench_connect(bench, true, false);
    bench_expect(bench, "present " ME);
}

/* In a world of three. */
static void finish_workers(struct bench *bench, bool is_host) {
    bench_run(bench, "abm", true, is_host);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_PLACED);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
}

/* Of this host, and of a node that has gone by then, the next host could not learn it. */
WITH_SUCCESSION(a_host_notes_who_is_done) {
    struct bench *bench = *state;
    finish_workers(bench, true);
    bench_expect_record(
        bench, "round 1 complete [" A ":0 " B ":1 " ME ":2:done] wait [] spare [] draining");
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {muster_node("a"), true}});
    bench_expect_record(
        bench, "round 1 complete [" A ":0:done " B ":1 " ME ":2:done] wait [] spare [] draining");
}

WITH_SUCCESSION(a_node_that_does_not_host_notes_nothing) {
    struct bench *bench = *state;
    finish_workers(bench, false);
    bench_expect_record(
        bench, "round 1 complete [" A ":0 " B ":1 " ME ":2] wait [] spare [] draining");
}

static void tell_register(struct bench *bench, bool is_stuck) {
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_REGISTER, .is_register_stuck = is_stuck});
}

/* The round of those who wait could not be committed, and the workers would be ended for it. */
WITH_SUCCESSION(a_host_whose_register_takes_nothing_admits_nobody_and_says_so) {
    struct bench *bench = *state;
    bench_run(bench, "mz", true, true);
    tell_register(bench, true);
    bench_expect_record(bench, "round 1 complete [" ME ":0 " Z ":1] wait [] spare [] frozen");
    const struct node_identity comes = muster_node("b");
    bench_show(bench, "b");
    rendezvous_state_obtain(&bench->record, &comes)->is_waiting = true;
    bench_change(bench);
    bench_wait(bench, 30);
    assert_int_equal(bench->record.round, 1);
    tell_register(bench, false);
    bench_wait(bench, 1);
    assert_int_equal(bench->record.round, 2);
    assert_false(bench->record.is_frozen);
    assert_int_equal(rendezvous_state_participants(&bench->record), 3);
}

/* The next host, which does not know of it, has begun another one of its number. */
WITH_SUCCESSION(a_round_that_has_just_begun_is_given_up_with_its_host) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    lose_host(bench);
    bench_expect(
        bench, "round_over the host of the job's store was lost when the round began; " SOUGHT);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_place_round(bench, 1, "bcm");
    bench_connect(bench, true, false);
    assert_int_equal(bench->record.round, 2);
    assert_null(strstr(text_string(&bench->log), "world round 1"));
}

WITH_SUCCESSION(a_lost_host_that_was_in_the_world_costs_one_round) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    seek_host(bench);
    bench_forget(bench);
    bench_place_round(bench, 2, "bm");
    snprintf(bench->record.reason, sizeof bench->record.reason, "a is gone");
    bench_connect(bench, true, false);
    bench_expect(bench, "present " ME "; round_over a is gone");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 2 rank 1 of 2");
}

WITH_SUCCESSION(a_node_that_was_taken_out_comes_again_under_another_name) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    seek_host(bench);
    bench_forget(bench);
    bench_place_round(bench, 2, "ab");
    bench_connect(bench, true, false);
    assert_non_null(strstr(text_string(&bench->log), "round_over the others have taken this node"));
    assert_int_not_equal(
        rendezvous_machine_identity(bench->machine)->local_id, bench->settings.identity.local_id);
    assert_int_equal(rendezvous_state_waiting(&bench->record), 1);
}

/* It reads the record again before it does anything about it, and its round may be exchanged
 * meanwhile. */
WITH_SUCCESSION(a_node_that_was_taken_out_starts_no_worker_under_the_name_that_it_had) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    bench->holds_requests = true;
    bench_change(bench);
    bench_change(bench);
    bench_place_round(bench, 2, "ab");
    bench_forget(bench);
    bench_answer(bench);
    assert_int_equal(bench->held, RENDEZVOUS_EFFECT_FETCH);
    assert_non_null(strstr(text_string(&bench->log), "round_over the others have taken this node"));
}

WITH_SUCCESSION(what_the_next_host_does_not_know_is_written_again) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    bench_place_round(bench, 2, "abm");
    bench_change(bench);
    seek_host(bench);
    bench_place_round(bench, 1, "abm");
    bench_connect(bench, true, false);
    assert_int_equal(bench->record.round, 2);
}

WITH_SUCCESSION(a_fenced_node_ends_its_world) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    seek_host(bench);
    bench_forget(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_FENCED, "nobody was heard");
    bench_expect(bench, "round_over nobody was heard");
}

WITH_SUCCESSION(a_failure_is_doubted_although_the_host_is_being_sought) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    seek_host(bench);
    bench_forget(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_FAILURE_ASKED, "a worker failed");
    bench_expect(bench, "");
    bench_place_round(bench, 2, "bm");
    snprintf(bench->record.reason, sizeof bench->record.reason, "a is gone");
    bench_connect(bench, true, false);
    bench_expect(bench, "present " ME "; round_over a is gone");
}

WITH_SUCCESSION(a_host_that_nobody_follows_is_given_up) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    seek_host(bench);
    bench_forget(bench);
    bench_lose_connection(bench, true);
    bench_expect(bench, "round_over connection lost; failed connection lost");
}
