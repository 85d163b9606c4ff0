/* SPDX-License-Identifier: BSD-3-Clause */
/* The bench is a node that delegates; the test is the host of the store. */
#include "unit.h"

#include "core/rendezvous/rendezvous_machine.h"
#include "rendezvous_bench.h"

#define ME "me_1_1073741824"

static void connect(struct bench *bench, bool offers) {
    bench->settings.rendezvous.delegates = true;
    bench->machine = rendezvous_machine_new(&bench->settings);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_forget(bench);
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                          .connected = {.has_presence = true, .offers_delegation = offers}});
}

/* The host tells that this node is the participant ranked 1 of `count` of a complete round. */
static struct rendezvous_state world_of(int64_t round, size_t count) {
    struct node_identity me = muster_node("me");
    struct rendezvous_state record = {
        .round = round, .is_complete = true, .crowd = {.participants = count - 1}};
    struct rendezvous_node *self = rendezvous_state_obtain(&record, &me);
    self->is_participant = true;
    self->rank = 1;
    return record;
}

static void tell(struct bench *bench, struct rendezvous_state record_taken, int64_t answers) {
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STANDING,
                          .standing = {.state = &record_taken, .answers = answers}});
    rendezvous_state_clear(&record_taken);
}

static void withdraw(struct bench *bench) {
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_STANDING, .standing.is_withdrawn = true});
}

static void run(struct bench *bench) {
    connect(bench, true);
    tell(bench, world_of(3, 4), 1);
    bench_forget(bench);
}

ON_BENCH(a_failure_is_wished_and_not_written) {
    struct bench *bench = *state;
    run(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_RESTART_ASKED, "worker 1 failed");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "present " ME " wish 2 join failed 3 worker 1 failed");
    tell(bench, world_of(4, 4), 2);
    bench_expect(bench, "world round 4 rank 1 of 4; present " ME " wish 3 join");
    assert_int_equal(bench->fetches + bench->writes, 0);
}

ON_BENCH(a_doubted_failure_calls_the_roll) {
    struct bench *bench = *state;
    run(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_FAILURE_ASKED, "worker 1 failed");
    bench_expect(bench, "present " ME " wish 2 join doubted 3");
    struct rendezvous_state doubted = world_of(3, 4);
    doubted.is_doubted = true;
    tell(bench, doubted, 2);
    bench_expect(bench, "answer_roll round 3 rank 1; call_roll round 3 of 4");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_ROLL_ANSWERED);
    bench_expect(bench, "failure_stands; present " ME " wish 3 close worker 1 failed");
    struct rendezvous_state closed = world_of(3, 4);
    closed.is_closed = true;
    tell(bench, closed, 3);
    bench_expect(bench, "settled");
}

ON_BENCH(a_node_leaves_when_the_host_knows_it) {
    struct bench *bench = *state;
    run(bench);
    bench_tell(
        bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_LEAVE_ASKED, .signal = 15});
    bench_expect(bench, "present " ME " wish 2 leave signal=15");
    struct rendezvous_state without = {.round = 4, .crowd = {.participants = 3}};
    tell(bench, without, 1);
    bench_expect(bench, "");
    tell(bench, without, 2);
    bench_expect(bench, "settled");
}

ON_BENCH(a_node_whose_workers_are_done_says_in_which_round) {
    struct bench *bench = *state;
    run(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_DONE_ASKED);
    const char *said = text_string(&bench->log);
    assert_non_null(strstr(said, "finished wish 2 join finished 3"));
}

ON_BENCH(a_new_node_says_its_role_and_is_told_its_ranks) {
    struct bench *bench = *state;
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state world = world_of(3, 4);
    world.ranked = 4;
    bench->settings.role = (struct node_role){"default", 2};
    connect(bench, true);
    bench_expect(bench, "present " ME " wish 1 join as default with 2 new");
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STANDING,
                          .standing = {.state = &world, .answers = 1, .ranks = {2, 8, 2, 8}}});
    bench_expect(bench, "world round 3 rank 1 of 4 ranked");
}

