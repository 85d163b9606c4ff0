/* SPDX-License-Identifier: BSD-3-Clause */
/* The bench is the host of the store, with two nodes that delegate to it. */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_serving.h"
#include "rendezvous_bench.h"

#define ME "me_1_1073741824"
#define A "a_1_1073741824"
#define B "b_1_1073741824"

static void wish(struct bench *bench, const char *name, struct rendezvous_wish said) {
    said.sequence = said.sequence == 0 ? 1 : said.sequence;
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_WISHED, .wished = {muster_node(name), said}});
}

static void wish_to(struct bench *bench, const char *name, enum rendezvous_wish_kind kind) {
    wish(bench, name, rendezvous_wish_of(kind));
}

static void run_with_a_and_b(struct bench *bench) {
    bench_run(bench, "mab", true, true);
    wish_to(bench, "a", RENDEZVOUS_WISH_JOIN);
    wish_to(bench, "b", RENDEZVOUS_WISH_JOIN);
    bench_forget(bench);
}

ON_BENCH(many_nodes_come_in_one_write) {
    struct bench *bench = *state;
    bench->holds_requests = true;
    bench_join(bench, true, true);
    bench_forget(bench);
    wish_to(bench, "a", RENDEZVOUS_WISH_JOIN);
    wish_to(bench, "b", RENDEZVOUS_WISH_JOIN);
    bench_answer(bench); /* there is no record: this node begins it */
    bench_answer(bench);
    bench_answer(bench);
    assert_int_equal(bench->writes, 2);
    bench_expect_record(bench, "round 0 last_call [" ME " " A " " B "] wait [] spare []");
    bench_forget(bench);
    wish_to(bench, "a", RENDEZVOUS_WISH_JOIN); /* a sign of life */
    bench_expect(bench, "");
}

ON_BENCH(who_leaves_is_taken_out_and_told) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    struct rendezvous_wish leave = rendezvous_wish_of(RENDEZVOUS_WISH_LEAVE);
    leave.sequence = 2;
    leave.signal = 15;
    wish(bench, "a", leave);
    bench_expect_record(bench, "round 2 complete [" ME ":1 " B ":0] wait [] spare [] signal 15 "
                               "because node a (pid 1) has left");
    assert_non_null(strstr(text_string(&bench->log), "tell_standings 2;"));
}

ON_BENCH(doubts_and_finished_workers_are_marked) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    struct rendezvous_wish said = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    said.sequence = 2;
    said.doubted_round = 1;
    said.finished_round = 0; /* an earlier round */
    wish(bench, "a", said);
    assert_true(bench->record.is_doubted);
    assert_false(bench->record.is_draining);
    said.sequence = 3;
    said.finished_round = 1;
    wish(bench, "a", said);
    assert_true(bench->record.is_draining);
}

ON_BENCH(the_record_is_not_closed_for_a_node_that_was_done_in_an_earlier_round) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    struct rendezvous_wish close = rendezvous_wish_of(RENDEZVOUS_WISH_CLOSE);
    close.finished_round = 0;
    wish(bench, "a", close);
    assert_false(bench->record.is_closed);
    close.finished_round = 1;
    wish(bench, "b", close);
    assert_true(bench->record.is_closed);
}

ON_BENCH(the_record_is_closed_for_a_node) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    struct rendezvous_wish close = rendezvous_wish_of(RENDEZVOUS_WISH_CLOSE);
    strcpy(close.reason, "worker 1 failed");
    wish(bench, "a", close);
    assert_true(bench->record.is_closed && bench->record.has_failed);
    assert_string_equal(bench->record.reason, "worker 1 failed");
    assert_non_null(strstr(text_string(&bench->log), "tell_standings 2;"));
    bench_forget(bench);
    wish_to(bench, "c", RENDEZVOUS_WISH_JOIN); /* it comes too late, and is told so */
    bench_expect(bench, "tell_standings 1");
}

/* Nothing has to be done for them meanwhile, and nobody wishes anything new. */
ON_BENCH(who_is_missing_in_a_record_of_another_is_let_in_again) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    assert_true(bench->machine->delegates.are_served);
    struct node_identity b = muster_node("b");
    assert_true(rendezvous_state_take_out(&bench->record, &b, 1));
    bench_change(bench);
    bench_expect_record(bench, "round 2 complete [" ME ":1 " A ":0] wait [" B "] spare [] because "
                               "node b (pid 1) has left the round");
}

/* What is told lies in a queue, and a later standing would take the place of the word that lets go.
 */
ON_BENCH(who_was_let_go_is_told_nothing_else) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    wish_to(bench, "b", RENDEZVOUS_WISH_OWN);
    bench_forget(bench);
    place(&bench->record, muster_node("c"))->is_waiting = true;
    bench->record.is_draining = true;
    bench->record.restarts = 1;
    bench_change(bench);
    bench_expect(bench, "tell_standings 1");
}

