/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/static_rendezvous_store.h"

static const struct static_settings settings = {.node_rank = 1, .node_count = 2, .role = "default"};

static void check_slice(struct slice actual, const char *expected) {
    assert_true(slice_equals(actual, slice_from_string(expected)));
}

static struct owned_request build(struct static_effect effect) {
    struct owned_request request;
    assert_true(static_effect_is_request(&effect));
    static_request_build(&effect, &settings, "none", &request);
    return request;
}

static void a_node_counts_itself_in(void **state) {
    (void)state;
    struct owned_request request =
        build((struct static_effect){.kind = STATIC_EFFECT_ADD, .key = {.kind = STATIC_KEY_INIT}});
    assert_int_equal(request.request.operation, STORE_ADD);
    assert_int_equal(request.request.number, 1);
    check_slice(request.request.key, "init/");
    owned_request_clear(&request);
}

static void a_node_says_who_it_is(void **state) {
    (void)state;
    struct owned_request request = build((struct static_effect){.kind = STATIC_EFFECT_SET_ROLE_INFO,
        .key = {.kind = STATIC_KEY_ROLE_INFO, .node = 1},
        .node = {"default", 1}});
    assert_int_equal(request.request.operation, STORE_SET);
    check_slice(request.request.key, "/none/torchelastic/role_info/1");
    check_slice(request.request.value,
        "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 1, \"muster\": 1}");
    owned_request_clear(&request);
}

static void node_0_waits_for_all_and_asks_all(void **state) {
    (void)state;
    static const enum static_effect_kind kinds[] = {
        STATIC_EFFECT_WAIT, STATIC_EFFECT_GET_ROLE_INFOS};
    static const enum store_operation operations[] = {STORE_WAIT, STORE_MULTI_GET};
    for (size_t i = 0; i < 2; i++) {
        struct owned_request request = build(
            (struct static_effect){.kind = kinds[i], .key = {.kind = STATIC_KEY_ALL_ROLE_INFOS}});
        assert_int_equal(request.request.operation, operations[i]);
        assert_int_equal(request.request.count, 2);
        check_slice(request.request.keys[0], "/none/torchelastic/role_info/0");
        check_slice(request.request.keys[1], "/none/torchelastic/role_info/1");
        owned_request_clear(&request);
    }
}

static void ranks_are_set_behind_the_mark_of_coordination(void **state) {
    (void)state;
    static const struct rank_assignment ranks[] = {{0, 2, 0, 2}, {1, 2, 1, 2}};
    struct static_effect effect = {.kind = STATIC_EFFECT_SET_ASSIGNMENTS,
        .assignments = {.items = ranks, .count = 2, .is_coordinated = true}};
    struct owned_request request = build(effect);
    assert_int_equal(request.request.operation, STORE_MULTI_SET);
    assert_int_equal(request.request.count, 3);
    check_slice(request.request.keys[0], "/none/muster/coordinated");
    check_slice(request.request.keys[2], "/none/torchelastic/assigned_ranks/1");
    check_slice(request.request.values[2], "[1, 2, 1, 2]");
    owned_request_clear(&request);
    effect.assignments.is_coordinated = false;
    request = build(effect);
    assert_int_equal(request.request.count, 2);
    check_slice(request.request.keys[0], "/none/torchelastic/assigned_ranks/0");
    check_slice(request.request.values[0], "[0, 2, 0, 2]");
    owned_request_clear(&request);
}

static void a_decision_is_stored_only_where_there_is_none(void **state) {
    (void)state;
    struct owned_request request = build((struct static_effect){.kind = STATIC_EFFECT_COMPARE_SET,
        .key = {.kind = STATIC_KEY_END, .attempt = 2},
        .value = "restart"});
    assert_int_equal(request.request.operation, STORE_COMPARE_SET);
    check_slice(request.request.key, "/none/muster/end/2");
    check_slice(request.request.value, "restart");
    assert_int_equal(request.request.expected.length, 0);
    owned_request_clear(&request);
}

static void what_is_told_to_the_agent_is_no_request(void **state) {
    (void)state;
    static const enum static_effect_kind kinds[] = {STATIC_EFFECT_CONNECT, STATIC_EFFECT_JOINED,
        STATIC_EFFECT_ARM_TIMER, STATIC_EFFECT_RENEW_WORKER_STORE, STATIC_EFFECT_PEER_FAILED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_false(static_effect_is_request(&(struct static_effect){.kind = kinds[i]}));
        assert_false(static_effect_wants_answer(&(struct static_effect){.kind = kinds[i]}));
    }
}

