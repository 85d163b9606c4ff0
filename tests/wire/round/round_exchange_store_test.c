/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and values are taken from a trace of two torchrun agents with the run id "job2" in round
 * 0. */
#include "unit.h"

#include "wire/round/round_exchange_store.h"

#define FOLDER "/torch.rendezvous.job2.0/"

static void check_slice(struct slice actual, const char *expected) {
    assert_true(slice_equals(actual, slice_from_string(expected)));
}

static struct owned_request build(struct round_effect effect) {
    struct owned_request request;
    round_request_build(&effect, "job2", &request);
    return request;
}

TEST(an_address_is_published_in_torchruns_keys) {
    struct owned_request request = build((struct round_effect){.kind = ROUND_EFFECT_PUBLISH,
        .key = {.kind = ROUND_KEY_PUBLICATION},
        .publication = {"localhost", "39419", "localhost_7_1073741824"}});
    assert_int_equal(request.request.operation, STORE_MULTI_SET);
    assert_int_equal(request.request.count, 3);
    check_slice(request.request.keys[0], FOLDER "muster/publisher");
    check_slice(request.request.values[0], "localhost_7_1073741824");
    check_slice(request.request.keys[1], FOLDER "MASTER_ADDR");
    check_slice(request.request.values[1], "localhost");
    check_slice(request.request.keys[2], FOLDER "MASTER_PORT");
    check_slice(request.request.values[2], "39419");
    owned_request_clear(&request);
}

TEST(a_node_says_who_it_is) {
    struct owned_request request = build((struct round_effect){.kind = ROUND_EFFECT_SET_ROLE_INFO,
        .key = {.kind = ROUND_KEY_ROLE_INFO, .node = 1},
        .node = {"default", 1}});
    assert_int_equal(request.request.operation, STORE_SET);
    check_slice(request.request.key, FOLDER "torchelastic/role_info/1");
    check_slice(request.request.value,
        "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 1, \"muster\": 1}");
    owned_request_clear(&request);
}

TEST(rank_0_waits_for_all_and_asks_all) {
    static const enum round_effect_kind kinds[] = {ROUND_EFFECT_WAIT, ROUND_EFFECT_GET};
    static const enum store_operation operations[] = {STORE_WAIT, STORE_MULTI_GET};
    for (size_t i = 0; i < 2; i++) {
        CLEARED_BY(owned_request_clear)
        struct owned_request request = build((struct round_effect){
            .kind = kinds[i], .key = {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 2}});
        assert_int_equal(request.request.operation, operations[i]);
        assert_int_equal(request.request.count, 2);
        check_slice(request.request.keys[0], FOLDER "torchelastic/role_info/0");
        check_slice(request.request.keys[1], FOLDER "torchelastic/role_info/1");
    }
}

TEST(ranks_are_set_for_all_nodes_at_once) {
    static const struct rank_assignment ranks[] = {{0, 2, 0, 2}, {1, 2, 1, 2}};
    struct owned_request request = build((struct round_effect){.kind = ROUND_EFFECT_SET_ASSIGNMENTS,
        .key = {.kind = ROUND_KEY_ASSIGNED_RANKS},
        .assignments = {.items = ranks, .count = 2}});
    assert_int_equal(request.request.operation, STORE_MULTI_SET);
    assert_int_equal(request.request.count, 2);
    check_slice(request.request.keys[0], FOLDER "torchelastic/assigned_ranks/0");
    check_slice(request.request.values[0], "[0, 2, 0, 2]");
    check_slice(request.request.keys[1], FOLDER "torchelastic/assigned_ranks/1");
    check_slice(request.request.values[1], "[1, 2, 1, 2]");
    owned_request_clear(&request);
}

/* Of fixed nodes. */

