/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/failure_detector.h"
#include "rendezvous_bench.h"
#include "rendezvous_fixture.h"

#define A "a_1_1073741824"
#define B "b_1_1073741824"
#define ME "me_1_1073741824"

static void tell_gone(struct bench *bench, const char *name, bool has_finished) {
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                          .gone = {muster_node(name), has_finished}});
}

ON_BENCH(a_node_that_finished_may_go) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, true);
    bench->record.is_draining = true;
    tell_gone(bench, "a", true);
    bench_expect(bench, "");
    bench_place_round(bench, 2, "abm");
    bench_change(bench);
    bench_expect(bench, "round_over a node has left the round; write round 3 complete [" B ":0 " ME
                        ":1] wait [] spare [] because node a (pid 1) is gone");
}

/* Its presence was known to a host that is gone, too. */
ON_BENCH(a_node_that_the_record_says_is_done_may_go) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, true);
    bench->record.is_draining = true;
    place(&bench->record, muster_node("a"))->is_done = true;
    bench_change(bench);
    bench_forget(bench);
    tell_gone(bench, "a", false);
    bench_expect(bench, "");
    tell_gone(bench, "b", false);
    bench_expect_record(bench, "round 2 open [" ME "] wait [] spare [] wanted 2 because node b "
                               "(pid 1) is gone");
}

ON_BENCH(silence_is_judged_by_time_in_which_this_node_was_looking) {
    struct bench *bench = *state;
    bench_run(bench, "abm", false, false);
    bench->now.nanoseconds += INT64_C(60000000000); /* the host was stopped for a minute */
    bench_wait(bench, 4);
    assert_int_equal(rendezvous_state_participants(&bench->record), 3);
    bench_wait(bench, 20);
    bench_expect_record(bench, "round 2 open [" ME "] wait [] spare [] wanted 2 because node a "
                               "(pid 1) is gone");
}

ON_BENCH(a_host_that_stood_still_remembers_whose_loss_it_was_told_of) {
    struct bench *bench = *state;
    bench_run(bench, "abm", true, true);
    bench->holds_requests = true; /* it was about to see to it */
    tell_gone(bench, "a", false);
    bench->held = RENDEZVOUS_EFFECT_KIND_COUNT;
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                          .lost = {.reason = "stood still", .is_own_doing = true}});
    bench->holds_requests = false;
    bench_connect(bench, true, true);
    bench_wait(bench, 1);
    struct node_identity a = muster_node("a");
    assert_null(rendezvous_state_find(&bench->record, &a));
}

ON_BENCH(a_node_that_is_gone_is_gone_also_when_a_record_brings_it_back) {
    struct bench *bench = *state;
    struct node_identity a = muster_node("a");
    bench_run(bench, "abm", true, true);
    tell_gone(bench, "a", false);
    bench_wait(bench, 1);
    assert_null(rendezvous_state_find(&bench->record, &a));
    /* the record was lost, and who wrote it again knew an old one */
    rendezvous_state_obtain(&bench->record, &a)->is_redundant = true;
    bench_change(bench);
    bench_wait(bench, 1);
    assert_null(rendezvous_state_find(&bench->record, &a));
}

ON_BENCH(who_comes_back_without_presence_takes_its_former_self_out) {
    struct bench *bench = *state;
    bench_run(bench, "abm", false, false);
    bench_lose_connection(bench, false);
    bench_forget(bench);
    bench_connect(bench, false, false);
    bench_wait(bench, 1);
    assert_null(rendezvous_state_find(&bench->record, &bench->settings.identity));
    assert_int_equal(bench->record.round, 2);
    assert_int_equal(rendezvous_state_participants(&bench->record), 2);
    assert_int_equal(rendezvous_state_waiting(&bench->record), 1);
}

ON_BENCH(losses_are_not_heeded_where_only_failures_count) {
    struct bench *bench = *state;
    bench->settings.rendezvous.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    bench_run(bench, "abm", true, true);
    tell_gone(bench, "a", false);
    bench_expect(bench, "write round 1 complete [" B ":1 " ME ":2] wait [] spare []");
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker failed");
    bench_expect(bench, "write round 2 complete [" B ":0 " ME
                        ":1] wait [] spare [] restarts 1 charged because worker failed");
}

static void answer_count(struct bench *bench, int64_t count) {
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_FINISHED_COUNT, .finished_count = count});
}

ON_BENCH(a_silent_node_of_torchruns_is_taken_out_when_nobody_is_there) {
    struct bench *bench = *state;
    bench_run_beside_torch(bench, "am");
    bench_wait(bench, 16.5);
    bench_forget(bench);
    answer_count(bench, 0);
    bench_expect(bench, "write round 1 complete [" A ":0 " ME
                        ":1] wait [] spare []; round_over node t (pid 1) has left the round; "
                        "write round 2 complete [" A ":0 " ME
                        ":1] wait [] spare [] because node t (pid 1) has left the round");
}

/* What is done for each node must not search through all nodes: the nodes differ only at the end of
 * long names, and come in another order each time. Searching would take minutes. */
