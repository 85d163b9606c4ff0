/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "base/duration.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_state.h"
#include "rendezvous_fixture.h"

static void check(struct text *key, const char *expected) {
    assert_string_equal(text_string(key), expected);
    text_clear(key);
}

TEST(the_record_and_the_rounds_lie_where_torchrun_puts_them) {
    struct text key = {0};
    rendezvous_key_write_record("job2", &key);
    check(&key, "/torch.rendezvous.job2");
    rendezvous_key_write_round("job2", 0, &key);
    check(&key, "/torch.rendezvous.job2.0/");
    rendezvous_key_write_round("job2", 12, &key);
    check(&key, "/torch.rendezvous.job2.12/");
}

TEST(musters_own_keys_are_in_folders_of_its_own) {
    struct text key = {0};
    rendezvous_key_write_changes("job", &key);
    check(&key, "/torch.rendezvous.job/muster/changes");
    rendezvous_key_write_changed("job", 7, &key);
    check(&key, "/torch.rendezvous.job/muster/changed/7");
    rendezvous_key_write_protocol("job", &key);
    check(&key, "/torch.rendezvous.job/muster/protocol");
    rendezvous_key_write_settings("job", &key);
    check(&key, "/torch.rendezvous.job/muster/settings");
    rendezvous_key_write_program("job", &key);
    check(&key, "/torch.rendezvous.job/muster/program");
    rendezvous_key_write_said("job", &key);
    check(&key, "/torch.rendezvous.job/muster/said");
    rendezvous_key_write_admission("job", &key);
    check(&key, "/torch.rendezvous.job/muster/admission");
    rendezvous_key_write_host("job", &key);
    check(&key, "/torch.rendezvous.job/muster/host");
    rendezvous_key_write_learned_list("job", &key);
    check(&key, "/torch.rendezvous.job/muster/standby");
    rendezvous_key_write_presences("job", &key);
    check(&key, "/torch.rendezvous.job/muster/presence/");
    rendezvous_key_write_presence_served("job", &key);
    check(&key, "/torch.rendezvous.job/muster/presence/served");
    rendezvous_key_write_refused("job", 7, &key);
    check(&key, "/torch.rendezvous.job/muster/presence/refused/7");
    rendezvous_key_write_delegation("job", &key);
    check(&key, "/torch.rendezvous.job/muster/delegation");
    rendezvous_key_write_waiting(&key);
    check(&key, "/torch.rendezvous/muster/waiting");
    rendezvous_key_write_root_cause("job", 3, &key);
    check(&key, "/torch.rendezvous.job.3/muster/root_cause");
    rendezvous_key_write_roll("job", 3, 12, &key);
    check(&key, "/torch.rendezvous.job.3/muster/roll/12");
}

TEST(a_nodes_presence_is_named_by_its_identity) {
    struct text key = {0};
    struct node_identity identity = {.address = "node7", .pid = 42, .local_id = 1073741824};
    rendezvous_key_write_presence("job", &identity, &key);
    check(&key, "/torch.rendezvous.job/muster/presence/node7_42_1073741824");
    rendezvous_key_write_standing("job", &identity, &key);
    check(&key, "/torch.rendezvous.job/muster/standing/node7_42_1073741824");
}

/* Moment. */

TEST(a_moment_has_come_when_it_is_reached) {
    struct moment moment = {0};
    assert_false(moment_has_come(&moment, (struct instant){INT64_MAX}));
    moment_set(&moment, (struct instant){10});
    assert_false(moment_has_come(&moment, (struct instant){9}));
    assert_true(moment_has_come(&moment, (struct instant){10}));
    moment_clear(&moment);
    assert_false(moment_has_come(&moment, (struct instant){10}));
}

/* Node table. */

