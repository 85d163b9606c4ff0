/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "rendezvous_bench.h"

#define A "a_1_1073741824"
#define ME "me_1_1073741824"
#define T "t_1_0"

static void expect_join(struct bench *bench, int maximum_nodes, const char *write) {
    bench->settings.rendezvous = sized(3, maximum_nodes);
    place(&bench->record, muster_node("a"))->is_participant = true;
    bench_join(bench, true, false);
    CLEARED_BY(text_clear) struct text expected = {0};
    text_append_format(&expected,
        "connect 600.000; present " ME "; %s round 0 open [" A " " ME "] wait [] spare []", write);
    bench_expect(bench, text_string(&expected));
}

ON_BENCH(of_few_nodes_each_sees_who_comes) {
    expect_join(*state, 32, "write");
}

ON_BENCH(of_many_nodes_none_is_woken_for_one_that_comes) {
    expect_join(*state, 33, "write quietly");
}

ON_BENCH(the_last_call_is_timed_by_this_nodes_own_clock) {
    struct bench *bench = *state;
    place(&bench->record, muster_node("a"))->is_participant = true;
    bench->wall_offset = -INT64_C(1000000000) * 1000000;
    bench_join(bench, true, false);
    bench_forget(bench);
    bench_wait(bench, 1.9);
    bench_expect(bench, "");
    bench_wait(bench, 0.2);
    bench_expect(bench, "write round 0 complete [a_1_1073741824:0 " ME
                        ":1] wait [] spare []; world round 0 rank 1 of 2");
}

/* The node comes back under a new name, to a record that another node has begun anew. */
ON_BENCH(who_was_cut_off_does_not_begin_again_in_the_round_that_it_left) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    rendezvous_state_clear(&bench->record);
    place(&bench->record, muster_node("new"))->is_participant = true;
    bench_connect(bench, true, false);
    bench_wait(bench, 10);
    assert_true(bench->record.is_complete);
    assert_int_equal(bench->record.round, 2);
}

ON_BENCH(who_was_cut_off_is_not_put_into_the_round_that_it_left) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_place_round(bench, 1, "a");
    bench_connect(bench, true, false);
    bench_forget(bench);
    struct rendezvous_node *self =
        place(&bench->record, *rendezvous_machine_identity(bench->machine));
    self->is_waiting = false;
    self->is_participant = true;
    self->rank = 1;
    bench_change(bench);
    assert_null(strstr(text_string(&bench->log), "world round 1"));
    assert_non_null(strstr(text_string(&bench->log), "world round 2"));
}

ON_BENCH(a_node_that_may_not_be_admitted_waits_for_ever_too) {
    struct bench *bench = *state;
    bench->settings.rendezvous.scale_up = RENDEZVOUS_SCALE_UP_NEVER;
    bench_place_round(bench, 1, "ab");
    bench_join(bench, true, false);
    bench_forget(bench);
    bench_wait(bench, 100000);
    assert_null(strstr(text_string(&bench->log), "failed"));
    assert_int_equal(rendezvous_state_waiting(&bench->record), 1);
}

ON_BENCH(a_world_that_does_not_come_together_fails_and_leaves_nothing_behind) {
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

ON_BENCH(a_last_call_does_not_end_the_wait_for_a_replacement) {
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

ON_BENCH(beside_torchruns_nodes_a_failed_node_leaves_and_waits_as_they_do) {
    struct bench *bench = *state;
    bench_run_beside_torch(bench, "am");
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "write round 1 complete [" A ":0 " T
                        ":2] wait [] spare [] restarts 1 because worker 1 failed; "
                        "write round 1 complete [" A ":0 " T ":2] wait [" ME
                        "] spare [] restarts 1 because worker 1 failed");
}

ON_BENCH(when_torchruns_nodes_have_left_one_write_takes_them_along) {
    struct bench *bench = *state;
    bench_run_beside_torch(bench, "am");
    struct node_identity t = torch_node("t");
    rendezvous_state_find(&bench->record, &t)->is_participant = false;
    rendezvous_state_find(&bench->record, &t)->is_waiting = true;
    bench_change(bench);
    bench_expect(bench, "round_over a node has left the round; write round 2 complete [" A ":0 " ME
                        ":1 " T ":2] wait [] spare [] because a node has left the round");
}

/* The last of it was lost, which leaves no gap in the ranks. */
ON_BENCH(a_round_that_has_become_too_small_is_not_entered) {
    struct bench *bench = *state;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    bench_place_round(bench, 1, "m");
    place(&bench->record, muster_node("b"))->is_redundant = true;
    bench_join(bench, true, false);
    bench_expect(bench, "connect 60.000; present " ME "; write round 2 complete [" ME
                        ":1 b_1_1073741824:0] wait [] spare [] because a node has left the round; "
                        "world round 2 rank 1 of 2");
}
