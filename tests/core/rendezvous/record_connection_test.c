/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/record_connection.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "rendezvous_bench.h"

#define SECOND INT64_C(1000000000)

static const struct duration interval = {5 * SECOND};

static struct instant at(int64_t seconds) {
    return (struct instant){seconds * SECOND};
}

/* A connection to a store that serves presence, open since second 0. */
static struct record_connection opened(void) {
    struct record_connection connection;
    record_connection_init(&connection, 1);
    record_connection_connect(&connection);
    assert_true(record_connection_open(&connection, true, false, at(0), interval));
    return connection;
}

TEST(a_connection_that_was_not_awaited_is_none) {
    struct record_connection connection;
    record_connection_init(&connection, 1);
    assert_false(record_connection_open(&connection, true, true, at(0), interval));
    assert_false(record_connection_is_open(&connection));
    assert_false(connection.was_open);
    assert_false(record_connection_close(&connection));
}

TEST(news_are_told_unless_a_change_was_announced) {
    struct record_connection connection = opened();
    record_connection_fetch(&connection, at(0));
    record_connection_note_news(&connection);
    assert_true(record_connection_end_fetch(&connection));
    record_connection_note_change(&connection, true);
    record_connection_fetch(&connection, at(1));
    record_connection_note_news(&connection);
    assert_false(record_connection_end_fetch(&connection));
    record_connection_note_change(&connection, false);
    record_connection_fetch(&connection, at(2));
    record_connection_note_news(&connection);
    assert_true(record_connection_end_fetch(&connection));
}

/* The announced change may be one that the fetch did not see. */
TEST(a_change_announced_during_a_fetch_holds_for_the_next) {
    struct record_connection connection = opened();
    record_connection_fetch(&connection, at(0));
    record_connection_note_change(&connection, true);
    assert_false(record_connection_end_fetch(&connection));
    assert_true(connection.is_refetch_wanted);
    record_connection_fetch(&connection, at(1));
    record_connection_note_news(&connection);
    assert_false(record_connection_end_fetch(&connection));
}

static void lose_write(struct record_connection *connection, struct instant now) {
    record_connection_write(connection, false, now);
    record_connection_lose_write(connection, now);
}

TEST(a_write_that_was_won_ends_the_row_of_lost_ones) {
    struct record_connection connection = opened();
    lose_write(&connection, at(1));
    record_connection_write(&connection, false, at(1));
    record_connection_win_write(&connection, at(1), interval, interval);
    lose_write(&connection, at(1));
    assert_false(record_connection_is_pausing(&connection));
}

TEST(heartbeats_that_are_rare_are_due_soon_after_a_change) {
    const struct duration rare = duration_from_seconds(60);
    struct record_connection connection = opened();
    record_connection_write(&connection, true, at(5));
    record_connection_win_write(&connection, at(5), rare, interval);
    assert_false(record_connection_is_heartbeat_due(&connection, at(64)));
    assert_true(record_connection_is_heartbeat_due(&connection, at(65)));
    record_connection_write(&connection, false, at(20));
    record_connection_win_write(&connection, at(20), rare, interval);
    assert_false(record_connection_is_heartbeat_due(&connection, at(24)));
    assert_true(record_connection_is_heartbeat_due(&connection, at(25)));
    record_connection_write(&connection, false, at(23));
    record_connection_win_write(&connection, at(23), rare, interval);
    assert_true(record_connection_is_heartbeat_due(&connection, at(25)));
}

TEST(a_sign_of_life_is_due_once_in_an_interval) {
    struct record_connection connection = opened();
    assert_false(record_connection_beat(&connection, at(4), interval));
    assert_true(record_connection_beat(&connection, at(6), interval));
    assert_false(record_connection_beat(&connection, at(10), interval));
    assert_true(record_connection_beat(&connection, at(11), interval));
    (void)record_connection_close(&connection);
    assert_false(record_connection_beat(&connection, at(100), interval));
}

/* Nodes that delegate where the host of the store may be succeeded: what they keep at the next
 * host, and what a host does for them before it ends. */

#define ME "me_1_1073741824"
#define A "a_1_1073741824"
#define B "b_1_1073741824"

static int set_up(void **state) {
    if (bench_set_up(state) != 0) {
        return -1;
    }
    struct bench *bench = *state;
    bench->settings.has_succession = true;
    bench->settings.rendezvous.delegates = true;
    return 0;
}

static void connect(struct bench *bench, bool is_same_store) {
    bench_tell(bench,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
            .connected = {
                .has_presence = true, .is_same_store = is_same_store, .offers_delegation = true}});
}

static void tell_round(struct bench *bench, int64_t round, size_t count, int64_t answers) {
    struct node_identity me = muster_node("me");
    CLEARED_BY(rendezvous_state_clear)
    struct rendezvous_state record = {
        .round = round, .is_complete = true, .crowd = {.participants = count - 1}};
    struct rendezvous_node *self = rendezvous_state_obtain(&record, &me);
    self->is_participant = true;
    self->rank = 1;
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STANDING,
                          .standing = {.state = &record, .answers = answers}});
}

