/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of connections, requests and time. Decisions from the record are tested in
 * rendezvous_evaluation_test.c and the tests beside it. */
#include "unit.h"

#include "base/memory.h"
#include "core/rendezvous/record_connection.h"
#include "core/rendezvous/rendezvous_member.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "rendezvous_bench.h"
#include "rendezvous_fixture.h"

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

ON_BENCH(the_host_tells_the_watchers_what_a_stranger_wrote) {
    struct bench *bench = *state;
    bench_run(bench, "ma", true, true);
    place(&bench->record, torch_node("t"))->is_redundant = true;
    bench_tell_kind(bench, RENDEZVOUS_EVENT_STRANGER_WROTE);
    bench_expect(bench, "tell_watchers");
    bench_tell_kind(bench, RENDEZVOUS_EVENT_STRANGER_WROTE);
    bench_expect(bench, "");
}

#define LOST "round_over connection lost; connect "

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

ON_BENCH(an_idle_node_only_beats) {
    struct bench *bench = *state;
    bench_run(bench, "am", true, false);
    bench_wait(bench, 20);
    bench_expect(bench, "beat; beat; beat; beat");
}

/* Rendezvous finish. */

TEST(the_store_is_asked_once_between_two_signs_of_life) {
    struct rendezvous_finish finish = {0};
    assert_true(rendezvous_finish_ask(&finish, 3));
    assert_false(rendezvous_finish_ask(&finish, 3));
    rendezvous_finish_forget_count(&finish);
    assert_true(rendezvous_finish_ask(&finish, 3));
}

TEST(what_is_known_of_one_round_says_nothing_of_the_next) {
    struct rendezvous_finish finish = {0};
    assert_true(rendezvous_finish_ask(&finish, 3));
    rendezvous_finish_take_count(&finish, 0);
    assert_true(rendezvous_finish_ask(&finish, 4));
    assert_true(rendezvous_finish_is_anywhere(&finish));
}

/* Rendezvous patience. */

#define SECOND INT64_C(1000000000)

static const struct duration minute = {60 * SECOND};

static struct instant at(int64_t seconds) {
    return (struct instant){seconds * SECOND};
}

TEST(who_is_late_has_five_seconds_to_go_and_knows_how_many_there_were) {
    struct rendezvous_patience patience = {0};
    rendezvous_patience_begin(&patience, at(0), minute);
    assert_true(rendezvous_patience_is_late(&patience, 3, at(61)));
    assert_true(rendezvous_patience_is_late(&patience, 2, at(62)));
    assert_int_equal(patience.size_when_late, 3);
    assert_false(rendezvous_patience_is_too_late(&patience, at(65)));
    assert_true(rendezvous_patience_is_too_late(&patience, at(66)));
}

static bool is_over(
    struct rendezvous_patience *patience, const struct rendezvous_state *seen, int64_t second) {
    return rendezvous_patience_is_last_call_over(patience, seen, at(second), minute);
}

TEST(a_last_call_lasts_from_when_it_was_seen) {
    struct rendezvous_patience patience = {0};
    struct rendezvous_state seen = {.has_deadline = true, .deadline = wall_seconds(1)};
    assert_false(is_over(&patience, &seen, 100));
    assert_false(is_over(&patience, &seen, 159));
    assert_true(is_over(&patience, &seen, 160));
    seen.deadline = wall_seconds(2); /* another last call */
    assert_false(is_over(&patience, &seen, 161));
    assert_true(is_over(&patience, &seen, 221));
    seen.round = 1;
    assert_false(is_over(&patience, &seen, 222));
}

TEST(where_there_is_no_last_call_none_is_over) {
    struct rendezvous_patience patience = {0};
    struct rendezvous_state seen = {.has_deadline = true};
    assert_false(is_over(&patience, &seen, 0));
    seen.has_deadline = false;
    assert_false(is_over(&patience, &seen, 100));
    seen.has_deadline = true;
    assert_false(is_over(&patience, &seen, 100));
    seen.is_complete = true;
    assert_false(is_over(&patience, &seen, 1000));
}

/* Rendezvous spare. */

static struct rendezvous_node nodes[2];
static struct rendezvous_state record = {.nodes = nodes};

static int begin(void **unused) {
    (void)unused;
    memset(nodes, 0, sizeof nodes);
    record.count = 0;
    return 0;
}

static void add(const char *address, int pid, bool is_participant) {
    struct rendezvous_node *node = &nodes[record.count++];
    node_identity_init(&node->identity, address, pid, 0);
    node->is_participant = is_participant;
    node->is_redundant = !is_participant;
}