ON_BENCH(a_thousand_nodes_of_the_largest_record_are_taken_out_at_once) {
    struct bench *bench = *state;
    bench->settings.rendezvous.maximum_nodes = RENDEZVOUS_NODES_MAXIMUM;
    bench_run(bench, "am", true, true);
    bench->record.nodes =
        realloc(bench->record.nodes, RENDEZVOUS_NODES_MAXIMUM * sizeof *bench->record.nodes);
    bench->record.capacity = RENDEZVOUS_NODES_MAXIMUM;
    for (size_t i = 2; i < RENDEZVOUS_NODES_MAXIMUM; i++) {
        struct rendezvous_node *node = &bench->record.nodes[bench->record.count++];
        *node = (struct rendezvous_node){.identity = muster_node("x"), .is_participant = true};
        memset(node->identity.address, 'x', 240);
        snprintf(node->identity.address + 240, 16, "%zu", i);
        node->rank = (int64_t)i;
    }
    bench->record.size = RENDEZVOUS_NODES_MAXIMUM;
    bench->record.round++;
    bench_change(bench);
    bench->holds_requests = true;
    bench_tell_kind(bench, RENDEZVOUS_EVENT_CHANGED);
    for (size_t i = 2; i < RENDEZVOUS_NODES_MAXIMUM; i += 64) {
        bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                              .gone = {bench->record.nodes[i].identity, false}});
    }
    for (size_t i = 2; i < RENDEZVOUS_NODES_MAXIMUM + 1 - i; i++) {
        struct rendezvous_node node = bench->record.nodes[i];
        bench->record.nodes[i] = bench->record.nodes[RENDEZVOUS_NODES_MAXIMUM + 1 - i];
        bench->record.nodes[RENDEZVOUS_NODES_MAXIMUM + 1 - i] = node;
    }
    bench->holds_requests = false;
    bench_answer(bench);
    while (bench->held != RENDEZVOUS_EFFECT_KIND_COUNT) {
        bench_answer(bench);
    }
    assert_int_equal(bench->record.count, RENDEZVOUS_NODES_MAXIMUM - 1024);
    bench_forget(bench);
}

/* Heartbeat watch. */

/* Two looks that are further apart count as ten seconds. */
static const struct duration interval = {INT64_C(5000000000)};

static struct instant at(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

static void look_as(struct failure_detector *detector, const struct rendezvous_state *record,
    struct instant now, struct duration patience) {
    struct rendezvous_view view = {.seen = *record}; /* borrowed */
    failure_detector_look(detector, &view, now, patience, false, false);
}

static void look(
    struct failure_detector *detector, const struct rendezvous_state *record, double seconds) {
    look_as(detector, record, at(seconds), interval);
}

static bool is_silent_for_more_than(const struct failure_detector *detector,
    const struct node_identity *identity, int64_t nanoseconds) {
    struct rendezvous_view view = {.me = torch_node("me")};
    struct rendezvous_node node = {.identity = *identity};
    struct rendezvous_settings settings = sized(1, 2);
    settings.keep_alive_interval.nanoseconds = nanoseconds;
    settings.keep_alive_max_attempt = 1;
    return failure_detector_judge(detector, &view, &node, &settings, false) != RENDEZVOUS_LOSS_NONE;
}

static void check_silence_of(
    const struct failure_detector *detector, struct node_identity identity, int64_t nanoseconds) {
    assert_false(is_silent_for_more_than(detector, &identity, nanoseconds));
    assert_true(is_silent_for_more_than(detector, &identity, nanoseconds - 1));
}

static void check_silence(
    const struct failure_detector *detector, const char *address, double seconds) {
    check_silence_of(detector, torch_node(address), at(seconds).nanoseconds);
}

static void beat(struct rendezvous_state *record, const char *address, int64_t seconds) {
    place(record, torch_node(address))->heartbeat = wall_seconds(seconds);
}

TEST(a_node_never_seen_is_not_silent) {
    CLEARED_BY(failure_detector_clear) struct failure_detector detector = {0};
    check_silence(&detector, "a", 0);
    struct rendezvous_state record = {0};
    look(&detector, &record, 1);
    look(&detector, &record, 2);
    check_silence(&detector, "a", 0);
}

TEST(a_node_that_has_never_given_a_heartbeat_is_silent) {
    CLEARED_BY(failure_detector_clear) struct failure_detector detector = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place(&record, torch_node("a"))->has_heartbeat = false;
    record.nodes[0].is_participant = true;
    look(&detector, &record, 0);
    look(&detector, &record, 5);
    check_silence(&detector, "a", 5);
}

TEST(silence_does_not_run_over) {
    const struct duration forever = {INT64_MAX / 2};
    CLEARED_BY(failure_detector_clear) struct failure_detector detector = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&detector, &record, 0);
    look_as(&detector, &record, (struct instant){INT64_MAX}, forever);
    detector.heartbeats.last_look = at(0);
    look_as(&detector, &record, (struct instant){INT64_MAX}, forever);
    check_silence_of(&detector, torch_node("a"), INT64_MAX);
}

TEST(ten_thousand_nodes_are_watched_in_any_order) {
    enum { NODES = 10000 };
    CLEARED_BY(failure_detector_clear) struct failure_detector detector = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    record.nodes = calloc(NODES, sizeof *record.nodes);
    record.count = record.capacity = NODES;
    for (int64_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < NODES; i++) {
            size_t number = (i * 7919 + (size_t)round * 31) % NODES;
            record.nodes[i].has_heartbeat = true;
            record.nodes[i].heartbeat = wall_seconds(number % 2 == 0 ? 7 : round);
            snprintf(record.nodes[i].identity.address, NODE_ADDRESS_SIZE, "n%zu", number);
        }
        look(&detector, &record, (double)round);
    }
    assert_int_equal(detector.heartbeats.count, NODES);
    for (size_t i = 0; i < NODES; i++) {
        bool stands = record.nodes[i].heartbeat.nanoseconds == wall_seconds(7).nanoseconds;
        check_silence_of(&detector, record.nodes[i].identity, at(stands ? 2 : 0).nanoseconds);
    }
}
