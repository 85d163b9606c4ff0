/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_state.h"
#include "record_tools.h"
#include "rendezvous_fixture.h"

TEST(the_zeroed_record_is_empty_and_open) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    struct node_identity stranger = torch_node("a");
    check_record(&record, "round 0 open [] wait [] spare []");
    assert_null(rendezvous_state_find(&record, &stranger));
    rendezvous_state_prune(&record);
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state copy = {0};
    rendezvous_state_copy(&record, &copy);
    assert_true(record_equals(&record, &copy));
}

TEST(a_node_is_made_once_and_found_again) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place_participant(&record, "a");
    place_waiting(&record, "b");
    struct node_identity second = torch_node("b");
    assert_ptr_equal(rendezvous_state_obtain(&record, &second), &record.nodes[1]);
    assert_ptr_equal(rendezvous_state_find(&record, &second), &record.nodes[1]);
    assert_int_equal(record.count, 2);
    assert_false(record_has_participant(&record, &second));
}

TEST(a_record_grows_with_its_nodes) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place_participant(&record, "a");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state other = {0};
    for (int i = 0; i < 9; i++) {
        char address[8];
        snprintf(address, sizeof address, "b%d", i);
        place_participant(&other, address);
        rendezvous_state_obtain(&record, &other.nodes[i].identity)->is_waiting = true;
    }
    assert_int_equal(rendezvous_state_waiting(&record), 9);
}

TEST(pruning_drops_nodes_without_a_flag_and_keeps_the_order) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    struct node_identity bare = torch_node("bare");
    place_waiting(&record, "w");
    rendezvous_state_obtain(&record, &bare);
    place(&record, torch_node("heartbeat"));
    place_participant(&record, "p");
    rendezvous_state_prune(&record);
    assert_int_equal(record.count, 3);
    assert_string_equal(record.nodes[0].identity.address, "w");
    assert_string_equal(record.nodes[1].identity.address, "heartbeat");
    assert_string_equal(record.nodes[2].identity.address, "p");
}

TEST(each_list_is_counted_by_itself) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place_participant(&record, "a");
    place_participant(&record, "b");
    place_participant(&record, "c");
    place_waiting(&record, "d");
    place_waiting(&record, "e");
    place_redundant(&record, "f");
    assert_int_equal(rendezvous_state_participants(&record), 3);
    assert_int_equal(rendezvous_state_waiting(&record), 2);
    assert_int_equal(rendezvous_state_redundant(&record), 1);
}

TEST(a_copy_stands_by_itself) {
    struct rendezvous_state record = {.round = 4, .reason = "why"};
    place_participant(&record, "a");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state copy = {0};
    place_waiting(&copy, "old");
    rendezvous_state_copy(&record, &copy);
    assert_true(record_equals(&record, &copy));
    rendezvous_state_copy(&copy, &copy);
    place_participant(&copy, "b");
    assert_int_equal(record.count, 1);
    check_record(&copy, "round 4 open [a_1_0 b_1_0] wait [] spare [] because why");
    rendezvous_state_clear(&record);
}

TEST(records_have_an_order_that_no_job_goes_back) {
    const struct rendezvous_state order[] = {{.round = 0}, {.round = 0, .is_complete = true},
        {.round = 1}, {.round = 1, .is_complete = true}, {.round = 0, .is_closed = true},
        {.round = 2, .is_complete = true, .is_closed = true}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        for (size_t j = 0; j < sizeof order / sizeof *order; j++) {
            assert_int_equal(rendezvous_state_is_before(&order[i], &order[j]), i < j);
        }
    }
}

TEST(a_renumbered_record_counts_on_from_another_number) {
    struct rendezvous_state record = {.round = 2};
    rendezvous_state_renumber(&record, 5000); /* nobody runs in an open round */
    assert_int_equal(record.round, 5002);
    assert_int_equal(rendezvous_state_ordinal(&record), 2);
    record.is_complete = true;
    rendezvous_state_renumber(&record, 3000);
    assert_int_equal(record.round, 5002);
    assert_int_equal(rendezvous_state_ordinal(&record), 2);
    rendezvous_state_count_round(&record);
    assert_int_equal(record.round, 3003);
    assert_int_equal(rendezvous_state_ordinal(&record), 3);
    rendezvous_state_count_round(&record);
    assert_int_equal(record.round, 3004);
}

