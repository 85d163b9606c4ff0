/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_member.h"
#include "rendezvous_bench.h"

#define A "a_1_1073741824"

#define ME "me_1_1073741824"

static void fail_for_good(struct bench *bench) {
    bench_tell_reason(bench, RENDEZVOUS_EVENT_FAILURE_ASKED, "worker 1 failed");
}

static void lose(struct bench *bench, const char *name) {
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                          .gone = {.identity = muster_node(name)}});
}

/* A failure for which the job has no restart left. */

ON_BENCH(a_failure_stands_when_who_is_silent_is_not_lost_in_time) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    fail_for_good(bench);
    bench_forget(bench);
    bench_wait(bench, 6.9);
    assert_false(bench->record.is_closed);
    bench_forget(bench);
    bench_wait(bench, 0.2);
    assert_true(bench->record.is_closed && bench->record.has_failed);
    assert_string_equal(bench->record.reason, "worker 1 failed");
}

ON_BENCH(without_presence_it_takes_as_long_as_heartbeats_tell) {
    struct bench *bench = *state;
    bench_run(bench, "am", false, false);
    fail_for_good(bench);
    for (int i = 0; i < 20; i++) { /* the other node's heartbeats go on, but it does not answer */
        bench_wait(bench, 1);
        assert_false(bench->record.is_closed);
        const struct node_identity other = {.address = "a", .pid = 1, .local_id = 1073741824};
        struct rendezvous_node *node = rendezvous_state_find(&bench->record, &other);
        node->has_heartbeat = true;
        node->heartbeat.nanoseconds++;
    }
    bench_wait(bench, 3);
    assert_true(bench->record.is_closed);
}

ON_BENCH(a_failure_after_a_loss_is_none) {
    struct bench *bench = *state;
    bench->settings.rendezvous.minimum_nodes = 1;
    bench_run(bench, "abm", true, true);
    fail_for_good(bench);
    bench_forget(bench);
    lose(bench, "b");
    bench_expect(bench, "write round 2 complete [" A ":0 " ME
                        ":1] wait [] spare [] because node b (pid 1) is gone; "
                        "round_over node b (pid 1) is gone");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 2 rank 1 of 2");
    bench_wait(bench, 100);
    assert_false(bench->record.is_closed);
}

ON_BENCH(answers_that_come_after_a_loss_change_nothing) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, true);
    fail_for_good(bench);
    lose(bench, "b");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_ROLL_ANSWERED);
    assert_false(bench->record.is_closed);
    assert_int_equal(bench->record.round, 2);
}

ON_BENCH(a_failure_in_a_round_that_is_over_was_answered_already) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_place_round(bench, 2, "am");
    bench_change(bench);
    bench_forget(bench);
    fail_for_good(bench);
    bench_expect(bench, "");
}

ON_BENCH(without_others_nothing_is_doubted) {
    struct bench *bench = *state;
    bench->settings.rendezvous.minimum_nodes = 1;
    bench_run(bench, "m", true, true);
    fail_for_good(bench);
    bench_expect(bench, "failure_stands; write round 1 complete [" ME
                        ":0] wait [] spare [] closed failed because worker 1 failed; settled");
}

ON_BENCH(where_losses_are_not_heeded_nothing_is_doubted) {
    struct bench *bench = *state;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    bench_run(bench, "am", true, false);
    fail_for_good(bench);
    assert_true(bench->record.is_closed && bench->record.has_failed);
}

ON_BENCH(a_failure_stands_in_a_job_that_others_call_done) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    fail_for_good(bench);
    bench_forget(bench);
    bench->record.is_closed = true;
    bench_change(bench);
    bench_expect(bench, "failure_stands; settled");
}

ON_BENCH(a_failure_that_another_was_first_to_have_is_the_others) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    fail_for_good(bench);
    bench_forget(bench);
    bench->record.is_closed = true;
    bench->record.has_failed = true;
    strcpy(bench->record.reason, "worker 0 failed");
    bench_change(bench);
    bench_expect(bench, "closed worker 0 failed");
}

/* Restarts that were charged. */

static void restart(struct bench *bench) {
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    assert_int_equal(bench->record.restarts, 1);
    bench_forget(bench);
}

ON_BENCH(a_restart_long_before_a_loss_is_not) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, true);
    restart(bench);
    bench_wait(bench, 7.1);
    lose(bench, "b");
    assert_int_equal(bench->record.restarts, 1);
}

ON_BENCH(one_restart_is_given_back_once) {
    struct bench *bench = *state;
    bench->settings.rendezvous.minimum_nodes = 1;
    bench_run(bench, "abm", true, true);
    bench->record.restarts = 5;
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    assert_int_equal(bench->record.restarts, 6);
    lose(bench, "b");
    lose(bench, "a");
    assert_int_equal(bench->record.restarts, 5);
}

ON_BENCH(a_restart_before_this_node_came_is_not_given_back) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "abm");
    bench->record.restarts = 1;
    bench->record.is_charged = true;
    bench_join(bench, true, true);
    lose(bench, "b");
    assert_int_equal(bench->record.restarts, 1);
}

/* Records that were begun anew. */

/* The node runs in a job that has used two restarts, and then loses its connection. */
static void cut_off(struct bench *bench) {
    bench_place_round(bench, 5, "am");
    bench->record.origin = 7;
    bench->record.restarts = 2;
    bench->record.is_charged = true;
    bench_join(bench, true, false);
    bench_lose_connection(bench, true);
    bench_forget(bench);
    rendezvous_state_clear(&bench->record);
}

ON_BENCH(a_record_begun_anew_has_all_restarts_that_its_writer_knows_of) {
    struct bench *bench = *state;
    cut_off(bench);
    bench_connect(bench, true, false);
    bench_wait(bench, 1);
    assert_int_equal(bench->record.count, 1);
    assert_int_equal(rendezvous_state_ordinal(&bench->record), 6);
    /* somebody may hold a later one, and is told */
    assert_null(strstr(text_string(&bench->log), "write quietly"));
    assert_int_equal(bench->record.restarts, 2);
    assert_int_not_equal(bench->record.origin, 7);
}