/* A node that delegates, and was told of its first round. */
static void join(struct bench *bench) {
    bench->machine = rendezvous_machine_new(&bench->settings);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    connect(bench, false);
    tell_round(bench, 3, 4, 1);
    bench_forget(bench);
}

static void seek_host(struct bench *bench, bool keeps_hosting) {
    bench_tell(bench,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
            .lost = {.reason = "no host", .is_host_sought = true, .keeps_hosting = keeps_hosting}});
}

#define WITH_SUCCESSION(test) TEST_WITH(test, set_up, bench_tear_down)

WITH_SUCCESSION(a_round_that_has_just_begun_is_given_up_with_its_host) {
    struct bench *bench = *state;
    join(bench);
    seek_host(bench, false);
    assert_non_null(strstr(text_string(&bench->log),
        "round_over the host of the job's store was lost when the round began"));
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    connect(bench, false);
    bench_forget(bench);
    tell_round(bench, 3, 4, 1); /* of this number, whether it is the same or another */
    bench_expect(bench, "present " ME " wish 2 join ended 3 a node has left the round");
}

WITH_SUCCESSION(a_node_that_comes_again_to_the_same_host_has_another_name_and_no_place) {
    struct bench *bench = *state;
    join(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_PLACED);
    seek_host(bench, false);
    bench_forget(bench);
    connect(bench, true);
    assert_non_null(
        strstr(text_string(&bench->log), "round_over this node has lost its connection"));
    assert_int_not_equal(
        rendezvous_machine_identity(bench->machine)->local_id, bench->settings.identity.local_id);
}

WITH_SUCCESSION(what_a_host_has_told_is_not_held_against_a_record) {
    struct bench *bench = *state;
    join(bench);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_PLACED);
    seek_host(bench, false);
    bench_forget(bench);
    bench_place_round(bench, 2, "ab"); /* an earlier one, in which this node is not */
    bench_connect(bench, true, true);
    assert_int_equal(bench->record.round, 2);
    assert_int_not_equal(
        rendezvous_machine_identity(bench->machine)->local_id, bench->settings.identity.local_id);
}

/* This node as the host. */

static void wish(struct bench *bench, const char *name, enum rendezvous_wish_kind kind,
    int64_t sequence, int signal) {
    struct rendezvous_wish said = rendezvous_wish_of(kind);
    said.sequence = sequence;
    said.signal = signal;
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_WISHED, .wished = {muster_node(name), said}});
}

static void host(struct bench *bench) {
    bench_run(bench, "mab", true, true);
    wish(bench, "a", RENDEZVOUS_WISH_JOIN, 1, 0);
    wish(bench, "b", RENDEZVOUS_WISH_JOIN, 1, 0);
}

WITH_SUCCESSION(who_comes_from_another_host_is_told_at_once) {
    struct bench *bench = *state;
    host(bench);
    bench_expect(bench, "tell_standings 1; tell_standings 1");
}

WITH_SUCCESSION(who_is_gone_and_comes_all_the_same_is_cut_off) {
    struct bench *bench = *state;
    host(bench);
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {muster_node("a"), false}});
    bench_forget(bench);
    wish(bench, "a", RENDEZVOUS_WISH_JOIN, 1, 0);
    bench_expect(bench, "cut_off " A);
}

WITH_SUCCESSION(nothing_is_told_of_a_record_of_another_host) {
    struct bench *bench = *state;
    join(bench);
    seek_host(bench, false);
    bench_forget(bench);
    wish(bench, "a", RENDEZVOUS_WISH_LOOK, 1, 0);
    bench_expect(bench, "");
}

WITH_SUCCESSION(a_host_that_leaves_stays_for_those_who_leave_with_it) {
    struct bench *bench = *state;
    host(bench);
    bench_tell(
        bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_LEAVE_ASKED, .signal = 15});
    bench_forget(bench);
    bench_wait(bench, 0.2);
    wish(bench, "a", RENDEZVOUS_WISH_LEAVE, 2, 15);
    bench_wait(bench, 0.2);
    assert_null(strstr(text_string(&bench->log), "settled"));
    bench_expect_record(bench, "round 3 open [" B "] wait [] spare [] wanted 2 signal 15 because "
                               "node a (pid 1) has left");
    bench_wait(bench, 0.1);
    assert_non_null(strstr(text_string(&bench->log), "settled"));
}

WITH_SUCCESSION(a_host_whose_part_is_over_serves_as_long_as_it_hosts) {
    struct bench *bench = *state;
    host(bench);
    bench_tell(
        bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_LEAVE_ASKED, .signal = 15});
    bench_wait(bench, 0.3);
    assert_non_null(strstr(text_string(&bench->log), "settled"));
    assert_null(strstr(text_string(&bench->log), "withdrawn"));
    bench_forget(bench);
    wish(bench, "c", RENDEZVOUS_WISH_JOIN, 1, 0);
    bench_wait(bench, 1);
    assert_int_equal(rendezvous_state_participants(&bench->record), 3);
    assert_non_null(strstr(text_string(&bench->log), "tell_standings"));
}