TEST(a_node_is_found_by_all_of_its_name) {
    struct node_table table = {0};
    struct node_identity node = torch_node("a");
    assert_true(node_table_find(&table, &node) == NODE_TABLE_ABSENT);
    node_table_put(&table, &node, 0);
    assert_true(node_table_find(&table, &node) == 0);
    struct node_identity others[] = {node, node, torch_node("aa")};
    others[0].pid++;
    others[1].local_id++;
    for (size_t i = 0; i < 3; i++) {
        assert_true(node_table_find(&table, &others[i]) == NODE_TABLE_ABSENT);
        node_table_put(&table, &others[i], 10 + i);
    }
    assert_true(node_table_find(&table, &node) == 0);
    assert_true(node_table_find(&table, &others[2]) == 12);
    node_table_put(&table, &node, 7);
    assert_true(node_table_find(&table, &node) == 7);
    node_table_remove(&table, &node);
    node_table_remove(&table, &node);
    assert_true(node_table_find(&table, &node) == NODE_TABLE_ABSENT);
    assert_true(node_table_find(&table, &others[2]) == 12);
    node_table_clear(&table);
    node_table_remove(&table, &node);
    assert_true(node_table_find(&table, &node) == NODE_TABLE_ABSENT);
}

/* Node identity. */

static struct node_identity node(const char *address, int64_t pid, int64_t local_id) {
    struct node_identity identity = {.pid = pid, .local_id = local_id};
    strncpy(identity.address, address, sizeof identity.address - 1);
    return identity;
}

