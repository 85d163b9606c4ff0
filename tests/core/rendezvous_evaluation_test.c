/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "rendezvous_bench.h"

#define A "a_1_1073741824"
#define ME "me_1_1073741824"
#define T "t_1_0"

/* "t", a node of torchrun's kind, takes part as the last of the round. */
static struct rendezvous_node *place_torch(struct bench *bench) {
    int64_t rank = (int64_t)rendezvous_state_participants(&bench->record);
    struct rendezvous_node *node = place(&bench->record, torch_node("t"));
    node->is_participant = true;
    node->rank = rank;
    return node;
}

/* The machine runs in a complete round of these and "t". */
static void run_mixed(struct bench *bench, const char *names) {
    bench_place_round(bench, 1, names);
    place_torch(bench);
    bench_join(bench, true, true);
    assert_non_null(strstr(text_string(&bench->log), "world round 1"));
    bench_forget(bench);
}

/* Restarts. */

static void one_write_restarts_all(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "write round 2 complete [" A ":0 " ME
                        ":1] wait [] spare [] restarts 1 charged because worker 1 failed");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 2 rank 1 of 2");
}

static void a_restart_that_another_has_written_is_not_charged_again(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_place_round(bench, 2, "am");
    bench->record.restarts = 1;
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_forget(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 2 rank 1 of 2");
    assert_int_equal(bench->record.restarts, 1);
}

static void who_is_told_of_a_new_round_need_not_ask_for_one(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_place_round(bench, 2, "am");
    bench_change(bench);
    bench_forget(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "");
}

static void a_node_that_was_taken_out_stops_and_asks_to_come_back(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_place_round(bench, 2, "a");
    bench_change(bench);
    bench_expect(bench,
        "round_over the others have taken this node out of the job, since they "
        "heard nothing of it; write round 2 complete [" A ":0] wait [" ME "] spare []");
}

/* Waiting. */

static void a_parked_node_waits_for_ever(void **state) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "abcd");
    bench_join(bench, true, false);
    bench_forget(bench);
    bench_wait(bench, 100000);
    assert_null(strstr(text_string(&bench->log), "failed"));
    assert_int_equal(rendezvous_state_redundant(&bench->record), 1);
}

static void a_node_that_may_not_be_admitted_waits_for_ever_too(void **state) {
    struct bench *bench = *state;
    bench->settings.rendezvous.scale_up = RENDEZVOUS_SCALE_UP_NEVER;
    bench_place_round(bench, 1, "ab");
    bench_join(bench, true, false);
    bench_forget(bench);
    bench_wait(bench, 100000);
    assert_null(strstr(text_string(&bench->log), "failed"));
    assert_int_equal(rendezvous_state_waiting(&bench->record), 1);
}

static void a_closed_job_lets_spares_go(void **state) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "abcd");
    bench_join(bench, true, false);
    bench_forget(bench);
    bench->record.is_closed = true;
    bench_change(bench);
    bench_expect(bench, "closed spare");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "closed spare");
}

static void a_closed_job_says_so_to_a_late_node(void **state) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "ab");
    bench->record.is_closed = true;
    bench->record.has_failed = true;
    rendezvous_state_clear(&bench->draft);
    strcpy(bench->record.reason, "worker 3 failed");
    bench_join(bench, true, false);
    bench_expect(bench, "connect 60.000; present " ME "; closed worker 3 failed");
}

static void a_world_that_does_not_come_together_fails_and_leaves_nothing_behind(void **state) {
    struct bench *bench = *state;
    bench_join(bench, true, false);
    bench_forget(bench);
    bench_wait(bench, 59);
    assert_int_equal(rendezvous_state_participants(&bench->record), 1);
    bench_forget(bench);
    bench_wait(bench, 2);
    assert_non_null(strstr(text_string(&bench->log),
        "failed no world came together within the join timeout of 60 s: round 0 has 1 of at least "
        "2 nodes"));
    assert_int_equal(bench->record.count, 0);
}

static void who_waited_for_a_replacement_goes_on_without_it_in_the_end(void **state) {
    struct bench *bench = *state;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    bench_run(bench, "abm", true, true);
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone.identity = muster_node("b")});
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    assert_false(bench->record.is_complete);
    assert_int_equal(bench->record.wanted, 3);
    bench_wait(bench, 59);
    assert_false(bench->record.is_complete);
    bench_forget(bench);
    bench_wait(bench, 2);
    assert_non_null(strstr(text_string(&bench->log), "world round 2 rank 1 of 2"));
}