TEST(ranks_are_set_behind_the_mark_of_coordination) {
    static const struct rank_assignment ranks[] = {{0, 2, 0, 2}, {1, 2, 1, 2}};
    struct owned_request request = build((struct round_effect){.kind = ROUND_EFFECT_SET_ASSIGNMENTS,
        .key = {.kind = ROUND_KEY_ASSIGNED_RANKS, .round = ROUND_OF_FIXED_NODES},
        .assignments = {.items = ranks, .count = 2, .is_coordinated = true}});
    assert_int_equal(request.request.operation, STORE_MULTI_SET);
    assert_int_equal(request.request.count, 3);
    check_slice(request.request.keys[0], "/job2/muster/coordinated");
    check_slice(request.request.values[0], "1");
    check_slice(request.request.keys[1], "/job2/torchelastic/assigned_ranks/0");
    check_slice(request.request.keys[2], "/job2/torchelastic/assigned_ranks/1");
    check_slice(request.request.values[2], "[1, 2, 1, 2]");
    owned_request_clear(&request);
}

TEST(a_decision_is_stored_only_where_there_is_none) {
    struct owned_request request = build((struct round_effect){.kind = ROUND_EFFECT_DECIDE,
        .key = {.kind = ROUND_KEY_END, .round = 2},
        .text = "restart"});
    assert_int_equal(request.request.operation, STORE_COMPARE_SET);
    check_slice(request.request.key, "/job2/muster/end/2");
    check_slice(request.request.value, "restart");
    assert_int_equal(request.request.expected.length, 0);
    owned_request_clear(&request);
}

TEST(the_exit_barrier_is_torchruns) {
    CLEARED_BY(owned_request_clear)
    struct owned_request request = build((struct round_effect){
        .kind = ROUND_EFFECT_ADD, .key = {.kind = ROUND_KEY_NUM_MEMBERS}, .amount = 1});
    assert_int_equal(request.request.operation, STORE_ADD);
    assert_int_equal(request.request.number, 1);
    check_slice(request.request.key, FOLDER "torchelastic/agent/terminal_state/num_members");
    owned_request_clear(&request);
    request = build((struct round_effect){
        .kind = ROUND_EFFECT_SET, .key = {.kind = ROUND_KEY_LAST_MEMBER}, .text = "<val_ignored>"});
    assert_int_equal(request.request.operation, STORE_SET);
    check_slice(request.request.key, FOLDER "torchelastic/agent/terminal_state/last_member");
    check_slice(request.request.value, "<val_ignored>");
}

TEST(only_questions_want_an_answer) {
    assert_false(round_effect_wants_answer(ROUND_EFFECT_PUBLISH));
    assert_false(round_effect_wants_answer(ROUND_EFFECT_SET));
    assert_false(round_effect_wants_answer(ROUND_EFFECT_DECIDE));
    assert_true(round_effect_wants_answer(ROUND_EFFECT_WAIT));
}

/* Answers. */

static const struct round_question world = {
    ROUND_EFFECT_GET, 6, {.kind = ROUND_KEY_WORLD, .round = 6, .node = 1}};

static struct round_answer read_list(
    const struct round_question *question, const char *const *texts, size_t count) {
    struct slice slices[4];
    for (size_t i = 0; i < count; i++) {
        slices[i] = slice_from_string(texts[i]);
    }
    struct store_reply reply = {.kind = STORE_REPLY_BLOBS, .list = {slices, count}};
    struct round_answer answer;
    assert_int_equal(round_answer_read(question, &reply, &answer), FAILURE_NONE);
    return answer;
}

TEST(an_answer_belongs_to_its_round_and_key) {
    struct round_effect effect = {
        .kind = ROUND_EFFECT_CHECK, .round = 6, .key = {.kind = ROUND_KEY_ADDRESS, .round = 5}};
    struct round_question question = round_question_of(&effect);
    struct store_reply reply = {.kind = STORE_REPLY_BYTE, .byte = STORE_NOT_READY};
    struct round_answer answer;
    assert_int_equal(round_answer_read(&question, &reply, &answer), FAILURE_NONE);
    assert_int_equal(answer.event.kind, ROUND_EVENT_CHECKED);
    assert_int_equal(answer.event.round, 6);
    assert_int_equal(answer.event.key.kind, ROUND_KEY_ADDRESS);
    assert_int_equal(answer.event.key.round, 5);
    assert_false(answer.event.is_present);
    round_answer_clear(&answer);
}

