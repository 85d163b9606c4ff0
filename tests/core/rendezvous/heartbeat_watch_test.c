/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_losses.h"
#include "rendezvous_fixture.h"

static const struct duration patience = {INT64_C(10000000000)};

static struct instant at(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

static void look(
    struct heartbeat_watch *watch, const struct rendezvous_state *record, double seconds) {
    heartbeat_watch_look(watch, record, at(seconds), patience, false);
}

static double silence(const struct heartbeat_watch *watch, const char *address) {
    struct node_identity identity = torch_node(address);
    return duration_seconds(heartbeat_watch_silence(watch, &identity));
}

static void check_silence(
    const struct heartbeat_watch *watch, const char *address, double seconds) {
    assert_true(silence(watch, address) == seconds);
}

static void beat(struct rendezvous_state *record, const char *address, int64_t seconds) {
    place(record, torch_node(address))->heartbeat = wall_seconds(seconds);
}

TEST(a_node_never_seen_is_not_silent) {
    struct heartbeat_watch watch = {0};
    check_silence(&watch, "a", 0);
    struct rendezvous_state record = {0};
    look(&watch, &record, 1);
    look(&watch, &record, 2);
    check_silence(&watch, "a", 0);
    heartbeat_watch_clear(&watch);
}

TEST(silence_grows_from_look_to_look_while_the_heartbeat_stands_still) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&watch, &record, 50);
    check_silence(&watch, "a", 0);
    look(&watch, &record, 55);
    check_silence(&watch, "a", 5);
    look(&watch, &record, 61);
    check_silence(&watch, "a", 11);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(any_change_of_a_heartbeat_ends_its_silence) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    beat(&record, "b", 100);
    look(&watch, &record, 0);
    look(&watch, &record, 5);
    beat(&record, "a", 101);
    beat(&record, "b", 42); /* the clock of "b" was set back: this is still a sign of life */
    look(&watch, &record, 10);
    check_silence(&watch, "a", 0);
    check_silence(&watch, "b", 0);
    look(&watch, &record, 12);
    check_silence(&watch, "a", 2);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(clocks_that_differ_by_hours_accuse_nobody) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    for (int i = 0; i < 20; i++) {
        beat(&record, "behind", -36000 + i * 5);
        beat(&record, "ahead", 36000 + i * 5);
        look(&watch, &record, i * 5);
        check_silence(&watch, "behind", 0);
        check_silence(&watch, "ahead", 0);
    }
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(who_was_stopped_for_a_minute_counts_no_more_than_its_patience) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&watch, &record, 0);
    look(&watch, &record, 4);
    look(&watch, &record, 64);
    check_silence(&watch, "a", 14);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(a_node_that_left_the_record_is_forgotten) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    struct rendezvous_state without = {0};
    beat(&record, "a", 100);
    beat(&record, "b", 100);
    beat(&without, "b", 100);
    look(&watch, &record, 0);
    look(&watch, &record, 5);
    look(&watch, &without, 10);
    check_silence(&watch, "a", 0);
    check_silence(&watch, "b", 10);
    look(&watch, &record, 15);
    check_silence(&watch, "a", 0);
    check_silence(&watch, "b", 15);
    assert_int_equal(watch.count, 2);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&without);
    rendezvous_state_clear(&record);
}

TEST(newcomers_on_either_side_leave_the_silence_of_others_alone) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    beat(&record, "m", 100);
    look(&watch, &record, 0);
    beat(&record, "z", 100);
    beat(&record, "a", 100);
    look(&watch, &record, 3);
    check_silence(&watch, "a", 0);
    check_silence(&watch, "m", 3);
    check_silence(&watch, "z", 0);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(a_node_that_has_never_given_a_heartbeat_is_silent) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    place(&record, torch_node("a"))->has_heartbeat = false;
    record.nodes[0].is_participant = true;
    look(&watch, &record, 0);
    look(&watch, &record, 5);
    check_silence(&watch, "a", 5);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(where_others_tell_of_musters_nodes_torchruns_alone_are_looked_at) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    struct node_identity muster = muster_node("m");
    beat(&record, "t", 100);
    place(&record, muster)->heartbeat = wall_seconds(100);
    heartbeat_watch_look(&watch, &record, at(0), patience, true);
    heartbeat_watch_look(&watch, &record, at(5), patience, true);
    check_silence(&watch, "t", 5);
    assert_true(heartbeat_watch_silence(&watch, &muster).nanoseconds == 0);
    look(&watch, &record, 6); /* from now on by their heartbeats, too */
    look(&watch, &record, 8);
    check_silence(&watch, "t", 8);
    assert_true(duration_seconds(heartbeat_watch_silence(&watch, &muster)) == 2);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(silence_does_not_run_over) {
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&watch, &record, 0);
    heartbeat_watch_look(&watch, &record, (struct instant){INT64_MAX}, DURATION_FOREVER, false);
    watch.last_look = at(0);
    heartbeat_watch_look(&watch, &record, (struct instant){INT64_MAX}, DURATION_FOREVER, false);
    struct node_identity identity = torch_node("a");
    assert_true(heartbeat_watch_silence(&watch, &identity).nanoseconds == INT64_MAX);
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}

TEST(ten_thousand_nodes_are_watched_in_any_order) {
    enum { NODES = 10000 };
    struct heartbeat_watch watch = {0};
    struct rendezvous_state record = {0};
    record.nodes = calloc(NODES, sizeof *record.nodes);
    record.count = record.capacity = NODES;
    for (int64_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < NODES; i++) {
            size_t number = (i * 7919 + (size_t)round * 31) % NODES;
            record.nodes[i].has_heartbeat = true;
            record.nodes[i].heartbeat = wall_seconds(number % 2 == 0 ? 7 : round);
            snprintf(record.nodes[i].identity.address, NODE_ADDRESS_SIZE, "n%zu", number);
        }
        heartbeat_watch_look(&watch, &record, at((double)round), patience, false);
    }
    assert_int_equal(watch.count, NODES);
    for (size_t i = 0; i < NODES; i++) {
        double silent =
            duration_seconds(heartbeat_watch_silence(&watch, &record.nodes[i].identity));
        assert_true(silent ==
                    (record.nodes[i].heartbeat.nanoseconds == wall_seconds(7).nanoseconds ? 2 : 0));
    }
    heartbeat_watch_clear(&watch);
    rendezvous_state_clear(&record);
}
