/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of connections, requests and time. Decisions from the record are tested in
 * rendezvous_evaluation_test.c and the tests beside it. */
#include "unit.h"

#include "rendezvous_bench.h"

#define ME "me_1_1073741824"

ON_BENCH(a_lost_write_is_thought_over_at_once_and_later_after_a_pause) {
    struct bench *bench = *state;
    bench->holds_requests = true;
    bench_join(bench, true, false);
    bench_answer(bench);
    bench_forget(bench);
    place(&bench->record, muster_node("a"))->is_participant = true;
    bench_lose_write(bench);
    bench_expect(bench, "write round 0 last_call [a_1_1073741824 " ME "] wait [] spare []");
    bench_lose_write(bench);
    bench_expect(bench, "");
    assert_true(bench->timer.nanoseconds - bench->now.nanoseconds <= 1000000);
    bench_wait(bench, 0.001);
    for (int i = 0; i < 10; i++) {
        /* The record may have changed during the pause. */
        assert_int_equal(bench->held, RENDEZVOUS_EFFECT_FETCH);
        bench_answer(bench);
        bench_lose_write(bench);
        assert_true(bench->timer.nanoseconds - bench->now.nanoseconds <= 64000000);
        bench_wait(bench, 0.064);
    }
}

ON_BENCH(the_pause_grows_with_what_a_write_takes) {
    struct bench *bench = *state;
    bench->holds_requests = true;
    bench_join(bench, true, false);
    bench_answer(bench);
    int64_t longest = 0;
    for (int i = 0; i < 15; i++) {
        bench->now.nanoseconds += 100000000;
        bench_lose_write(bench);
        if (bench->held == RENDEZVOUS_EFFECT_WRITE) {
            continue; /* no pause follows the first lost write */
        }
        int64_t pause = bench->timer.nanoseconds - bench->now.nanoseconds;
        assert_true(pause <= 3200000000);
        longest = pause > longest ? pause : longest;
        bench_wait(bench, 3.2);
        bench_answer(bench);
    }
    assert_true(longest > 1000000000);
}

ON_BENCH(a_pause_ends_even_if_its_timer_was_replaced) {
    struct bench *bench = *state;
    bench->holds_requests = true;
    bench_join(bench, true, false);
    bench_answer(bench);
    bench_lose_write(bench);
    bench_lose_write(bench);
    bench->now.nanoseconds += 2000000;
    bench_change(bench);
    bench_answer(bench);
    assert_int_equal(bench->held, RENDEZVOUS_EFFECT_WRITE);
}

ON_BENCH(the_host_tells_the_watchers_what_a_stranger_wrote) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, true);
    place(&bench->record, torch_node("t"))->is_redundant = true;
    bench_tell_kind(bench, RENDEZVOUS_EVENT_STRANGER_WROTE);
    bench_expect(bench, "tell_watchers");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_STRANGER_WROTE);
    bench_expect(bench, "");
}

ON_BENCH(where_presence_is_served_nobody_polls) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, true);
    bench->holds_requests = true;
    bench_wait(bench, 4.9);
    assert_int_not_equal(bench->held, RENDEZVOUS_EFFECT_FETCH);
}

#define LOST "round_over connection lost; connect "

ON_BENCH(a_lost_connection_ends_the_world_and_a_new_one_begins_under_a_new_name) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_expect(bench, LOST "30.000 or refused for 5.000");
    bench_place_round(bench, 2, "a");
    bench_connect(bench, true, false);
    assert_null(strstr(text_string(&bench->log), ME));
    assert_int_equal(rendezvous_state_waiting(&bench->record), 1);
}

/* A host that is silent and one that refuses have the same end. */
ON_BENCH(a_lost_host_is_waited_for_until_the_host_timeout_and_that_is_said) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, false);
    bench_expect(bench, LOST "30.000 or refused for 5.000");
    bench_wait(bench, 13);
    bench_expect(
        bench, "store_awaited for 6.000 left 24.000; store_awaited for 12.000 left 18.000");
    bench_lose_connection(bench, true);
    bench_expect(bench, "failed connection lost");
    bench_wait(bench, 100);
    bench_expect(bench, "");
}

static void hear_nothing_but_the_host(struct bench *bench) {
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                          .lost = {.reason = "no store", .is_silent = true, .was_heard = true}});
}

/* One connection was made, the others were not: the network is bad. */
ON_BENCH(a_host_that_was_heard_meanwhile_is_waited_for_as_long_as_a_world) {
    struct bench *bench = *state;
    bench->settings.rendezvous.join_timeout = duration_from_seconds(50);
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_expect(bench, LOST "30.000 or refused for 5.000");
    bench_wait(bench, 30);
    bench_forget(bench);
    hear_nothing_but_the_host(bench);
    bench_expect(bench, "connect 50.000 or refused for 5.000");
    bench_wait(bench, 20);
    bench_forget(bench);
    hear_nothing_but_the_host(bench);
    bench_expect(bench, "failed no store");
}

ON_BENCH(a_host_that_was_heard_and_then_refuses_is_gone) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_wait(bench, 7);
    bench_forget(bench);
    hear_nothing_but_the_host(bench);
    bench_expect(bench, "failed no store");
}

ON_BENCH(a_lost_host_is_waited_for_no_longer_than_a_world) {
    struct bench *bench = *state;
    bench->settings.rendezvous.join_timeout = duration_from_seconds(20);
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_expect(bench, LOST "20.000 or refused for 5.000");
}

ON_BENCH(a_host_that_is_back_is_no_longer_awaited) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_connect(bench, true, false);
    bench_forget(bench);
    bench_wait(bench, 4.9);
    bench_expect(bench, "");
}

ON_BENCH(who_hosts_the_store_cannot_do_without_it) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, true);
    bench_lose_connection(bench, false);
    bench_expect(bench, "round_over connection lost; failed connection lost");
}

ON_BENCH(a_node_closes_the_record) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_CLOSE_ASKED, "worker 3 failed");
    bench_expect(bench, "write round 1 complete [a_1_1073741824:0 " ME
                        ":1] wait [] spare [] closed failed because worker 3 failed; settled");
    assert_true(bench->record.has_failed);
}

ON_BENCH(a_record_that_cannot_be_read_ends_this_node_and_is_left_alone) {
    struct bench *bench = *state;
    bench->holds_requests = true;
    bench_join(bench, true, false);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_BROKEN, "not a record");
    bench_expect(bench, "connect 60.000; present " ME "; failed not a record");
    bench_wait(bench, 1000);
    bench_expect(bench, "");
}

ON_BENCH(an_idle_node_only_beats) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_wait(bench, 20);
    bench_expect(bench, "beat; beat; beat; beat");
}

ON_BENCH(the_first_of_the_world_looks_only_where_no_host_keeps_watch) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, false);
    bench_wait(bench, 4);
    place(&bench->record, muster_node("b"))->is_waiting = true;
    bench_wait(bench, 0.9);
    bench_expect(bench, "");
}

ON_BENCH(who_is_parked_looks_only_where_no_host_keeps_watch) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "abcd");
    bench_join(bench, true, false);
    int fetches = bench->fetches;
    bench_wait(bench, 20);
    assert_int_equal(bench->fetches, fetches);
}

ON_BENCH(beside_nodes_that_tell_nobody_everybody_looks) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    place(&bench->record, torch_node("t"))->is_waiting = true;
    bench_change(bench);
    int fetches = bench->fetches;
    bench_wait(bench, 10);
    assert_in_range(bench->fetches, fetches + 9, fetches + 10);
}
