/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/round/round_exchange_store.h"

static void role_info_is_spelled_as_torchrun_spells_it(void **state) {
    (void)state;
    static const struct node_role node = {"default", 2};
    struct text text = {0};
    rank_json_write_role_info(&node, NULL, 1, 0, &text);
    assert_string_equal(
        text_string(&text), "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 2}");
    text_clear(&text);
    rank_json_write_role_info(&node, NULL, 1, 1, &text);
    assert_string_equal(text_string(&text),
        "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 2, \"muster\": 1}");
    text_clear(&text);
}

static void role_info_survives_the_way_through_the_store(void **state) {
    (void)state;
    static const struct node_role node = {"r\303\266le \"x\"", 8};
    struct text text = {0};
    rank_json_write_role_info(&node, "10.0.0.7 fd00::7", 3, 1, &text);
    struct role_info read;
    assert_int_equal(
        rank_json_read_role_info(slice_from_string(text_string(&text)), &read), FAILURE_NONE);
    assert_string_equal(read.role, node.role);
    assert_int_equal(read.local_world_size, 8);
    assert_int_equal(read.group_rank, 3);
    assert_int_equal(read.muster_version, 1);
    assert_string_equal(read.addresses, "10.0.0.7 fd00::7");
    role_info_clear(&read);
    text_clear(&text);
}

static void odd_role_infos_are_refused(void **state) {
    (void)state;
    static const char *const malformed[] = {"", "[]", "{}", "{\"role\": 1}",
        "{\"role\": \"a\", \"rank\": \"0\", \"local_world_size\": 1}",
        "{\"role\": \"a\", \"rank\": 0}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1, \"muster\": true}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1, \"addresses\": 1}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1, \"addresses\": \"a host\"}"};
    static const char *const excessive[] = {
        "{\"role\": \"a\", \"rank\": -1, \"local_world_size\": 1}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 0}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1000000}"};
    struct role_info info;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_int_equal(
            rank_json_read_role_info(slice_from_string(malformed[i]), &info), FAILURE_MALFORMED);
    }
    for (size_t i = 0; i < sizeof excessive / sizeof *excessive; i++) {
        assert_int_equal(
            rank_json_read_role_info(slice_from_string(excessive[i]), &info), FAILURE_LIMIT);
    }
}

static void assigned_ranks_are_spelled_as_torchrun_spells_them(void **state) {
    (void)state;
    struct rank_assignment ranks = {
        .base_rank = 1, .world_size = 3, .role_base_rank = 0, .role_world_size = 2};
    struct text text = {0};
    rank_json_write_assignment(&ranks, &text);
    assert_string_equal(text_string(&text), "[1, 3, 0, 2]");
    struct rank_assignment read;
    assert_int_equal(
        rank_json_read_assignment(slice_from_string(text_string(&text)), &read), FAILURE_NONE);
    assert_memory_equal(&read, &ranks, sizeof read);
    text_clear(&text);
}

static void odd_assigned_ranks_are_refused(void **state) {
    (void)state;
    static const char *const malformed[] = {"", "{}", "[0, 2, 0]", "[0, 2, 0, 2, 0]",
        "[0, 2, 0, \"2\"]", "[2, 2, 0, 2]", "[0, 2, 2, 2]", "[0, 2, 0, 3]", "[0, 2, 0.0, 2]"};
    struct rank_assignment ranks;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_int_equal(
            rank_json_read_assignment(slice_from_string(malformed[i]), &ranks), FAILURE_MALFORMED);
    }
    assert_int_equal(
        rank_json_read_assignment(slice_from_string("[-1, 2, 0, 2]"), &ranks), FAILURE_LIMIT);
    assert_int_equal(rank_json_read_assignment(slice_from_string("[0, 99999999999, 0, 2]"), &ranks),
        FAILURE_LIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(role_info_is_spelled_as_torchrun_spells_it),
    cmocka_unit_test(role_info_survives_the_way_through_the_store),
    cmocka_unit_test(odd_role_infos_are_refused),
    cmocka_unit_test(assigned_ranks_are_spelled_as_torchrun_spells_them),
    cmocka_unit_test(odd_assigned_ranks_are_refused),
};

UNIT_TESTS(tests)
