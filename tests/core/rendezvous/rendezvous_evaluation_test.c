/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_evaluation.h"
#include "rendezvous_bench.h"

#define A "a_1_1073741824"
#define ME "me_1_1073741824"
#define T "t_1_0"

/* The situation of a node. */

static void expect_situation(const struct rendezvous_node *entry, bool is_complete, bool is_closed,
    enum rendezvous_situation situation) {
    CLEARED_BY(rendezvous_view_clear)
    struct rendezvous_view view = {
        .me = muster_node("me"), .seen = {.is_complete = is_complete, .is_closed = is_closed}};
    if (entry != NULL) {
        struct rendezvous_node *node = place(&view.seen, view.me);
        *node = *entry;
        node->identity = view.me;
    }
    assert_int_equal(rendezvous_situation(&view), situation);
}

TEST(in_a_closed_record_all_stand_alike) {
    const struct rendezvous_node participant = {.is_participant = true};
    expect_situation(NULL, false, true, RENDEZVOUS_SITUATION_CLOSED);
    expect_situation(&participant, true, true, RENDEZVOUS_SITUATION_CLOSED);
}

/* Nodes whose workers are done. */

/* Where no further round follows, a node that waits does so for join_timeout only. */
ON_BENCH(a_node_that_is_done_says_so_aloud_where_another_one_waits) {
    struct bench *bench = *state;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    bench->settings.rendezvous.scale_up = RENDEZVOUS_SCALE_UP_NEVER;
    bench_run(bench, "ma", true, false);
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_change(bench);
    bench_forget(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_expect(bench, "present " ME " finished; write round 1 complete [" ME ":0 " A
                        ":1] wait [b_1_1073741824] spare [] draining");
}

/* Heartbeats. */

ON_BENCH(the_host_beats_for_all_of_its_kind) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "am");
    bench_place_torch(bench);
    bench_join(bench, true, true);
    bench_forget(bench);
    bench_wait(bench, 5);
    struct node_identity a = muster_node("a");
    struct node_identity t = torch_node("t");
    assert_int_equal(rendezvous_state_find(&bench->record, &a)->heartbeat.nanoseconds, 5000000000);
    assert_int_equal(rendezvous_state_find(&bench->record, &t)->heartbeat.nanoseconds, 0);
    assert_non_null(strstr(text_string(&bench->log), "write quietly"));
}

/* The host writes the heartbeats of Muster's nodes only, and this one looks like torchrun's. */
ON_BENCH(one_of_torchruns_kind_beats_for_itself) {
    struct bench *bench = *state;
    bench->settings.identity = torch_node("m");
    bench_run(bench, "m", true, false);
    bench_wait(bench, 5);
    struct node_identity me = bench->settings.identity;
    assert_int_equal(rendezvous_state_find(&bench->record, &me)->heartbeat.nanoseconds, 5000000000);
}

/* The node that tells the watchers for others. */

ON_BENCH(the_first_node_tells_the_others_what_nobody_has_told) {
    struct bench *bench = *state;
    bench_run(bench, "ma", false, false);
    place(&bench->record, torch_node("t"))->is_waiting = true;
    bench->record.is_draining = true;
    bench_wait(bench, 1);
    bench_expect(bench, "tell_watchers");
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_change(bench);
    bench_expect(bench, "");
}

ON_BENCH(news_found_by_a_lost_write_are_told_unless_their_writer_does) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, true);
    bench_wait(bench, 4.9);
    bench->record.is_draining = true;
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_wait(bench, 0.105); /* until the heartbeat is due, but not until the next poll */
    bench_forget(bench);
    bench_wait(bench, 1);
    bench_expect(bench, "tell_watchers");
}

/* Beside torchrun's nodes. */

/* torchrun's node waits for what this one is to tell it, and does not look at who waits. */
ON_BENCH(but_not_before_the_nodes_of_the_round_have_told_each_other_all) {
    struct bench *bench = *state;
    bench_run_beside_torch(bench, "am");
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_change(bench);
    bench_expect(bench, "");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_PLACED);
    bench_expect(bench, "count_finished 1");
    bench_tell(bench,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FINISHED_COUNT, .finished_count = 0});
    assert_non_null(strstr(text_string(&bench->log), "round_over a node waits to join; write"));
}

ON_BENCH(who_waits_beside_a_full_round_is_made_a_spare) {
    struct bench *bench = *state;
    bench_run_beside_torch(bench, "abm");
    place(&bench->record, torch_node("u"))->is_waiting = true;
    bench_change(bench);
    bench_expect(bench,
        "write round 1 complete [" A ":0 b_1_1073741824:1 " ME ":2 " T ":3] wait [] spare [u_1_0]");
}

/* A record that is closed without a failure. */

static void close_from_outside(struct bench *bench) {
    bench->record.is_closed = true;
    bench_change(bench);
}

ON_BENCH(a_record_that_is_lost_is_written_again) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, true);
    rendezvous_state_clear(&bench->record);
    bench_change(bench);
    bench_expect(bench, "write round 1 complete [a_1_1073741824:0 " ME ":1] wait [] spare []");
    assert_int_not_equal(bench->record.origin, 0);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_CLOSE_ASKED, "");
    rendezvous_state_clear(&bench->record);
    bench_change(bench);
    bench_forget(bench);
    assert_int_equal(bench->record.count, 0); /* its part is over */
}

ON_BENCH(a_job_that_is_closed_from_outside_lets_workers_finish) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    close_from_outside(bench);
    bench_expect(bench, "closed");
    bench_wait(bench, 5);
    bench_expect(bench, "beat");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_wait(bench, 5);
    bench_expect(bench, "present " ME " finished; beat");
    bench_tell_reason(bench, RENDEZVOUS_EVENT_CLOSE_ASKED, "");
    bench_expect(bench, "settled");
}

/* The end of a round is no end of a later one. */

static void finish(struct bench *bench) {
    bench_run(bench, "am", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_forget(bench);
}

ON_BENCH(who_was_taken_out_does_not_close_the_round_that_the_others_began) {
    struct bench *bench = *state;
    finish(bench);
    bench_place_round(bench, 2, "ab"); /* it has not seen this one yet */
    bench_tell_reason(bench, RENDEZVOUS_EVENT_CLOSE_ASKED, "");
    assert_true(strstr(text_string(&bench->log), "settled") != NULL);
    assert_int_equal(bench->record.round, 2);
    assert_false(bench->record.is_closed);
}

ON_BENCH(a_record_closed_because_of_a_signal_tells_which) {
    struct bench *bench = *state;
    struct rendezvous_effects effects;
    bench_run(bench, "am", true, false);
    bench->record.is_closed = true;
    bench->record.has_failed = true;
    bench->record.signal = 10;
    bench->holds_requests = true;
    bench_change(bench);
    rendezvous_machine_step(bench->machine,
        &(struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_RECORD, .now = bench->now, .state = &bench->record},
        &effects);
    assert_int_equal(effects.items[0].kind, RENDEZVOUS_EFFECT_CLOSED);
    assert_int_equal(effects.items[0].told.signal, 10);
}