/* Checks that each node comes before the next one, and the next one after it. */
static void check_order(const struct node_identity *nodes, size_t count,
    int (*compare)(const struct node_identity *left, const struct node_identity *right)) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = compare(&nodes[i], &nodes[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

TEST(musters_local_ids_are_told_from_torchruns_counters) {
    static const uint32_t randoms[] = {0, 1, 0x0FFFFFFF, 0x10000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof randoms / sizeof *randoms; i++) {
        struct node_identity ours = node("a", 1, node_identity_muster_local_id(randoms[i]));
        assert_true(node_identity_is_muster(&ours));
        assert_true(ours.local_id > 0 && ours.local_id <= INT32_MAX);
    }
    static const int64_t counters[] = {
        0, 1, 1000000, -1, INT64_MIN, INT64_MAX, 0x3FFFFFFF, 0x50000000, INT64_C(0x140000000)};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        struct node_identity torchruns = node("a", 1, counters[i]);
        assert_false(node_identity_is_muster(&torchruns));
    }
}

TEST(random_numbers_tell_muster_nodes_of_one_process_apart) {
    assert_int_not_equal(node_identity_muster_local_id(7), node_identity_muster_local_id(8));
}

TEST(nodes_are_equal_by_all_three_parts) {
    struct node_identity same = node("a", 1, 2);
    struct node_identity others[] = {node("b", 1, 2), node("a", 2, 2), node("a", 1, 3)};
    struct node_identity first = node("a", 1, 2);
    assert_true(node_identity_equals(&first, &same));
    for (size_t i = 0; i < 3; i++) {
        assert_false(node_identity_equals(&first, &others[i]));
    }
}

TEST(torchruns_order_is_by_code_point_then_pid_then_local_id) {
    const struct node_identity nodes[] = {
        node("", 9, 9), node("Zebra", 1, 0), node("a", -1, 0), node("a", 9, 0), node("a", 10, 0),
        node("a", 10, 1), node("node10", 1, 0), node("node2", 1, 0), node("z", 1, 0),
        node("\xc3\xa4", 1, 0),         /* U+00E4 */
        node("\xef\xbf\xbd", 1, 0),     /* U+FFFD */
        node("\xf0\x9f\x90\xb4", 1, 0), /* U+1F434, less than U+FFFD in UTF-16 only */
    };
    check_order(nodes, sizeof nodes / sizeof *nodes, node_identity_compare);
}

TEST(the_natural_order_counts_runs_of_digits_as_numbers) {
    const struct node_identity nodes[] = {
        node("", 1, 0),
        node("10.0.0.9", 1, 0),
        node("10.0.0.10", 1, 0),
        node("10.0.2.1", 1, 0),
        node("10.0.10.1", 1, 0),
        node("node", 1, 0),
        node("node-a", 1, 0),
        node("node0", 1, 0),
        node("node1", 1, 0),
        node("node2", 1, 0),
        node("node2", 3, 0),
        node("node2-rack1", 1, 0),
        node("node10", 1, 0),
        node("node18446744073709551616", 1, 0),
        node("node18446744073709551617", 1, 0),
        node("nodes", 1, 0),
    };
    check_order(nodes, sizeof nodes / sizeof *nodes, node_identity_compare_naturally);
}

TEST(addresses_that_differ_by_zeros_alone_follow_torchruns_order) {
    const struct node_identity nodes[] = {
        node("node00", 1, 0), node("node01", 9, 9), node("node1", 1, 0), node("node02", 1, 0)};
    check_order(nodes, sizeof nodes / sizeof *nodes, node_identity_compare_naturally);
}

TEST(the_text_form_is_torchruns) {
    CLEARED_BY(text_clear) struct text text = {0};
    struct node_identity identity = node("host.example", 4711, 0);
    node_identity_describe(&identity, &text);
    assert_string_equal(text_string(&text), "host.example_4711_0");
}

TEST(the_text_form_is_read_back) {
    struct node_identity identity;
    assert_true(node_identity_parse("my_host.example_4711_1090000000", &identity));
    assert_string_equal(identity.address, "my_host.example");
    assert_int_equal(identity.pid, 4711);
    assert_int_equal(identity.local_id, 1090000000);
    static const char *const others[] = {"", "host", "host_1", "_1_2", "host_1_", "host_x_2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(node_identity_parse(others[i], &identity));
    }
    char address[NODE_ADDRESS_SIZE + 8];
    memset(address, 'a', NODE_ADDRESS_SIZE);
    strcpy(address + NODE_ADDRESS_SIZE, "_1_2");
    assert_false(node_identity_parse(address, &identity));
}

static struct node_identity of_process(struct node_identity identity, uint64_t high, uint64_t low) {
    identity.process = (struct node_process){high, low};
    return identity;
}

TEST(a_process_is_known_by_its_bits_whatever_its_name_is) {
    struct node_identity first = of_process(node("pod", 1, 5), 7, 8);
    struct node_identity renamed = of_process(node("pod", 1, 6), 7, 8);
    struct node_identity again = of_process(node("pod", 1, 5), 7, 9);
    assert_true(node_identity_is_same_process(&first, &renamed));
    assert_false(node_identity_equals(&first, &renamed));
    assert_false(node_identity_is_same_process(&first, &again));
    assert_false(node_identity_equals(&first, &again));
    assert_true(node_identity_compare(&first, &again) < 0);
    assert_true(node_identity_compare(&again, &first) > 0);
    struct node_identity nobody = node("pod", 1, 5);
    assert_false(node_identity_is_same_process(&first, &nobody));
    assert_false(node_identity_equals(&first, &nobody));
}

TEST(without_bits_address_and_process_id_tell_a_process) {
    struct node_identity left = node("a", 1, 5);
    struct node_identity right = node("a", 1, 6);
    assert_true(node_identity_is_same_process(&left, &right));
    right.pid++;
    assert_false(node_identity_is_same_process(&left, &right));
}

TEST(the_text_of_a_process_is_read_back) {
    CLEARED_BY(text_clear) struct text text = {0};
    struct node_identity read;
    struct node_identity written = of_process(node("my_pod", 1, 5), UINT64_MAX, 10);
    node_identity_write(&written, &text);
    assert_string_equal(text_string(&text), "my_pod_1_5_ffffffffffffffff000000000000000a");
    assert_true(node_identity_parse(text_string(&text), &read));
    assert_true(node_identity_equals(&written, &read));
    text_clear(&text);
    node_identity_describe(&written, &text);
    assert_string_equal(text_string(&text), "my_pod_1_5");
    text_clear(&text);
    struct node_identity alone = node("my_pod", 1, 5);
    node_identity_write(&alone, &text);
    assert_string_equal(text_string(&text), "my_pod_1_5");
    static const char *const others[] = {"ffffffffffffffff000000000000000a",
        "_ffffffffffffffff000000000000000a", "pod_1_ffffffffffffffff000000000000000a",
        "pod_1_5_ffffffffffffffff000000000000000A", "pod_1_5_ffffffffffffffff000000000000000",
        "pod_1_5_0ffffffffffffffff000000000000000a"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(node_identity_parse(others[i], &read));
    }
}