TEST(address_and_ranks_are_read_together) {
    CLEARED_BY(round_answer_clear)
    struct round_answer answer =
        read_list(&world, (const char *[]){"node0", "39419", "[1, 3, 0, 2]"}, 3);
    const struct rank_assignment expected = {1, 3, 0, 2};
    assert_int_equal(answer.event.kind, ROUND_EVENT_VALUES);
    assert_string_equal(answer.event.values.address, "node0");
    assert_int_equal(answer.event.values.port, 39419);
    assert_true(answer.event.values.has_ranks);
    assert_memory_equal(&answer.event.values.ranks, &expected, sizeof expected);
}

TEST(ranks_may_be_read_alone) {
    const struct round_question question = {ROUND_EFFECT_GET, ROUND_OF_FIXED_NODES,
        {ROUND_KEY_ASSIGNED_RANKS, ROUND_OF_FIXED_NODES, 1}};
    struct round_answer answer = read_list(&question, (const char *[]){"[1, 3, 0, 2]"}, 1);
    assert_true(answer.event.values.has_ranks);
    assert_int_equal(answer.event.values.ranks.world_size, 3);
    round_answer_clear(&answer);
    answer = read_list(&question, (const char *[]){"[1]"}, 1);
    assert_false(answer.event.values.has_ranks);
    round_answer_clear(&answer);
}

static const struct round_question decision = {
    ROUND_EFFECT_GET, ROUND_OF_FIXED_NODES, {.kind = ROUND_KEY_END, .round = 3}};

TEST(a_decision_is_read_as_text) {
    CLEARED_BY(round_answer_clear)
    struct round_answer answer =
        read_list(&decision, (const char *[]){"failed 2147483647 signal 64"}, 1);
    assert_int_equal(answer.event.kind, ROUND_EVENT_VALUES);
    assert_int_equal(answer.event.key.round, 3);
    assert_string_equal(answer.event.values.decision, "failed 2147483647 signal 64");
}

TEST(a_publication_names_its_owner) {
    const struct round_question question = {ROUND_EFFECT_GET, 1, {.kind = ROUND_KEY_PUBLICATION}};
    CLEARED_BY(round_answer_clear)
    struct round_answer answer =
        read_list(&question, (const char *[]){"node0_7_0", "node0", "1"}, 3);
    assert_string_equal(answer.event.values.publisher, "node0_7_0");
    assert_string_equal(answer.event.values.address, "node0");
    assert_int_equal(answer.event.values.port, 1);
}

TEST(what_another_node_wrote_without_sense_is_marked) {
    char endless[1000] = {0};
    memset(endless, 'a', sizeof endless - 1);
    const char *const addresses[] = {"", "two\nlines", endless};
    const char *const ports[] = {"", "0", "65536", "-1", "http"};
    for (size_t i = 0; i < 3; i++) {
        CLEARED_BY(round_answer_clear)
        struct round_answer answer =
            read_list(&world, (const char *[]){addresses[i], "1", "[0, 1, 0, 1]"}, 3);
        assert_null(answer.event.values.address);
        assert_int_equal(answer.event.values.port, 1);
    }
    for (size_t i = 0; i < 5; i++) {
        CLEARED_BY(round_answer_clear)
        struct round_answer answer =
            read_list(&world, (const char *[]){"node0", ports[i], "[0, 1]"}, 3);
        assert_int_equal(answer.event.values.port, 0);
        assert_false(answer.event.values.has_ranks);
    }
}

