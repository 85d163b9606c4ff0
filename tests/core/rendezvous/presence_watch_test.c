/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/presence_watch.h"

static struct instant second(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

/* One look of a host that looks every second, and allows three seconds of silence. */
static size_t count_stalled(struct presence_watch *watch, double now) {
    CLEARED_BY(text_list_clear) struct text_list stalled = {0};
    presence_watch_look(
        watch, second(now), duration_from_seconds(2), duration_from_seconds(3), &stalled);
    size_t count = stalled.count;
    return count;
}

static void hear(struct presence_watch *watch, const char *name, double now) {
    presence_watch_hear(watch, name, second(now));
}

TEST(an_agent_that_is_silent_for_too_long_has_stalled) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    CLEARED_BY(text_list_clear) struct text_list stalled = {0};
    hear(&watch, "a", 0);
    hear(&watch, "b", 0);
    for (int now = 0; now <= 3; now++) {
        hear(&watch, "b", now);
        assert_int_equal(count_stalled(&watch, now), 0);
    }
    presence_watch_look(
        &watch, second(4), duration_from_seconds(2), duration_from_seconds(3), &stalled);
    assert_int_equal(stalled.count, 1);
    assert_string_equal(stalled.items[0], "a");
}

/* An agent that has given a sign of life just before a look was not silent since the previous look.
 */
TEST(silence_starts_when_an_agent_was_last_heard_of) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    for (int now = 0; now < 20; now += 4) {
        assert_int_equal(count_stalled(&watch, now), 0);
        hear(&watch, "a", now + 0.9);
        assert_int_equal(count_stalled(&watch, now + 1), 0);
        assert_int_equal(count_stalled(&watch, now + 2), 0);
        assert_int_equal(count_stalled(&watch, now + 3.8), 0);
        hear(&watch, "a", now + 3.9);
    }
}

TEST(an_agent_that_has_gone_is_forgotten) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    hear(&watch, "a", 0);
    hear(&watch, "b", 0);
    presence_watch_forget(&watch, "a");
    presence_watch_forget(&watch, "never heard of");
    for (int now = 0; now < 9; now++) {
        hear(&watch, "b", now);
        assert_int_equal(count_stalled(&watch, now), 0);
    }
}

TEST(those_who_are_known_are_listed) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    CLEARED_BY(text_list_clear) struct text_list names = {0};
    presence_watch_list(&watch, &names);
    assert_int_equal(names.count, 0);
    hear(&watch, "a", 0);
    hear(&watch, "b", 1);
    hear(&watch, "a", 2);
    presence_watch_forget(&watch, "b");
    presence_watch_list(&watch, &names);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.items[0], "a");
}

/* Nodes that never come. */

static void note_name(void *context, const struct presence_absence *absence) {
    text_list_add(context, absence->identity.address);
}

/* One look of a host that looks every second, and misses a node after three. Returns whose it
 * missed, one or none. */
static const char *miss(struct presence_watch *watch, double now) {
    static char name[NODE_ADDRESS_SIZE];
    CLEARED_BY(text_list_clear) struct text_list missed = {0};
    presence_watch_miss(
        watch, second(now), duration_from_seconds(2), duration_from_seconds(3), note_name, &missed);
    assert_true(missed.count <= 1);
    snprintf(name, sizeof name, "%s", missed.count == 0 ? "" : missed.items[0]);
    return name;
}

static struct node_identity add_node(
    struct rendezvous_state *record, const char *address, int64_t local_id) {
    struct node_identity identity;
    node_identity_init(&identity, address, 1, local_id);
    rendezvous_state_obtain(record, &identity)->is_waiting = true;
    return identity;
}

static void hear_node(
    struct presence_watch *watch, const struct node_identity *identity, double now) {
    CLEARED_BY(text_clear) struct text name = {0};
    node_identity_write(identity, &name);
    hear(watch, text_string(&name), now);
}

TEST(a_node_of_the_record_that_never_comes_is_missed_once) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    (void)add_node(&record, "ghost", node_identity_muster_local_id(1));
    assert_false(presence_watch_is_awaiting(&watch));
    for (int now = 0; now < 3; now++) {
        presence_watch_await(&watch, &record, second(now));
        assert_true(presence_watch_is_awaiting(&watch));
        assert_string_equal(miss(&watch, now), "");
    }
    assert_string_equal(miss(&watch, 3), "ghost");
    presence_watch_await(&watch, &record, second(3));
    assert_false(presence_watch_is_awaiting(&watch));
    assert_string_equal(miss(&watch, 9), "");
}

TEST(nobody_is_missed_who_comes_or_leaves_the_record_or_is_torchruns) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    struct node_identity comes = add_node(&record, "comes", node_identity_muster_local_id(1));
    struct node_identity leaves = add_node(&record, "leaves", node_identity_muster_local_id(2));
    (void)add_node(&record, "torchrun", 0);
    presence_watch_await(&watch, &record, second(0));
    assert_string_equal(miss(&watch, 2), "");
    hear_node(&watch, &comes, 2);
    assert_true(presence_watch_is_awaiting(&watch));
    (void)rendezvous_state_take_out(&record, &leaves, 1);
    presence_watch_await(&watch, &record, second(2));
    assert_false(presence_watch_is_awaiting(&watch));
    for (int now = 3; now < 9; now++) {
        assert_string_equal(miss(&watch, now), "");
    }
}

TEST(a_node_that_is_known_to_be_gone_is_not_missed) {
    CLEARED_BY(presence_watch_clear) struct presence_watch watch = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    CLEARED_BY(text_clear) struct text name = {0};
    struct node_identity node = add_node(&record, "done", node_identity_muster_local_id(1));
    node_identity_write(&node, &name);
    hear_node(&watch, &node, 0);
    presence_watch_await(&watch, &record, second(0));
    presence_watch_forget(&watch, text_string(&name));
    presence_watch_await(&watch, &record, second(0));
    assert_false(presence_watch_is_awaiting(&watch));
    for (int now = 1; now < 9; now++) {
        assert_string_equal(miss(&watch, now), "");
    }
}

TEST(a_node_that_is_given_up_is_awaited_no_longer) {
    struct presence_watch watch = {0};
    struct rendezvous_state record = {0};
    struct node_identity dead = add_node(&record, "dead", node_identity_muster_local_id(1));
    struct node_identity comes = add_node(&record, "comes", node_identity_muster_local_id(2));
    (void)add_node(&record, "other", node_identity_muster_local_id(3));
    presence_watch_await(&watch, &record, second(0));
    hear_node(&watch, &comes, 0);
    assert_true(presence_watch_give_up(&watch, &dead));
    assert_false(presence_watch_give_up(&watch, &dead));
    assert_false(presence_watch_give_up(&watch, &comes));
    assert_string_equal(miss(&watch, 2), "");
    assert_string_equal(miss(&watch, 4), "other");
    assert_false(presence_watch_is_awaiting(&watch));
    rendezvous_state_clear(&record);
    presence_watch_clear(&watch);
}
