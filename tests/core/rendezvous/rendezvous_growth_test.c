/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "rendezvous_bench.h"

#define ME "me_1_1073741824"

/* A node that stands on the wait list, and is nowhere, as far as the host knows. */
static void let_stand(struct bench *bench, const char *name) {
    place(&bench->record, muster_node(name))->is_waiting = true;
    bench_change(bench);
}

static void let_wait(struct bench *bench, const char *name) {
    bench_show(bench, name);
    let_stand(bench, name);
}

static int64_t round_after(struct bench *bench, double seconds) {
    bench_wait(bench, seconds);
    return bench->record.round;
}

/* The machine knows the next round, and its workers run in it. */
static void rejoin(struct bench *bench) {
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
}

ON_BENCH(the_host_admits_who_waits) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    let_wait(bench, "y");
    bench_expect(bench, "");
    bench_wait(bench, 0.01);
    bench_expect(bench, "write round 2 complete [" ME
                        ":0 x_1_1073741824:1 y_1_1073741824:2] wait [] spare [] because a node has "
                        "joined; round_over a node has joined");
}

ON_BENCH(the_others_leave_it_to_the_host) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, false);
    let_wait(bench, "y");
    assert_int_equal(round_after(bench, 100), 1);
}

ON_BENCH(the_host_admits_whatever_its_rank) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, true);
    let_wait(bench, "y");
    assert_int_equal(round_after(bench, 0.02), 2);
}

ON_BENCH(without_presence_the_first_admits_who_has_a_heartbeat) {
    struct bench *bench = *state;
    bench_run(bench, "ma", false, false);
    struct rendezvous_node *ghost = place(&bench->record, muster_node("ghost"));
    ghost->is_waiting = true;
    ghost->has_heartbeat = false;
    bench_change(bench);
    assert_int_equal(round_after(bench, 0.02), 1);
    let_stand(bench, "y");
    assert_int_equal(round_after(bench, 0.02), 2);
}

ON_BENCH(without_presence_the_others_leave_it_to_the_first) {
    struct bench *bench = *state;
    bench_run(bench, "am", false, false);
    let_stand(bench, "y");
    assert_int_equal(round_after(bench, 2), 1);
}

ON_BENCH(a_node_of_which_nothing_is_heard_is_not_let_in) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    let_stand(bench, "ghost");
    assert_int_equal(round_after(bench, 3), 1);
    let_wait(bench, "y"); /* it costs those who are there nothing */
    assert_int_equal(round_after(bench, 0.02), 2);
    assert_int_equal(rendezvous_state_participants(&bench->record), 3);
    rejoin(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker failed");
    assert_int_equal(bench->record.round, 3);
    assert_int_equal(rendezvous_state_participants(&bench->record), 3);
}

/* The next host of a store reads of nodes that come to it a moment later. */
ON_BENCH(a_node_that_shows_itself_late_is_let_in_then) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    let_stand(bench, "y");
    assert_int_equal(round_after(bench, 1), 1);
    bench_show(bench, "y");
    assert_int_equal(round_after(bench, 0.02), 2);
}

ON_BENCH(when_the_first_was_taken_out_the_next_is_the_first) {
    struct bench *bench = *state;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    bench_run(bench, "am", false, false);
    struct node_identity a = muster_node("a");
    torchrun_expels(&bench->record, &bench->settings.rendezvous, &a);
    let_stand(bench, "y");
    assert_int_equal(round_after(bench, 0.02), 2);
}

/* Node "y" comes, and dies as soon as it is admitted. The next admission then has to wait. */
static void come_and_go(struct bench *bench) {
    int64_t round = bench->record.round;
    let_wait(bench, "y");
    while (bench->record.round == round) {
        bench_wait(bench, 0.01);
    }
    rejoin(bench);
    bench_wait(bench, 1);
    bench_place_round(bench, bench->record.round + 1, "mx");
    bench_change(bench);
    rejoin(bench);
}

ON_BENCH(nodes_that_come_and_go_are_admitted_more_and_more_slowly) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    come_and_go(bench);
    let_wait(bench, "y");
    assert_int_equal(round_after(bench, 0.9), 3);
    assert_int_equal(round_after(bench, 0.2), 4);
    rejoin(bench);
    bench_place_round(bench, 5, "mx");
    bench_change(bench);
    rejoin(bench);
    let_wait(bench, "y");
    assert_int_equal(round_after(bench, 1.9), 5);
    assert_int_equal(round_after(bench, 0.2), 6);
    for (int i = 0; i < 10; i++) {
        rejoin(bench);
        bench_place_round(bench, bench->record.round + 1, "mx");
        bench_change(bench);
        rejoin(bench);
        let_wait(bench, "y");
        bench_wait(bench, 60.1); /* the wait is never longer than this */
        assert_int_equal(rendezvous_state_participants(&bench->record), 3);
    }
}

/* A job of three nodes, of which one is lost again and again just after it was replaced. */
ON_BENCH(who_replaces_a_lost_node_is_admitted_at_once) {
    struct bench *bench = *state;
    bench_run(bench, "mxy", true, true);
    for (int i = 0; i < 8; i++) {
        rejoin(bench);
        bench_place_round(bench, bench->record.round + 1, "mx");
        bench_change(bench);
        rejoin(bench);
        let_wait(bench, "y");
        bench_wait(bench, 0.02);
        assert_int_equal(rendezvous_state_participants(&bench->record), 3);
    }
}

ON_BENCH(a_world_that_has_stayed_is_what_is_replaced) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    let_wait(bench, "y");
    bench_wait(bench, 0.02);
    rejoin(bench);
    bench_wait(bench, 11); /* a world of three, for long enough */
    for (int i = 0; i < 3; i++) {
        bench_place_round(bench, bench->record.round + 1, "mx");
        bench_change(bench);
        rejoin(bench);
        let_wait(bench, "y");
        bench_wait(bench, 0.02);
        assert_int_equal(rendezvous_state_participants(&bench->record), 3);
        rejoin(bench);
    }
}

ON_BENCH(who_waits_for_an_admission_is_known_with_the_time_and_the_reason) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    assert_false(rendezvous_machine_admission(bench->machine, bench->now).is_awaited);
    come_and_go(bench);
    let_wait(bench, "y");
    struct rendezvous_admission admission =
        rendezvous_machine_admission(bench->machine, bench->now);
    assert_true(admission.is_awaited && admission.is_paused);
    assert_true(duration_seconds(instant_until(bench->now, admission.at)) > 0.9);
}

ON_BENCH(a_world_that_lasted_forgives) {
    struct bench *bench = *state;
    bench_run(bench, "mx", true, true);
    come_and_go(bench);
    bench_wait(bench, 61);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker failed");
    rejoin(bench);
    int64_t round = bench->record.round;
    let_wait(bench, "y");
    assert_int_equal(round_after(bench, 0.02), round + 1);
}
