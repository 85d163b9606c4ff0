/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "rendezvous_bench.h"

#define ME "me_1_1073741824"

ON_BENCH(who_is_not_connected_has_nothing_to_leave) {
    struct bench *bench = *state;
    bench->machine = rendezvous_machine_new(&bench->settings);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_LEAVE_ASKED);
    bench_expect(bench, "connect 60.000; settled");
    bench_connect(bench, true, false);
    bench_expect(bench, "");
}

ON_BENCH(leaving_ends_in_time_though_the_store_does_not_answer) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench->holds_requests = true;
    bench_tell_kind(bench, RENDEZVOUS_EVENT_LEAVE_ASKED);
    bench_forget(bench);
    bench_wait(bench, 29.9);
    bench_forget(bench);
    bench_wait(bench, 0.2);
    bench_expect(bench, "settled");
}

ON_BENCH(a_new_round_calls_even_those_who_were_done) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_forget(bench);
    bench_place_round(bench, 2, "am");
    bench_change(bench);
    bench_expect(bench, "present " ME "; round_over a node has left the round");
}

ON_BENCH(a_closed_job_lets_spares_go) {
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