ON_BENCH(who_asked_before_there_was_a_record_is_let_go) {
    struct bench *bench = *state;
    bench->holds_requests = true;
    bench_join(bench, true, true);
    wish_to(bench, "a", RENDEZVOUS_WISH_OWN);
    bench_forget(bench);
    bench_answer(bench);
    bench_answer(bench);
    assert_non_null(strstr(text_string(&bench->log), "tell_standings 1 withdrawn"));
}

ON_BENCH(a_host_that_fails_lets_all_go) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    bench_tell_reason(bench, RENDEZVOUS_EVENT_BROKEN, "no record");
    bench_expect(bench, "failed no record; tell_standings 2 withdrawn");
    wish_to(bench, "c", RENDEZVOUS_WISH_JOIN);
    bench_expect(bench, "tell_standings 1 withdrawn");
}

ON_BENCH(who_is_gone_wishes_nothing_any_more) {
    struct bench *bench = *state;
    run_with_a_and_b(bench);
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {muster_node("a"), false}});
    wish_to(bench, "a", RENDEZVOUS_WISH_JOIN);
    bench_expect_record(bench, "round 2 complete [" ME ":1 " B ":0] wait [] spare [] because node "
                               "a (pid 1) is gone");
}

ON_BENCH(the_host_has_the_tasks_of_the_first_node) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, true);
    wish_to(bench, "a", RENDEZVOUS_WISH_JOIN);
    wish_to(bench, "b", RENDEZVOUS_WISH_JOIN);
    bench_wait(bench, 1); /* others may come at about the same time */
    bench_expect_record(bench,
        "round 2 complete [" A ":0 " ME ":2 " B ":1] wait [] spare [] because a node has joined");
}

/* A node that waits for its first world, with so many workers. */
static void wish_with_role(struct bench *bench, const char *name, int workers) {
    struct rendezvous_wish said = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    said.local_world_size = workers;
    said.meeting.round = RENDEZVOUS_WISH_ANY_ROUND;
    strcpy(said.role, "default");
    wish(bench, name, said);
}

/* Three nodes of two, one and three workers start. */
static void start_three(struct bench *bench) {
    bench->settings.role = (struct node_role){"default", 2};
    bench->settings.rendezvous.minimum_nodes = 3;
    bench->settings.rendezvous.maximum_nodes = 3;
    bench_join(bench, true, true);
    wish_with_role(bench, "a", 1);
    wish_with_role(bench, "b", 3);
}

ON_BENCH(a_round_of_new_nodes_is_ranked) {
    struct bench *bench = *state;
    start_three(bench);
    bench_expect_record(
        bench, "round 0 complete [" ME ":2 " A ":0 " B ":1] wait [] spare [] ranked");
    assert_non_null(strstr(text_string(&bench->log), "world round 0 rank 2 of 3 ranked"));
    assert_int_equal(bench->told.count, 1); /* rank 0, who is to open the workers' store */
    const struct rank_assignment of_a = {0, 6, 0, 6};
    assert_memory_equal(&bench->told.items[0].ranks, &of_a, sizeof of_a);
    struct rendezvous_wish opened = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    opened.sequence = 2;
    opened.local_world_size = 1;
    opened.meeting = rendezvous_meeting_at(0, "10.0.0.1", 29400);
    wish(bench, "a", opened);
    assert_int_equal(bench->told.count, 1);
    const struct rank_assignment of_b = {1, 6, 1, 6};
    assert_memory_equal(&bench->told.items[0].ranks, &of_b, sizeof of_b);
    assert_string_equal(bench->told.items[0].meeting.address, "10.0.0.1");
}

ON_BENCH(a_host_that_is_rank_0_tells_where_the_workers_meet) {
    struct bench *bench = *state;
    bench->settings.role = (struct node_role){"default", 2};
    bench->settings.rendezvous.minimum_nodes = 2;
    bench->settings.rendezvous.maximum_nodes = 2;
    bench_join(bench, true, true);
    wish_with_role(bench, "z", 1);
    assert_int_equal(bench->told.count, 0);
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_OPENED,
                          .opened = {.address = "10.0.0.1", .port = 29400}});
    assert_int_equal(bench->told.count, 1);
    assert_int_equal(bench->told.items[0].ranks.base_rank, 2);
    assert_int_equal(bench->told.items[0].meeting.port, 29400);
}

/* The second wish of a node with one worker, or another number for `b`. */
static struct rendezvous_wish next_wish(int64_t sequence, int workers) {
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    wish.sequence = sequence;
    wish.local_world_size = workers;
    wish.meeting.round = RENDEZVOUS_WISH_ANY_ROUND;
    strcpy(wish.role, "default");
    return wish;
}

static void say_ready(struct bench *bench, const char *name, int64_t sequence, int64_t round) {
    struct rendezvous_wish ready = next_wish(sequence, name[0] == 'a' ? 1 : 3);
    ready.meeting = name[0] == 'a' ? rendezvous_meeting_at(round, "10.0.0.2", 29401)
                                   : rendezvous_meeting_at(round, NULL, 0);
    wish(bench, name, ready);
}