static void a_last_call_does_not_end_the_wait_for_a_replacement(void **state) {
    struct bench *bench = *state;
    bench->settings.rendezvous.minimum_nodes = 2;
    place(&bench->record, muster_node("a"))->is_participant = true;
    bench->record.round = 4;
    bench->record.wanted = 3;
    bench_join(bench, true, false);
    assert_false(bench->record.has_deadline);
    bench_wait(bench, 30);
    assert_false(bench->record.is_complete);
    place(&bench->record, muster_node("b"))->is_participant = true;
    bench_change(bench);
    assert_true(bench->record.is_complete);
}

static void each_last_call_is_timed_anew(void **state) {
    struct bench *bench = *state;
    place(&bench->record, muster_node("a"))->is_participant = true;
    bench_join(bench, true, false);
    bench_wait(bench, 1.5);
    bench->record.deadline = wall_seconds(77); /* of a node that came after another had left */
    bench_change(bench);
    bench_wait(bench, 1.5);
    assert_false(bench->record.is_complete);
    bench_wait(bench, 0.6);
    assert_true(bench->record.is_complete);
}

/* Done. */

static void a_node_that_is_done_says_so_and_keeps_newcomers_out(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_expect(bench, "present " ME " finished; write quietly round 1 complete [" ME ":0 " A
                        ":1] wait [] spare [] draining");
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_change(bench);
    bench_wait(bench, 100);
    assert_int_equal(bench->record.round, 1);
}

static void a_new_round_calls_even_those_who_were_done(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_forget(bench);
    bench_place_round(bench, 2, "am");
    bench_change(bench);
    bench_expect(bench, "present " ME "; round_over a node has left the round");
}

/* Heartbeats. */

static void the_host_beats_for_all_of_its_kind(void **state) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "am");
    place_torch(bench);
    bench_join(bench, true, true);
    bench_forget(bench);
    bench_wait(bench, 5);
    struct node_identity a = muster_node("a");
    struct node_identity t = torch_node("t");
    assert_int_equal(rendezvous_state_find(&bench->record, &a)->heartbeat.nanoseconds, 5000000000);
    assert_int_equal(rendezvous_state_find(&bench->record, &t)->heartbeat.nanoseconds, 0);
    assert_non_null(strstr(text_string(&bench->log), "write quietly"));
}

static void without_presence_each_beats_for_itself(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", false, false);
    bench_wait(bench, 5);
    struct node_identity a = muster_node("a");
    struct node_identity me = bench->settings.identity;
    assert_int_equal(rendezvous_state_find(&bench->record, &a)->heartbeat.nanoseconds, 0);
    assert_int_equal(rendezvous_state_find(&bench->record, &me)->heartbeat.nanoseconds, 5000000000);
}

static void a_lost_heartbeat_is_written_again(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, true);
    bench_wait(bench, 4.9);
    struct node_identity me = bench->settings.identity;
    bench->record.restarts = 7; /* written by another, unseen */
    bench_wait(bench, 0.3);
    assert_int_equal(bench->record.restarts, 7);
    assert_int_equal(rendezvous_state_find(&bench->record, &me)->heartbeat.nanoseconds, 5000000000);
}

/* Whoever looks after all. */

static void the_first_node_tells_the_others_what_nobody_has_told(void **state) {
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

static void news_found_by_a_lost_write_are_told_unless_their_writer_does(void **state) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, true);
    bench_wait(bench, 4.9);
    bench->record.is_draining = true;
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_wait(bench, 0.105); /* until the heartbeat, but not until the next look */
    bench_forget(bench);
    bench_wait(bench, 1);
    bench_expect(bench, "tell_watchers");
}

/* Beside torchrun's nodes. */

static void beside_torchruns_nodes_a_failed_node_leaves_and_waits_as_they_do(void **state) {
    struct bench *bench = *state;
    run_mixed(bench, "am");
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "write round 1 complete [" A ":0 " T
                        ":2] wait [] spare [] restarts 1 because worker 1 failed; "
                        "write round 1 complete [" A ":0 " T ":2] wait [" ME
                        "] spare [] restarts 1 because worker 1 failed");
}