/* The host tells of a round that is ranked, and held unless it tells the ranks, too. */
static void tell_ranked(struct bench *bench, int64_t round, bool is_held) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state world = world_of(round, 4);
    world.ranked = round + 1;
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STANDING,
                          .standing = {.state = &world,
                              .is_held = is_held,
                              .ranks = is_held ? (struct rank_assignment){0}
                                               : (struct rank_assignment){2, 8, 2, 8},
                              .meeting = rendezvous_meeting_at(
                                  round, is_held ? NULL : "10.0.0.1", is_held ? 0 : 29400)}});
}

static void run_ranked(struct bench *bench) {
    bench->settings.role = (struct node_role){"default", 2};
    connect(bench, true);
    tell_ranked(bench, 3, false);
    bench_forget(bench);
}

ON_BENCH(who_has_ended_its_workers_says_that_it_is_ready) {
    struct bench *bench = *state;
    run_ranked(bench);
    tell_ranked(bench, 4, true);
    bench_expect(bench, "round_over a node has left the round");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench,
        "world round 4 rank 1 of 4 held; present " ME " wish 2 join as default with 2 ready 4");
    tell_ranked(bench, 4, false);
    bench_expect(bench, "released round 4 meets at 10.0.0.1 port 29400");
    tell_ranked(bench, 5, true);
    bench_expect(bench, "round_over a node has left the round");
}

/* The host does not know any more what it had ranked. */
ON_BENCH(a_held_world_that_is_not_ranked_any_more_is_over) {
    struct bench *bench = *state;
    run_ranked(bench);
    tell_ranked(bench, 4, true);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_forget(bench);
    struct rendezvous_state world = world_of(4, 4);
    world.ranked = 5;
    tell(bench, world, 2);
    assert_non_null(strstr(text_string(&bench->log), "round_over the host of the job's store"));
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    assert_non_null(strstr(text_string(&bench->log), "ended 4"));
}

ON_BENCH(rank_0_says_where_the_workers_meet_when_it_is_ready) {
    struct bench *bench = *state;
    run_ranked(bench);
    struct rendezvous_state world = world_of(4, 4);
    world.ranked = 5;
    world.nodes[0].rank = 0;
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STANDING,
                          .standing = {.state = &world, .is_held = true}});
    rendezvous_state_clear(&world);
    bench_forget(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 4 rank 0 of 4 held");
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_OPENED,
                          .opened = {.round = 4, .address = "10.0.0.1", .port = 29400}});
    bench_expect(bench, "present " ME " wish 2 join as default with 2 ready 4 meets at 10.0.0.1 "
                        "port 29400");
}

/* On its new connection it has said nothing yet. */
ON_BENCH(who_connects_again_is_neither_new_nor_ready) {
    struct bench *bench = *state;
    run_ranked(bench);
    bench_lose_connection(bench, false);
    bench_forget(bench);
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                          .connected = {.has_presence = true, .offers_delegation = true}});
    const char *said = text_string(&bench->log);
    assert_non_null(strstr(said, "wish 1 join as default with 2"));
    assert_null(strstr(said, "new"));
    assert_null(strstr(said, "ready"));
}

ON_BENCH(what_is_withdrawn_ends_delegation) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "am");
    connect(bench, true);
    bench_forget(bench);
    withdraw(bench);
    bench_expect(bench, "present " ME "; world round 1 rank 1 of 2");
    assert_int_equal(bench->fetches, 1);
}

ON_BENCH(who_is_late_asks_to_write_itself) {
    struct bench *bench = *state;
    connect(bench, true);
    struct rendezvous_state open = world_of(0, 1);
    open.is_complete = false;
    tell(bench, open, 1);
    bench_forget(bench);
    bench_wait(bench, 61);
    assert_non_null(strstr(text_string(&bench->log), "wish 2 own"));
}

ON_BENCH(who_is_late_and_was_told_nothing_writes_itself) {
    struct bench *bench = *state;
    connect(bench, true);
    bench_wait(bench, 59);
    assert_int_equal(bench->fetches, 0);
    bench_wait(bench, 2);
    assert_true(bench->fetches > 0);
}

ON_BENCH(who_is_late_does_not_wait_for_a_host_that_is_mute) {
    struct bench *bench = *state;
    connect(bench, true);
    struct rendezvous_state open = world_of(0, 1);
    open.is_complete = false;
    tell(bench, open, 1);
    bench_wait(bench, 61);
    assert_int_equal(bench->fetches, 0);
    bench_wait(bench, 6);
    assert_true(bench->fetches > 0);
}
