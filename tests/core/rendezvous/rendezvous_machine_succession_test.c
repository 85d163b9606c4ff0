/* SPDX-License-Identifier: BSD-3-Clause */
/* A node whose store is hosted by another node after its host was lost. */
#include "unit.h"

#include <stdio.h>

#include "rendezvous_bench.h"

#define A "a_1_1073741824"
#define B "b_1_1073741824"
#define Z "z_1_1073741824"
#define ME "me_1_1073741824"

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