/* The caller frees it. */
static char *program(enum launch_entry entry, const char *script, const char *argument) {
    struct launch_config config = {.entry = entry, .script = memory_duplicate_string(script)};
    struct text out = {0};
    if (argument != NULL) {
        text_list_add(&config.script_arguments, argument);
    }
    rendezvous_spare_write_program(&config, &out);
    text_list_clear(&config.script_arguments);
    free(config.script);
    return text_take(&out);
}

static void expect_misplaced(const char *theirs, const char *own, const char *expected) {
    CLEARED_BY(text_clear) struct text out = {0};
    bool is =
        rendezvous_spare_find_misplaced(&record, "node1", slice_from_string(theirs), own, &out);
    assert_int_equal(is, expected[0] != '\0');
    assert_string_equal(text_string(&out), expected);
}

TEST_WITH(a_spare_on_a_machine_of_its_own_is_one_of_the_job, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "/data/train.py", "--plan=a1");
    FREED char *elsewhere = program(LAUNCH_ENTRY_SCRIPT, "/home/me/train.py", "--plan=a27");
    add("node2", 7, true);
    add("node1", 8, false);
    expect_misplaced(own, own, "");
    expect_misplaced(elsewhere, own, "");
}

TEST_WITH(a_spare_beside_a_node_on_its_machine_is_none, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", NULL);
    add("node1", 7, true);
    expect_misplaced(own, own, "a node of that job is on this machine, process 7");
    expect_misplaced("", own, "a node of that job is on this machine, process 7");
}

TEST_WITH(another_program_and_other_arguments_are_told_apart, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=a1");
    FREED char *other = program(LAUNCH_ENTRY_SCRIPT, "serve.py", "--plan=a1");
    FREED char *argument = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=b1");
    FREED char *module = program(LAUNCH_ENTRY_MODULE, "train.py", "--plan=a1");
    add("node2", 7, true);
    expect_misplaced(other, own, "the nodes of that job run another program");
    expect_misplaced(argument, own, "the nodes of that job run their program with other arguments");
    expect_misplaced(module, own, "the nodes of that job run their program with other arguments");
    record.count = 0;
    add("node1", 7, true);
    expect_misplaced(other, own,
        "the nodes of that job run another program, and one of them is on this machine, process "
        "7");
}

static bool is_mixed(const char *theirs, const char *own) {
    return rendezvous_spare_is_mixed(&record, &nodes[0].identity, slice_from_string(theirs), own);
}

TEST_WITH(two_jobs_in_one_world_are_known_by_their_programs, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=a1");
    FREED char *other = program(LAUNCH_ENTRY_SCRIPT, "serve.py", "--plan=a1");
    FREED char *argument = program(LAUNCH_ENTRY_SCRIPT, "train.py", "--plan=b1");
    add("node1", 7, true);
    assert_false(is_mixed(other, own)); /* alone, it is the job */
    add("node2", 7, true);
    assert_true(is_mixed(other, own));
    assert_false(is_mixed(argument, own)); /* each machine may have its own */
    assert_false(is_mixed("", own));
    record.count = 1;
    add("node1", 8, true);
    assert_true(is_mixed(argument, own));
    assert_false(is_mixed(own, own));
}

TEST_WITH(what_a_stranger_has_written_is_no_other_program, begin, NULL) {
    FREED char *own = program(LAUNCH_ENTRY_SCRIPT, "train.py", NULL);
    add("node2", 7, true);
    expect_misplaced("", own, "");
    expect_misplaced("another", own, "");
    expect_misplaced("000000000000000 \x1b[31m00000000000000", own, "");
}

TEST_WITH(a_spare_is_told_what_it_is_and_what_is_odd_about_it, begin, NULL) {
    struct launch_config config = {.minimum_nodes = 1, .maximum_nodes = 2};
    CLEARED_BY(text_clear) struct text out = {0};
    rendezvous_spare_describe(&config, "j\x1b", "host:1", true, NULL, &out);
    assert_string_equal(text_string(&out),
        "job 'j?' at host:1 has all nodes that it may have (--nnodes 1:2): this one is a spare, "
        "and starts no worker before one of them is lost");
    text_clear(&out);
    rendezvous_spare_describe(&config, "j", "host:1", false, "why", &out);
    assert_non_null(strstr(text_string(&out),
        "which waits to be let in (--scale-up); but why: if these are two jobs"));
}
