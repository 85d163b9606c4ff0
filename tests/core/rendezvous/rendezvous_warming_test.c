/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "rendezvous_bench.h"

#define ME "me_1_1073741824"

/* The machine is new, wants to warm for 30 s, and finds a round of these nodes. */
static void find_round(struct bench *bench, const char *names) {
    bench->settings.warming_patience = duration_from_seconds(30);
    bench_place_round(bench, 1, names);
    bench_join(bench, true, false);
}

static bool is_in_record(struct bench *bench) {
    return rendezvous_state_find(&bench->record, rendezvous_machine_identity(bench->machine)) !=
           NULL;
}

ON_BENCH(standby_workers_that_are_not_ready_in_time_are_not_waited_for) {
    struct bench *bench = *state;
    find_round(bench, "ab");
    bench_wait(bench, 29.9);
    assert_false(is_in_record(bench));
    bench_wait(bench, 0.2);
    assert_true(is_in_record(bench));
}

ON_BENCH(a_node_that_will_be_a_spare_warms_as_well) {
    struct bench *bench = *state;
    find_round(bench, "abcd");
    bench_expect(bench, "connect 60.000; present " ME "; warm 30.000");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_WARMED);
    assert_int_equal(rendezvous_state_redundant(&bench->record), 1);
}

ON_BENCH(a_world_that_waits_for_nodes_does_not_wait_for_their_standby_workers) {
    struct bench *bench = *state;
    find_round(bench, "ab");
    bench->record.is_complete = false;
    bench_change(bench);
    assert_true(is_in_record(bench));
}

ON_BENCH(beside_nodes_of_torchrun_nothing_waits) {
    struct bench *bench = *state;
    bench->settings.warming_patience = duration_from_seconds(30);
    bench_place_round(bench, 1, "a");
    bench_place_torch(bench);
    bench_join(bench, true, false);
    assert_null(strstr(text_string(&bench->log), "warm"));
    assert_true(is_in_record(bench));
}

ON_BENCH(a_node_that_was_in_a_world_does_not_warm_again) {
    struct bench *bench = *state;
    bench->settings.warming_patience = duration_from_seconds(30);
    bench_run(bench, "am", true, false);
    bench_lose_connection(bench, true);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_place_round(bench, 2, "ab");
    bench_connect(bench, true, false);
    assert_null(strstr(text_string(&bench->log), "warm"));
    assert_true(is_in_record(bench));
}
