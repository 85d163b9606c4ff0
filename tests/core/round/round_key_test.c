/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/round/round_key.h"
#include "core/store/store_presence.h"

/* The keys in a trace of two torchrun agents of the run "job2" in round 0. */
#define FOLDER "/torch.rendezvous.job2.0/"

static void check(struct round_key key, const char *first, const char *last, size_t count) {
    CLEARED_BY(text_list_clear) struct text_list keys = {0};
    round_key_list(&key, "job2", &keys);
    assert_int_equal(keys.count, count);
    assert_string_equal(keys.items[0], first);
    assert_string_equal(keys.items[count - 1], last);
}

static void check_single(enum round_key_kind kind, int node, const char *expected) {
    check((struct round_key){.kind = kind, .node = node}, expected, expected, 1);
}

TEST(torchruns_keys_are_spelled_as_torchrun_spells_them) {
    check_single(ROUND_KEY_MASTER_ADDR, 0, FOLDER "MASTER_ADDR");
    check_single(ROUND_KEY_MASTER_PORT, 0, FOLDER "MASTER_PORT");
    check_single(ROUND_KEY_ROLE_INFO, 1, FOLDER "torchelastic/role_info/1");
    check_single(ROUND_KEY_ASSIGNED_RANKS, 1, FOLDER "torchelastic/assigned_ranks/1");
    check_single(ROUND_KEY_NUM_MEMBERS, 0, FOLDER "torchelastic/agent/terminal_state/num_members");
    check_single(ROUND_KEY_LAST_MEMBER, 0, FOLDER "torchelastic/agent/terminal_state/last_member");
}

TEST(musters_keys_are_in_a_folder_of_their_own) {
    check_single(ROUND_KEY_PUBLISHER, 0, FOLDER "muster/publisher");
}

static void check_of_fixed_nodes(
    struct round_key key, const char *on_the_wire, const char *described) {
    CLEARED_BY(text_clear) struct text text = {0};
    check(key, on_the_wire, on_the_wire, 1);
    round_key_describe(&key, &text);
    assert_string_equal(text_string(&text), described);
}

/* As a trace of two torchrun agents with --node-rank has them. */
TEST(a_round_of_fixed_nodes_has_no_folder_of_its_own) {
    static const struct {
        enum round_key_kind kind;
        int node;
        const char *on_the_wire;
        const char *described;
    } cases[] = {
        {ROUND_KEY_INIT, 0, "init/", "init"},
        {ROUND_KEY_ROLE_INFO, 1, "/job2/torchelastic/role_info/1", "role_info/1"},
        {ROUND_KEY_ASSIGNED_RANKS, 12, "/job2/torchelastic/assigned_ranks/12", "assigned_ranks/12"},
        {ROUND_KEY_NUM_MEMBERS, 0, "/job2/torchelastic/agent/terminal_state/num_members",
            "num_members"},
        {ROUND_KEY_LAST_MEMBER, 0, "/job2/torchelastic/agent/terminal_state/last_member",
            "last_member"},
        {ROUND_KEY_COORDINATED, 0, "/job2/muster/coordinated", "coordinated"},
        {ROUND_KEY_CLAIM_SERVED, 0, "/job2/muster/claim/" STORE_PRESENCE_SERVED, "claim/served"},
        {ROUND_KEY_CLAIM, 1, "/job2/muster/claim/1", "claim/1"},
        {ROUND_KEY_RIVAL, 1, "/job2/muster/claim/rival/1", "claim/rival/1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_of_fixed_nodes((struct round_key){cases[i].kind, ROUND_OF_FIXED_NODES, cases[i].node},
            cases[i].on_the_wire, cases[i].described);
    }
    check((struct round_key){ROUND_KEY_ALL_ROLE_INFOS, ROUND_OF_FIXED_NODES, 3},
        "/job2/torchelastic/role_info/0", "/job2/torchelastic/role_info/2", 3);
}