/* A round is cleared away key by key. */
TEST(a_value_that_is_not_there_is_said_to_be_gone) {
    const struct round_question roles = {
        ROUND_EFFECT_GET, 0, {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 2}};
    CLEARED_BY(round_answer_clear)
    struct round_answer answer =
        read_list(&world, (const char *[]){"node0", "39419", "[1, 3, 0, 2]"}, 3);
    assert_false(answer.event.is_gone);
    round_answer_clear(&answer);
    answer = read_list(&world, (const char *[]){"", "", "[1, 3, 0, 2]"}, 3);
    assert_true(answer.event.is_gone);
    round_answer_clear(&answer);
    answer = read_list(&roles, (const char *[]){"", ""}, 2);
    assert_true(answer.event.is_gone);
}

TEST(publisher_and_address_are_read_alone_too) {
    const struct round_question publisher = {ROUND_EFFECT_GET, 1, {.kind = ROUND_KEY_PUBLISHER}};
    const struct round_question address = {ROUND_EFFECT_GET, 1, {.kind = ROUND_KEY_ADDRESS}};
    struct round_answer answer = read_list(&publisher, (const char *[]){"node0_7_0"}, 1);
    assert_string_equal(answer.event.values.publisher, "node0_7_0");
    round_answer_clear(&answer);
    answer = read_list(&address, (const char *[]){"node0", "7"}, 2);
    assert_string_equal(answer.event.values.address, "node0");
    assert_int_equal(answer.event.values.port, 7);
    round_answer_clear(&answer);
}

TEST(an_address_is_as_long_as_a_name_may_be) {
    char name[NODE_ADDRESS_SIZE + 1] = {0};
    memset(name, 'a', NODE_ADDRESS_SIZE);
    struct round_answer answer = read_list(&world, (const char *[]){name, "1", "[0, 1, 0, 1]"}, 3);
    assert_null(answer.event.values.address);
    round_answer_clear(&answer);
    answer = read_list(&world, (const char *[]){name + 1, "1", "[0, 1, 0, 1]"}, 3);
    assert_string_equal(answer.event.values.address, name + 1);
    round_answer_clear(&answer);
}

TEST(role_infos_are_read_one_by_one) {
    const struct round_question question = {
        ROUND_EFFECT_GET, 0, {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 2}};
    CLEARED_BY(round_answer_clear)
    struct round_answer answer = read_list(&question,
        (const char *[]){"{\"role\": \"default\", \"rank\": 0, \"local_world_size\": 1}", "[]"}, 2);
    assert_int_equal(answer.event.kind, ROUND_EVENT_ROLE_INFOS);
    assert_int_equal(answer.event.role_infos.count, 2);
    assert_string_equal(answer.event.role_infos.infos[0].role, "default");
    assert_int_equal(answer.event.role_infos.infos[0].muster_version, 0);
    assert_null(answer.event.role_infos.infos[1].role);
}

TEST(role_info_survives_the_way_through_the_store) {
    const struct round_question question = {
        ROUND_EFFECT_GET, 0, {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 1}};
    struct owned_request request = build((struct round_effect){.kind = ROUND_EFFECT_SET_ROLE_INFO,
        .key = {.kind = ROUND_KEY_ROLE_INFO, .node = 3},
        .node = {"r\303\266le \"x\"", 8},
        .addresses = "10.0.0.7 fd00::7"});
    CLEARED_BY(text_clear) struct text value = {0};
    text_append_bytes(
        &value, (const char *)request.request.value.data, request.request.value.length);
    struct round_answer answer = read_list(&question, (const char *[]){text_string(&value)}, 1);
    const struct role_info *info = answer.event.role_infos.infos;
    assert_string_equal(info->role, "r\303\266le \"x\"");
    assert_int_equal(info->local_world_size, 8);
    assert_int_equal(info->group_rank, 3);
    assert_int_equal(info->muster_version, 1);
    assert_string_equal(info->addresses, "10.0.0.7 fd00::7");
    round_answer_clear(&answer);
    owned_request_clear(&request);
}