/* They run, and then a worker of "a" fails: the record has the next round, and they were told. */
static void fail_after_start(struct bench *bench) {
    start_three(bench);
    struct rendezvous_wish opened = next_wish(2, 1);
    opened.meeting = rendezvous_meeting_at(0, "10.0.0.1", 29400);
    wish(bench, "a", opened);
    bench_forget(bench);
    struct rendezvous_wish failed = next_wish(3, 1);
    failed.ended_round = 0;
    failed.is_charged = true;
    wish(bench, "a", failed);
    bench_expect_record(bench,
        "round 1 complete [" ME ":2 " A ":0 " B ":1] wait [] spare [] restarts 1 charged ranked");
    assert_int_equal(bench->told.count, 2);
    assert_true(bench->told.items[0].is_held && bench->told.items[1].is_held);
    assert_int_equal(bench->told.items[1].ranks.world_size, 0);
    bench->told.count = 0;
}

ON_BENCH(the_next_round_is_held_until_all_are_ready) {
    struct bench *bench = *state;
    fail_after_start(bench);
    say_ready(bench, "b", 2, 1);
    say_ready(bench, "a", 4, 1);
    assert_int_equal(bench->told.count, 0); /* the host itself has workers to end */
    bench_forget(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_expect(bench, "world round 1 rank 2 of 3 held; released round 1 meets at 10.0.0.2 port "
                        "29401; tell_standings 2");
    const struct rank_assignment of_b = {1, 6, 1, 6};
    assert_memory_equal(&bench->told.items[1].ranks, &of_b, sizeof of_b);
    assert_false(bench->told.items[1].is_held);
    assert_int_equal(bench->told.items[1].meeting.port, 29401);
}

ON_BENCH(who_takes_back_that_it_is_ready_is_awaited_again) {
    struct bench *bench = *state;
    fail_after_start(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    say_ready(bench, "b", 2, 1);
    say_ready(bench, "b", 3, RENDEZVOUS_WISH_NO_ROUND);
    say_ready(bench, "a", 4, 1);
    assert_int_equal(bench->told.count, 0);
    say_ready(bench, "b", 4, 1);
    assert_int_equal(bench->told.count, 2);
}

/* What was said for the round before does not count. */
ON_BENCH(a_node_that_is_lost_meanwhile_begins_the_next_round) {
    struct bench *bench = *state;
    fail_after_start(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    say_ready(bench, "a", 4, 1);
    bench_forget(bench);
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {muster_node("b"), false}});
    assert_non_null(strstr(text_string(&bench->log), "round_over"));
    assert_null(strstr(text_string(&bench->log), "released"));
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    assert_null(strstr(text_string(&bench->log), "released"));
}

ON_BENCH(beside_a_node_of_torchrun_a_held_round_is_over) {
    struct bench *bench = *state;
    fail_after_start(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_forget(bench);
    place(&bench->record, torch_node("t"))->is_waiting = true;
    bench_change(bench);
    assert_non_null(strstr(text_string(&bench->log), "tell_standings 2 withdrawn"));
    assert_non_null(strstr(text_string(&bench->log), "round_over the host of the job's store"));
}

/* One of them has not said its role, or writes the record itself. */
ON_BENCH(a_round_with_another_kind_of_node_is_not_ranked) {
    struct bench *bench = *state;
    bench->settings.role = (struct node_role){"default", 2};
    bench->settings.rendezvous.minimum_nodes = 3;
    bench->settings.rendezvous.maximum_nodes = 3;
    place(&bench->record, muster_node("b"))->is_participant = true;
    bench_join(bench, true, true);
    wish_with_role(bench, "a", 1);
    bench_expect_record(bench, "round 0 complete [" B ":1 " ME ":2 " A ":0] wait [] spare []");
    assert_int_equal(bench->told.items[0].ranks.world_size, 0);
}

/* It has given up its host just when the round was ranked. As its first node it would wait for role
 * infos that nobody writes. */
ON_BENCH(who_was_not_told_its_ranks_ends_the_round) {
    struct bench *bench = *state;
    bench_place_round(bench, 1, "mab");
    bench->record.ranked = 2;
    bench_join(bench, true, false);
    bench_expect_record(bench, "round 2 complete [" ME ":2 " A ":0 " B
                               ":1] wait [] spare [] because a node has left the round");
    assert_non_null(strstr(text_string(&bench->log), "world round 2 rank 2 of 3"));
    assert_null(strstr(text_string(&bench->log), "ranked;"));
}

/* Each write has the whole record, so that to let in each by itself costs N times N. */
ON_BENCH(many_who_come_one_by_one_take_few_writes) {
    struct bench *bench = *state;
    bench->settings.rendezvous.minimum_nodes = 60;
    bench->settings.rendezvous.maximum_nodes = 60;
    bench_join(bench, true, true);
    for (int i = 0; i < 58; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        wish_to(bench, name, RENDEZVOUS_WISH_JOIN);
    }
    assert_true(bench->writes < 20);
    assert_true(rendezvous_state_participants(&bench->record) < 59);
    bench_wait(bench, 5); /* the others may take long to come */
    assert_int_equal(rendezvous_state_participants(&bench->record), 59);
    wish_to(bench, "last", RENDEZVOUS_WISH_JOIN);
    assert_true(bench->record.is_complete);
}
