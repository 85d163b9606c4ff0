/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_state.h"
#include "record_tools.h"
#include "rendezvous_fixture.h"

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

TEST(the_expulsion_of_one_who_waits_settles_nothing) {
    struct rendezvous_settings settings = sized(2, 4);
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {.is_complete = true};
    place_waiting(&record, "w");
    struct node_identity gone = torch_node("w");
    torchrun_expels(&record, &settings, &gone);
    check_record(&record, "round 0 complete [] wait [] spare []");
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
