/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_losses.h"
#include "rendezvous_fixture.h"

/* Two looks that are further apart count as ten seconds. */
static const struct duration interval = {INT64_C(5000000000)};

static struct instant at(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

static void look(
    struct rendezvous_losses *losses, const struct rendezvous_state *record, double seconds) {
    rendezvous_losses_look(losses, record, at(seconds), interval, false);
}

static bool is_silent_for_more_than(const struct rendezvous_losses *losses,
    const struct node_identity *identity, int64_t nanoseconds) {
    struct rendezvous_view view = {.me = torch_node("me")};
    struct rendezvous_node node = {.identity = *identity};
    struct rendezvous_settings settings = sized(1, 2);
    settings.keep_alive_interval.nanoseconds = nanoseconds;
    settings.keep_alive_max_attempt = 1;
    return rendezvous_losses_judge(losses, &view, &node, &settings, false) != RENDEZVOUS_LOSS_NONE;
}

static void check_silence_of(
    const struct rendezvous_losses *losses, struct node_identity identity, int64_t nanoseconds) {
    assert_false(is_silent_for_more_than(losses, &identity, nanoseconds));
    assert_true(is_silent_for_more_than(losses, &identity, nanoseconds - 1));
}

static void check_silence(
    const struct rendezvous_losses *losses, const char *address, double seconds) {
    check_silence_of(losses, torch_node(address), at(seconds).nanoseconds);
}

static void beat(struct rendezvous_state *record, const char *address, int64_t seconds) {
    place(record, torch_node(address))->heartbeat = wall_seconds(seconds);
}

TEST(a_node_never_seen_is_not_silent) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    check_silence(&losses, "a", 0);
    struct rendezvous_state record = {0};
    look(&losses, &record, 1);
    look(&losses, &record, 2);
    check_silence(&losses, "a", 0);
}

TEST(silence_grows_from_look_to_look_while_the_heartbeat_stands_still) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&losses, &record, 50);
    check_silence(&losses, "a", 0);
    look(&losses, &record, 55);
    check_silence(&losses, "a", 5);
    look(&losses, &record, 61);
    check_silence(&losses, "a", 11);
}

TEST(any_change_of_a_heartbeat_ends_its_silence) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    beat(&record, "b", 100);
    look(&losses, &record, 0);
    look(&losses, &record, 5);
    beat(&record, "a", 101);
    beat(&record, "b", 42); /* the clock of "b" was set back: this is still a sign of life */
    look(&losses, &record, 10);
    check_silence(&losses, "a", 0);
    check_silence(&losses, "b", 0);
    look(&losses, &record, 12);
    check_silence(&losses, "a", 2);
}

TEST(clocks_that_differ_by_hours_accuse_nobody) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    for (int i = 0; i < 20; i++) {
        beat(&record, "behind", -36000 + i * 5);
        beat(&record, "ahead", 36000 + i * 5);
        look(&losses, &record, i * 5);
        check_silence(&losses, "behind", 0);
        check_silence(&losses, "ahead", 0);
    }
}

TEST(who_was_stopped_for_a_minute_counts_no_more_than_its_patience) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&losses, &record, 0);
    look(&losses, &record, 4);
    look(&losses, &record, 64);
    check_silence(&losses, "a", 14);
}

TEST(a_node_that_left_the_record_is_forgotten) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state without = {0};
    beat(&record, "a", 100);
    beat(&record, "b", 100);
    beat(&without, "b", 100);
    look(&losses, &record, 0);
    look(&losses, &record, 5);
    look(&losses, &without, 10);
    check_silence(&losses, "a", 0);
    check_silence(&losses, "b", 10);
    look(&losses, &record, 15);
    check_silence(&losses, "a", 0);
    check_silence(&losses, "b", 15);
    assert_int_equal(losses.heartbeats.count, 2);
}

TEST(newcomers_on_either_side_leave_the_silence_of_others_alone) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    beat(&record, "m", 100);
    look(&losses, &record, 0);
    beat(&record, "z", 100);
    beat(&record, "a", 100);
    look(&losses, &record, 3);
    check_silence(&losses, "a", 0);
    check_silence(&losses, "m", 3);
    check_silence(&losses, "z", 0);
}

TEST(a_node_that_has_never_given_a_heartbeat_is_silent) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place(&record, torch_node("a"))->has_heartbeat = false;
    record.nodes[0].is_participant = true;
    look(&losses, &record, 0);
    look(&losses, &record, 5);
    check_silence(&losses, "a", 5);
}

TEST(where_others_tell_of_musters_nodes_torchruns_alone_are_looked_at) {
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    struct node_identity muster = muster_node("m");
    beat(&record, "t", 100);
    place(&record, muster)->heartbeat = wall_seconds(100);
    rendezvous_losses_look(&losses, &record, at(0), interval, true);
    rendezvous_losses_look(&losses, &record, at(5), interval, true);
    check_silence(&losses, "t", 5);
    check_silence_of(&losses, muster, 0);
    look(&losses, &record, 6); /* from now on by their heartbeats, too */
    look(&losses, &record, 8);
    check_silence(&losses, "t", 8);
    check_silence_of(&losses, muster, at(2).nanoseconds);
}

TEST(silence_does_not_run_over) {
    const struct duration forever = {INT64_MAX / 2};
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    beat(&record, "a", 100);
    look(&losses, &record, 0);
    rendezvous_losses_look(&losses, &record, (struct instant){INT64_MAX}, forever, false);
    losses.heartbeats.last_look = at(0);
    rendezvous_losses_look(&losses, &record, (struct instant){INT64_MAX}, forever, false);
    check_silence_of(&losses, torch_node("a"), INT64_MAX);
}

TEST(ten_thousand_nodes_are_watched_in_any_order) {
    enum { NODES = 10000 };
    CLEARED_BY(rendezvous_losses_clear) struct rendezvous_losses losses = {0};
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
        look(&losses, &record, (double)round);
    }
    assert_int_equal(losses.heartbeats.count, NODES);
    for (size_t i = 0; i < NODES; i++) {
        bool stands = record.nodes[i].heartbeat.nanoseconds == wall_seconds(7).nanoseconds;
        check_silence_of(&losses, record.nodes[i].identity, at(stands ? 2 : 0).nanoseconds);
    }
}