static void beside_torchruns_nodes_a_waiting_node_ends_the_round(void **state) {
    struct bench *bench = *state;
    run_mixed(bench, "am");
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_change(bench);
    bench_expect(bench, "count_finished 1");
    bench_tell(bench,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FINISHED_COUNT, .finished_count = 0});
    assert_non_null(strstr(text_string(&bench->log), "round_over a node waits to join; write"));
}

static void but_not_when_somebody_is_done(void **state) {
    struct bench *bench = *state;
    run_mixed(bench, "am");
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_change(bench);
    bench_tell(bench,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FINISHED_COUNT, .finished_count = 1});
    bench_wait(bench, 4);
    assert_null(strstr(text_string(&bench->log), "round_over"));
}

static void who_waits_beside_a_full_round_is_made_a_spare(void **state) {
    struct bench *bench = *state;
    run_mixed(bench, "abm");
    place(&bench->record, torch_node("u"))->is_waiting = true;
    bench_change(bench);
    bench_expect(bench,
        "write round 1 complete [" A ":0 b_1_1073741824:1 " ME ":2 " T ":3] wait [] spare [u_1_0]");
}

static void when_torchruns_nodes_have_left_one_write_takes_them_along(void **state) {
    struct bench *bench = *state;
    run_mixed(bench, "am");
    struct node_identity t = torch_node("t");
    rendezvous_state_find(&bench->record, &t)->is_participant = false;
    rendezvous_state_find(&bench->record, &t)->is_waiting = true;
    bench_change(bench);
    bench_expect(bench, "round_over a node has left the round; write round 2 complete [" A ":0 " ME
                        ":1 " T ":2] wait [] spare [] because a node has left the round");
}

static void a_round_that_somebody_has_left_is_not_entered(void **state) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "abm");
    struct node_identity b = muster_node("b");
    rendezvous_state_expel(&bench->record, &bench->settings.rendezvous, &b);
    bench_join(bench, true, false);
    bench_expect(bench, "connect 60.000; present " ME "; write round 2 complete [" A ":0 " ME
                        ":1] wait [] spare [] because a node has left the round; "
                        "world round 2 rank 1 of 2");
}

static const struct CMUnitTest tests[] = {
    ON_BENCH(one_write_restarts_all),
    ON_BENCH(a_restart_that_another_has_written_is_not_charged_again),
    ON_BENCH(who_is_told_of_a_new_round_need_not_ask_for_one),
    ON_BENCH(a_node_that_was_taken_out_stops_and_asks_to_come_back),
    ON_BENCH(a_parked_node_waits_for_ever),
    ON_BENCH(a_node_that_may_not_be_admitted_waits_for_ever_too),
    ON_BENCH(a_closed_job_lets_spares_go),
    ON_BENCH(a_closed_job_says_so_to_a_late_node),
    ON_BENCH(a_world_that_does_not_come_together_fails_and_leaves_nothing_behind),
    ON_BENCH(who_waited_for_a_replacement_goes_on_without_it_in_the_end),
    ON_BENCH(a_last_call_does_not_end_the_wait_for_a_replacement),
    ON_BENCH(each_last_call_is_timed_anew),
    ON_BENCH(a_node_that_is_done_says_so_and_keeps_newcomers_out),
    ON_BENCH(a_new_round_calls_even_those_who_were_done),
    ON_BENCH(the_host_beats_for_all_of_its_kind),
    ON_BENCH(without_presence_each_beats_for_itself),
    ON_BENCH(a_lost_heartbeat_is_written_again),
    ON_BENCH(the_first_node_tells_the_others_what_nobody_has_told),
    ON_BENCH(news_found_by_a_lost_write_are_told_unless_their_writer_does),
    ON_BENCH(beside_torchruns_nodes_a_failed_node_leaves_and_waits_as_they_do),
    ON_BENCH(beside_torchruns_nodes_a_waiting_node_ends_the_round),
    ON_BENCH(but_not_when_somebody_is_done),
    ON_BENCH(who_waits_beside_a_full_round_is_made_a_spare),
    ON_BENCH(when_torchruns_nodes_have_left_one_write_takes_them_along),
    ON_BENCH(a_round_that_somebody_has_left_is_not_entered),
};

TEST_MAIN(tests)