TEST(rounds_of_renumbered_records_are_compared_by_how_many_came_before) {
    struct rendezvous_state old = {.round = 2, .is_complete = true};
    struct rendezvous_state anew = {.round = 7000, .base = 7000, .next_base = 7000};
    assert_true(rendezvous_state_is_before(&anew, &old));
    assert_false(rendezvous_state_is_before(&old, &anew));
    anew.round = 7003;
    assert_true(rendezvous_state_is_before(&old, &anew));
}

TEST(a_complete_round_keeps_its_restarts) {
    struct rendezvous_state record = {.is_complete = true, .restarts = 1};
    rendezvous_state_raise_restarts(&record, 3);
    rendezvous_state_raise_restarts(&record, 2);
    assert_int_equal(record.restarts, 1);
    rendezvous_state_count_round(&record);
    assert_int_equal(record.restarts, 3);
    assert_int_equal(record.next_restarts, 0);
    record.is_complete = false;
    rendezvous_state_raise_restarts(&record, 4);
    assert_int_equal(record.restarts, 4);
    record.is_complete = true;
    place_participant(&record, "torchrun's");
    rendezvous_state_raise_restarts(&record, 5);
    assert_int_equal(record.restarts, 5);
    rendezvous_state_clear(&record);
}

TEST(an_expelled_node_is_in_no_list) {
    struct rendezvous_settings settings = sized(1, 3);
    struct rendezvous_state record = {.round = 2, .is_complete = true};
    place_participant(&record, "a");
    place_participant(&record, "b");
    place_waiting(&record, "w");
    place_redundant(&record, "s");
    static const char *const addresses[] = {"b", "w", "s", "stranger"};
    for (size_t i = 0; i < 4; i++) {
        struct node_identity gone = torch_node(addresses[i]);
        torchrun_expels(&record, &settings, &gone);
        assert_null(rendezvous_state_find(&record, &gone));
    }
    check_record(&record, "round 2 complete [a_1_0:0] wait [] spare []");
    rendezvous_state_clear(&record);
}

TEST(the_rank_of_a_node_survives_the_expulsion_of_another) {
    struct rendezvous_settings settings = sized(1, 3);
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    place_participant(&record, "a");
    place_participant(&record, "b");
    rendezvous_state_complete(&record);
    struct node_identity gone = torch_node("a");
    torchrun_expels(&record, &settings, &gone);
    check_record(&record, "round 0 complete [b_1_0:1] wait [] spare []");
}

TEST(a_complete_round_without_participants_gives_way_to_the_next) {
    struct rendezvous_settings settings = sized(1, 2);
    CLEARED_BY(rendezvous_state_clear)
    struct rendezvous_state record = {.round = 2,
        .is_complete = true,
        .restarts = 3,
        .wanted = 1,
        .is_draining = true,
        .is_doubted = true,
        .reason = "of round 2"};
    place_participant(&record, "a");
    place_waiting(&record, "w");
    struct node_identity gone = torch_node("a");
    torchrun_expels(&record, &settings, &gone);
    check_record(&record, "round 3 open [] wait [w_1_0] spare [] restarts 3");
}

TEST(a_round_with_too_few_participants_forgets_its_deadline) {
    struct rendezvous_settings settings = sized(2, 4);
    struct rendezvous_state record = {.has_deadline = true, .deadline = wall_seconds(9)};
    place_participant(&record, "a");
    place_participant(&record, "b");
    place_participant(&record, "c");
    struct node_identity gone = torch_node("a");
    torchrun_expels(&record, &settings, &gone);
    check_record(&record, "round 0 last_call [b_1_0 c_1_0] wait [] spare []");
    gone = torch_node("b");
    torchrun_expels(&record, &settings, &gone);
    check_record(&record, "round 0 open [c_1_0] wait [] spare []");
    rendezvous_state_clear(&record);
}

