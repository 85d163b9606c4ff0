/* SPDX-License-Identifier: BSD-3-Clause */
/* Other reasons for a round have their tests elsewhere: lost nodes in failure_detector_test.c,
 * doubted failures in rendezvous_failure_test.c, new nodes in rendezvous_growth_test.c. */
#include "unit.h"

#include "rendezvous_bench.h"

#define A "a_1_1073741824"
#define ME "me_1_1073741824"

ON_BENCH(one_write_restarts_all) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "write round 2 complete [" A ":0 " ME
                        ":1] wait [] spare [] restarts 1 charged because worker 1 failed");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 2 rank 1 of 2");
}

ON_BENCH(a_restart_that_another_has_written_is_not_charged_again) {
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

ON_BENCH(who_is_told_of_a_new_round_need_not_ask_for_one) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_place_round(bench, 2, "am");
    bench_change(bench);
    bench_forget(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_expect(bench, "");
}

ON_BENCH(a_node_leaves_and_the_others_go_on) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_LEAVE_ASKED);
    bench_expect(bench, "write round 2 complete [a_1_1073741824:0 b_1_1073741824:1] wait [] spare "
                        "[] because node me (pid 1) has left; settled");
}

ON_BENCH(a_node_that_leaves_because_of_a_signal_says_which) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    bench_tell(
        bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_LEAVE_ASKED, .signal = 15});
    bench_expect(bench, "write round 2 complete [a_1_1073741824:0 b_1_1073741824:1] wait [] spare "
                        "[] signal 15 because node me (pid 1) has left; settled");
}

ON_BENCH(a_later_round_tells_of_no_signal) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, false);
    bench->record.signal = 15;
    bench_change(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    assert_int_equal(bench->record.round, 2);
    assert_int_equal(bench->record.signal, 0);
}

ON_BENCH(who_leaves_when_its_work_is_done_disturbs_nobody) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    bench_forget(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_LEAVE_ASKED);
    bench_expect(bench, "settled");
    assert_int_equal(rendezvous_state_participants(&bench->record), 2);
}

ON_BENCH(where_losses_are_waited_for_one_that_leaves_is_waited_for_too) {
    struct bench *bench = *state;
    bench->settings.rendezvous.minimum_nodes = 1;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    bench_run(bench, "abm", true, false);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_LEAVE_ASKED);
    bench_expect(bench, "write round 2 open [a_1_1073741824 b_1_1073741824] wait [] spare [] "
                        "wanted 3 because node me (pid 1) has left; settled");
}

ON_BENCH(a_spare_takes_the_place_of_a_node_that_leaves_at_once) {
    struct bench *bench = *state;
    bench->settings.rendezvous.maximum_nodes = 2;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    bench_run(bench, "am", true, false);
    place(&bench->record, muster_node("s"))->is_redundant = true;
    bench_change(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_LEAVE_ASKED);
    bench_expect(bench, "write round 2 complete [a_1_1073741824:0 s_1_1073741824:1] wait [] spare "
                        "[] because node me (pid 1) has left; settled");
}
