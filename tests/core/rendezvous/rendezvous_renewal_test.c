/* SPDX-License-Identifier: BSD-3-Clause */
/* Other reasons for a round have their tests elsewhere: lost nodes in failure_detector_test.c,
 * doubted failures in rendezvous_failure_test.c, new nodes in rendezvous_growth_test.c. */
#include "unit.h"

#include "rendezvous_bench.h"

ON_BENCH(who_is_told_of_a_new_round_need_not_ask_for_one) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_place_round(bench, 2, "am");
    bench_change(bench);
    bench_forget(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "");
}