static struct static_answer read_answer(struct static_effect effect, struct store_reply reply) {
    struct static_answer answer;
    assert_true(static_effect_wants_answer(&effect));
    assert_int_equal(static_answer_read(&effect, &reply, &answer), FAILURE_NONE);
    return answer;
}

static void replies_become_events(void **state) {
    (void)state;
    struct static_answer answer = read_answer((struct static_effect){.kind = STATIC_EFFECT_ADD,
                                                  .key = {.kind = STATIC_KEY_READY, .attempt = 3}},
        (struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = 2});
    assert_int_equal(answer.event.kind, STATIC_EVENT_COUNTED);
    assert_int_equal(answer.event.count, 2);
    assert_int_equal(answer.event.key.attempt, 3);
    static_answer_clear(&answer);

    answer = read_answer((struct static_effect){.kind = STATIC_EFFECT_CHECK},
        (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = STORE_READY});
    assert_int_equal(answer.event.kind, STATIC_EVENT_CHECKED);
    assert_true(answer.event.is_present);
    static_answer_clear(&answer);

    answer = read_answer((struct static_effect){.kind = STATIC_EFFECT_GET},
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = slice_from_string("failed 1")});
    assert_int_equal(answer.event.kind, STATIC_EVENT_VALUE);
    assert_string_equal(answer.event.text, "failed 1");
    static_answer_clear(&answer);

    answer = read_answer((struct static_effect){.kind = STATIC_EFFECT_GET_ASSIGNMENT},
        (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = slice_from_string("[1, 2, 1, 2]")});
    assert_int_equal(answer.event.kind, STATIC_EVENT_ASSIGNMENT);
    assert_int_equal(answer.event.assignment.base_rank, 1);
    static_answer_clear(&answer);

    const struct slice infos[] = {
        slice_from_string("{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 2}"),
        slice_from_string(
            "{\"role\": \"b\", \"rank\": 1, \"local_world_size\": 3, \"muster\": 1}")};
    answer = read_answer((struct static_effect){.kind = STATIC_EFFECT_GET_ROLE_INFOS},
        (struct store_reply){.kind = STORE_REPLY_BLOBS, .list = {.items = infos, .count = 2}});
    assert_int_equal(answer.event.kind, STATIC_EVENT_ROLE_INFOS);
    assert_int_equal(answer.event.role_infos.count, 2);
    assert_string_equal(answer.event.role_infos.infos[1].role, "b");
    assert_int_equal(answer.event.role_infos.infos[0].muster_version, 0);
    static_answer_clear(&answer);
}

static void replies_without_sense_are_refused(void **state) {
    (void)state;
    static const char long_text[] = "a value that no agent of any kind ever writes";
    const struct slice infos[] = {
        slice_from_string("{\"role\": \"a\", \"rank\": 0, \"local_world_size\": 2}"),
        slice_from_string("[]")};
    const struct {
        struct static_effect effect;
        struct store_reply reply;
    } cases[] = {
        {{.kind = STATIC_EFFECT_ADD}, {.kind = STORE_REPLY_BYTE}},
        {{.kind = STATIC_EFFECT_WAIT}, {.kind = STORE_REPLY_BYTE, .byte = STORE_WAIT_CANCELLED}},
        {{.kind = STATIC_EFFECT_GET},
            {.kind = STORE_REPLY_BLOB, .blob = slice_from_string(long_text)}},
        {{.kind = STATIC_EFFECT_GET_ASSIGNMENT},
            {.kind = STORE_REPLY_BLOB, .blob = slice_from_string("[1]")}},
        {{.kind = STATIC_EFFECT_GET_ROLE_INFOS},
            {.kind = STORE_REPLY_BLOBS, .list = {.items = infos, .count = 2}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct static_answer answer;
        assert_int_equal(
            static_answer_read(&cases[i].effect, &cases[i].reply, &answer), FAILURE_PROTOCOL);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_counts_itself_in),
    cmocka_unit_test(a_node_says_who_it_is),
    cmocka_unit_test(node_0_waits_for_all_and_asks_all),
    cmocka_unit_test(ranks_are_set_behind_the_mark_of_coordination),
    cmocka_unit_test(a_decision_is_stored_only_where_there_is_none),
    cmocka_unit_test(what_is_told_to_the_agent_is_no_request),
    cmocka_unit_test(replies_become_events),
    cmocka_unit_test(replies_without_sense_are_refused),
};

TEST_MAIN(tests)
