/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_regroup.h"
#include "rendezvous_fixture.h"

/* A complete round of Muster's nodes named by single letters. */
static struct rendezvous_state round_of(const char *names) {
    struct rendezvous_state record = {.round = 7, .is_complete = true};
    for (int64_t rank = 0; names[rank] != '\0'; rank++) {
        char name[] = {names[rank], '\0'};
        struct rendezvous_node *node = place(&record, muster_node(name));
        node->is_participant = true;
        node->rank = rank;
    }
    return record;
}

static void wait_in(struct rendezvous_state *record, const char *name) {
    place(record, muster_node(name))->is_waiting = true;
}

static void be_spare(struct rendezvous_state *record, const char *name) {
    place(record, muster_node(name))->is_redundant = true;
}

/* "a" is gone. */
static void lose_first(
    struct rendezvous_state *record, const struct rendezvous_settings *settings) {
    struct node_identity gone = muster_node("a");
    rendezvous_regroup_apply(record, settings,
        &(struct rendezvous_regroup){.gone = &gone, .gone_count = 1, .reason = "a is gone"});
}

/* Compares the record as text with names instead of identities, since all nodes are Muster's here:
 * "7 complete abc wait d". */
static void check(struct rendezvous_state *record, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    text_append_format(
        &text, "%d %s ", (int)record->round, record->is_complete ? "complete" : "open");
    for (size_t i = 0; i < record->count; i++) {
        if (record->nodes[i].is_participant) {
            text_append_format(
                &text, "%s%d", record->nodes[i].identity.address, (int)record->nodes[i].rank);
        }
    }
    for (size_t i = 0; i < record->count; i++) {
        if (record->nodes[i].is_waiting || record->nodes[i].is_redundant) {
            text_append_format(&text, " %s %s", record->nodes[i].is_waiting ? "waits" : "spare",
                record->nodes[i].identity.address);
        }
    }
    assert_string_equal(text_string(&text), expected);
    rendezvous_state_clear(record);
}

TEST(those_who_wait_come_before_spares_up_to_the_maximum) {
    struct rendezvous_settings settings = sized(2, 4);
    struct rendezvous_state record = round_of("abc");
    be_spare(&record, "d");
    wait_in(&record, "e");
    wait_in(&record, "f");
    lose_first(&record, &settings);
    check(&record, "8 complete b0c1e2f3 spare d");
}

TEST(those_for_whom_no_place_is_left_become_spares) {
    struct rendezvous_settings settings = sized(2, 3);
    struct rendezvous_state record = round_of("abc");
    wait_in(&record, "d");
    wait_in(&record, "e");
    lose_first(&record, &settings);
    check(&record, "8 complete b0c1d2 spare e");
}

TEST(a_world_that_may_not_grow_takes_a_replacement_that_comes_later) {
    struct rendezvous_settings settings = sized(1, 8);
    settings.scale_up = RENDEZVOUS_SCALE_UP_NEVER;
    struct rendezvous_state record = round_of("abc");
    record.size = 3;
    lose_first(&record, &settings);
    wait_in(&record, "d");
    assert_true(rendezvous_regroup_would_admit(&record, &settings));
    struct rendezvous_regroup regroup = {.reason = "a node has joined"};
    rendezvous_regroup_apply(&record, &settings, &regroup);
    wait_in(&record, "e");
    assert_false(rendezvous_regroup_would_admit(&record, &settings));
    check(&record, "9 complete b0c1d2 waits e");
}

TEST(too_few_leave_the_round_open_for_as_many_as_the_job_needs) {
    struct rendezvous_settings settings = sized(3, 4);
    struct rendezvous_state record = round_of("abc");
    lose_first(&record, &settings);
    assert_int_equal(record.wanted, 3);
    assert_false(record.has_deadline);
    assert_false(rendezvous_regroup_settle(&record, &settings, false));
    assert_false(rendezvous_regroup_settle(&record, &settings, true));
    check(&record, "8 open b0c0");
}

TEST(patience_for_a_replacement_ends_with_those_that_are_left) {
    struct rendezvous_settings settings = sized(2, 4);
    settings.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    struct rendezvous_state record = round_of("abc");
    lose_first(&record, &settings);
    assert_true(rendezvous_regroup_settle(&record, &settings, true));
    check(&record, "8 complete b0c1");
}

TEST(reasons_are_written_so_that_every_reader_can_read_them) {
    struct rendezvous_state record = {0};
    rendezvous_regroup_explain(&record, "tab\there, \xc3\xa9 and \"quotes\"");
    assert_string_equal(record.reason, "tab?here, ?? and \"quotes\"");
}