TEST(what_fixed_nodes_agree_on_is_counted_by_attempt) {
    static const struct {
        enum round_key_kind kind;
        int64_t attempt;
        const char *on_the_wire;
        const char *described;
        bool is_decision;
    } cases[] = {
        {ROUND_KEY_READY, 2, "/job2/muster/ready/2", "ready/2", false},
        {ROUND_KEY_FINISHED, 0, "/job2/muster/finished/0", "finished/0", false},
        {ROUND_KEY_GATHERED, 1, "/job2/muster/gathered/1", "gathered/1", true},
        {ROUND_KEY_START, 1, "/job2/muster/start/1", "start/1", true},
        {ROUND_KEY_END, 1, "/job2/muster/end/1", "end/1", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_of_fixed_nodes((struct round_key){.kind = cases[i].kind, .round = cases[i].attempt},
            cases[i].on_the_wire, cases[i].described);
        assert_int_equal(round_key_is_decision(cases[i].kind), cases[i].is_decision);
    }
}

TEST(the_agents_keys_of_fixed_nodes_share_a_prefix) {
    CLEARED_BY(text_clear) struct text prefix = {0};
    round_key_write_prefix("job2", &prefix);
    assert_string_equal(text_string(&prefix), "/job2/");
    text_clear(&prefix);
    round_key_write_claims("job2", &prefix);
    assert_string_equal(text_string(&prefix), "/job2/muster/claim/");
}

TEST(groups_name_several_keys) {
    check((struct round_key){.kind = ROUND_KEY_ADDRESS}, FOLDER "MASTER_ADDR", FOLDER "MASTER_PORT",
        2);
    check((struct round_key){.kind = ROUND_KEY_WORLD, .node = 2}, FOLDER "MASTER_ADDR",
        FOLDER "torchelastic/assigned_ranks/2", 3);
    check((struct round_key){.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 12},
        FOLDER "torchelastic/role_info/0", FOLDER "torchelastic/role_info/11", 12);
}

TEST(the_publisher_is_written_before_its_address) {
    check((struct round_key){.kind = ROUND_KEY_PUBLICATION}, FOLDER "muster/publisher",
        FOLDER "MASTER_PORT", 3);
}

TEST(all_keys_of_a_round_can_be_named) {
    static const char *const expected[] = {
        FOLDER "MASTER_ADDR",
        FOLDER "MASTER_PORT",
        FOLDER "torchelastic/role_info/0",
        FOLDER "torchelastic/role_info/1",
        FOLDER "torchelastic/assigned_ranks/0",
        FOLDER "torchelastic/assigned_ranks/1",
        FOLDER "torchelastic/agent/terminal_state/num_members",
        FOLDER "torchelastic/agent/terminal_state/last_member",
        FOLDER "muster/publisher",
        FOLDER "muster/roll/0",
        FOLDER "muster/roll/1",
        FOLDER "muster/root_cause",
    };
    CLEARED_BY(text_list_clear) struct text_list keys = {0};
    round_key_list_all(0, 2, "job2", &keys);
    assert_int_equal(keys.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < keys.count; i++) {
        assert_string_equal(keys.items[i], expected[i]);
    }
}

TEST(a_key_is_described_by_its_round_and_name) {
    CLEARED_BY(text_clear) struct text text = {0};
    round_key_describe(&(struct round_key){.kind = ROUND_KEY_WORLD, .round = 3, .node = 1}, &text);
    text_append(&text, " ");
    round_key_describe(&(struct round_key){.kind = ROUND_KEY_MASTER_ADDR}, &text);
    assert_string_equal(text_string(&text), "3/world/1 0/MASTER_ADDR");
}

TEST(keys_of_a_job_with_a_register_are_named_apart) {
    CLEARED_BY(text_list_clear) struct text_list keys = {0};
    round_key_list_of_succession(7, 2, "job", &keys);
    assert_int_equal(keys.count, 3);
    assert_string_equal(keys.items[0], "/torch.rendezvous.job.7/muster/committed");
    assert_string_equal(keys.items[1], "/torch.rendezvous.job.7/muster/done/0");
    assert_string_equal(keys.items[2], "/torch.rendezvous.job.7/muster/done/1");
}