TEST(the_expulsion_of_one_who_waits_settles_nothing) {
    struct rendezvous_settings settings = sized(2, 4);
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    place_waiting(&record, "w");
    struct node_identity gone = torch_node("w");
    torchrun_expels(&record, &settings, &gone);
    check_record(&record, "round 0 complete [] wait [] spare []");
}

TEST(nodes_of_another_kind_are_noticed) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place(&record, muster_node("a"))->is_participant = true;
    assert_false(rendezvous_state_has_foreign_node(&record));
    place_waiting(&record, "b");
    assert_true(rendezvous_state_has_foreign_node(&record));
    assert_false(rendezvous_state_has_foreign_participant(&record));
    place_participant(&record, "b");
    assert_true(rendezvous_state_has_foreign_participant(&record));
}

static int64_t rank_of(const struct rendezvous_state *record, struct node_identity identity) {
    return rendezvous_state_find(record, &identity)->rank;
}

TEST(musters_nodes_among_themselves_rank_in_the_natural_order) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    place(&record, muster_node("node10"))->is_participant = true;
    place(&record, muster_node("node9"))->is_participant = true;
    place(&record, muster_node("node1"))->is_participant = true;
    place_waiting(&record, "node0");
    rendezvous_state_complete(&record);
    assert_int_equal(rank_of(&record, muster_node("node1")), 0);
    assert_int_equal(rank_of(&record, muster_node("node9")), 1);
    assert_int_equal(rank_of(&record, muster_node("node10")), 2);
}

TEST(with_a_torchrun_participant_ranks_are_in_torchruns_order) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    place(&record, muster_node("node9"))->is_participant = true;
    place_participant(&record, "node10");
    rendezvous_state_complete(&record);
    assert_int_equal(rank_of(&record, torch_node("node10")), 0);
    assert_int_equal(rank_of(&record, muster_node("node9")), 1);
}

TEST(ten_thousand_nodes_are_ranked) {
    enum { NODES = 10000 };
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    record.nodes = calloc(NODES, sizeof *record.nodes);
    record.count = record.capacity = NODES;
    for (size_t i = 0; i < NODES; i++) {
        record.nodes[i].is_participant = true;
        record.nodes[i].identity = muster_node("");
        snprintf(
            record.nodes[i].identity.address, NODE_ADDRESS_SIZE, "node%zu", (i * 7919) % NODES);
    }
    rendezvous_state_complete(&record);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(record.nodes[i].rank, (i * 7919) % NODES);
    }
}

TEST(a_transcript_line_says_what_is_not_as_usual) {
    CLEARED_BY(rendezvous_state_clear)
    struct rendezvous_state record = {.round = 3,
        .is_complete = true,
        .is_closed = true,
        .is_draining = true,
        .is_charged = true,
        .is_doubted = true,
        .has_failed = true,
        .restarts = 2,
        .reason = "rank 1 failed"};
    place_participant(&record, "a");
    place_participant(&record, "b");
    place_redundant(&record, "c");
    place_waiting(&record, "d");
    place_waiting(&record, "e");
    rendezvous_state_complete(&record);
    record.wanted = 4;
    check_record(&record, "round 3 complete [a_1_0:0 b_1_0:1] wait [d_1_0 e_1_0] spare [c_1_0]"
                          " closed failed draining doubted restarts 2 charged wanted 4 because "
                          "rank 1 failed");
}

TEST(a_round_that_somebody_has_left_is_not_whole) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    assert_true(rendezvous_state_is_whole(&record));
    place_participant(&record, "a");
    place_participant(&record, "b");
    place_participant(&record, "c");
    assert_false(rendezvous_state_is_whole(&record));
    rendezvous_state_complete(&record);
    assert_true(rendezvous_state_is_whole(&record));
    struct node_identity left = torch_node("b");
    rendezvous_state_find(&record, &left)->is_participant = false;
    assert_false(rendezvous_state_is_whole(&record));
}