TEST(only_open_complete_rounds_of_musters_nodes_are_moved_on) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = round_of("ab");
    assert_true(rendezvous_regroup_is_possible(&record));
    place(&record, torch_node("t"))->is_waiting = true;
    assert_true(rendezvous_regroup_is_possible(&record));
    record.is_complete = false;
    assert_false(rendezvous_regroup_is_possible(&record));
    record.is_complete = true;
    record.is_closed = true;
    assert_false(rendezvous_regroup_is_possible(&record));
    record.is_closed = false;
    place(&record, torch_node("t"))->is_participant = true;
    assert_false(rendezvous_regroup_is_possible(&record));
}

/* How often the workers of this node have failed first. */
static int blamed(const struct rendezvous_state *record, const char *name) {
    int count = 0;
    for (size_t i = 0; i < record->blame_count; i++) {
        count += text_equals(record->blames[i].address, name) ? (int)record->blames[i].count : 0;
    }
    return count;
}

/* A worker of the node has failed first. */
static void fail_first(struct rendezvous_state *record, const struct rendezvous_settings *settings,
    const char *name, bool is_needed) {
    struct node_identity culprit = muster_node(name);
    rendezvous_regroup_apply(record, settings,
        &(struct rendezvous_regroup){.is_charged = true,
            .culprit = &culprit,
            .is_culprit_needed = is_needed,
            .reason = "worker failed"});
}

TEST(a_node_whose_workers_fail_first_too_often_makes_room_for_a_spare) {
    struct rendezvous_settings settings = sized(3, 3);
    settings.exclude_after = 2;
    struct rendezvous_state record = round_of("abc");
    be_spare(&record, "d");
    fail_first(&record, &settings, "b", false);
    fail_first(&record, &settings, "c", false);
    assert_int_equal(blamed(&record, "b"), 1);
    assert_int_equal(rendezvous_state_participants(&record), 3);
    fail_first(&record, &settings, "b", false);
    assert_int_equal(blamed(&record, "b"), 0);
    assert_int_equal(blamed(&record, "c"), 1);
    assert_int_equal(record.restarts, 3);
    assert_true(rendezvous_regroup_is_because(&record, "worker failed"));
    check(&record, "10 complete a0c1d2");
}

TEST(a_node_leaves_where_the_others_are_enough_without_it) {
    struct rendezvous_settings settings = sized(2, 3);
    settings.exclude_after = 1;
    struct rendezvous_state record = round_of("abc");
    fail_first(&record, &settings, "a", false);
    check(&record, "8 complete b0c1");
}

TEST(a_node_that_is_needed_stays_and_the_round_says_why) {
    struct rendezvous_settings settings = sized(3, 3);
    settings.exclude_after = 2;
    struct rendezvous_state record = round_of("abc");
    fail_first(&record, &settings, "a", false);
    assert_string_equal(record.reason, "worker failed");
    fail_first(&record, &settings, "a", false);
    assert_string_equal(record.reason, "node a stays, though its workers failed first 2 times: "
                                       "there is no spare, and the others are too few");
    be_spare(&record, "d");
    fail_first(&record, &settings, "a", true);
    assert_string_equal(record.reason, "node a stays, though its workers failed first 3 times: it "
                                       "hosts the job's store");
    check(&record, "10 complete a0b1c2 spare d");
    settings.minimum_nodes = 2;
    settings.on_node_loss = RENDEZVOUS_ON_NODE_LOSS_WAIT;
    record = round_of("abc");
    settings.exclude_after = 1;
    fail_first(&record, &settings, "a", false);
    check(&record, "8 complete a0b1c2");
}

TEST(a_failure_that_a_lost_node_has_caused_is_blamed_on_nobody) {
    struct rendezvous_settings settings = sized(1, 3);
    settings.exclude_after = 2;
    struct rendezvous_state record = round_of("abc");
    struct node_identity gone = muster_node("c");
    fail_first(&record, &settings, "a", false);
    fail_first(&record, &settings, "b", false);
    rendezvous_regroup_apply(&record, &settings,
        &(struct rendezvous_regroup){
            .gone = &gone, .gone_count = 1, .is_refunded = true, .reason = "c is gone"});
    assert_int_equal(blamed(&record, "b"), 0);
    assert_int_equal(blamed(&record, "a"), 1);
    check(&record, "10 complete a0b1");
}

TEST(without_the_limit_nobody_is_blamed) {
    struct rendezvous_settings settings = sized(1, 3);
    struct rendezvous_state record = round_of("abc");
    fail_first(&record, &settings, "a", false);
    assert_int_equal(blamed(&record, "a"), 0);
    check(&record, "8 complete a0b1c2");
}