TEST(odd_role_infos_are_none) {
    static const char *const texts[] = {"[", "[]", "{}", "{\"role\": 1}",
        "{\"role\": \"a\", \"rank\": \"0\", \"local_world_size\": 1}",
        "{\"role\": \"a\", \"rank\": 0}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1, \"muster\": true}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1, \"addresses\": 1}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1, \"addresses\": \"a host\"}",
        "{\"role\": \"a\", \"rank\": -1, \"local_world_size\": 1}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 0}",
        "{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 1000000}"};
    const struct round_question question = {
        ROUND_EFFECT_GET, 0, {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 1}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct round_answer answer = read_list(&question, &texts[i], 1);
        assert_null(answer.event.role_infos.infos[0].role);
        round_answer_clear(&answer);
    }
}

TEST(odd_ranks_are_none) {
    static const char *const texts[] = {"[0, 2", "{}", "[0, 2, 0]", "[0, 2, 0, 2, 0]",
        "[0, 2, 0, \"2\"]", "[2, 2, 0, 2]", "[0, 2, 2, 2]", "[0, 2, 0, 3]", "[0, 2, 0.0, 2]",
        "[-1, 2, 0, 2]", "[0, 99999999999, 0, 2]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct round_answer answer = read_list(&world, (const char *[]){"node0", "1", texts[i]}, 3);
        assert_false(answer.event.values.has_ranks);
        round_answer_clear(&answer);
    }
}

static void check_refused(struct round_question question, struct store_reply reply) {
    struct round_answer answer;
    assert_int_equal(round_answer_read(&question, &reply, &answer), FAILURE_PROTOCOL);
}

/* Only Muster's agents write there. */
TEST(a_claim_is_read_as_text_or_is_none) {
    static const enum round_key_kind kinds[] = {ROUND_KEY_CLAIM, ROUND_KEY_RIVAL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct round_question question = {ROUND_EFFECT_GET, ROUND_OF_FIXED_NODES,
            {.kind = kinds[i], .round = ROUND_OF_FIXED_NODES, .node = 1}};
        struct round_answer answer = read_list(&question, (const char *[]){"b_1_2"}, 1);
        assert_string_equal(answer.event.values.claim, "b_1_2");
        round_answer_clear(&answer);
        answer = read_list(&question, (const char *[]){""}, 1);
        assert_true(answer.event.is_gone);
        assert_null(answer.event.values.claim);
        round_answer_clear(&answer);
        answer = read_list(&question, (const char *[]){"b\033[2J_1_2"}, 1);
        assert_null(answer.event.values.claim);
        round_answer_clear(&answer);
    }
}

TEST(a_decision_that_no_agent_writes_is_refused) {
    static const char *const texts[] = {
        "", "two\nlines", "a value that no agent of any kind ever writes"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct slice slice = slice_from_string(texts[i]);
        check_refused(
            decision, (struct store_reply){.kind = STORE_REPLY_BLOBS, .list = {&slice, 1}});
    }
}

TEST(a_reply_no_store_gives_is_refused) {
    struct slice slices[4] = {{0}};
    check_refused(world, (struct store_reply){.kind = STORE_REPLY_INTEGER});
    check_refused(world, (struct store_reply){.kind = STORE_REPLY_BLOBS, .list = {slices, 2}});
    check_refused((struct round_question){.kind = ROUND_EFFECT_GET,
                      .key = {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = 3}},
        (struct store_reply){.kind = STORE_REPLY_BLOBS, .list = {slices, 4}});
    check_refused(
        (struct round_question){.kind = ROUND_EFFECT_GET, .key = {.kind = ROUND_KEY_NUM_MEMBERS}},
        (struct store_reply){.kind = STORE_REPLY_BLOBS, .list = {slices, 1}});
    check_refused((struct round_question){.kind = ROUND_EFFECT_WAIT},
        (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = STORE_WAIT_CANCELLED});
}
