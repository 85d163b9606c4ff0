/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_key.h"
#include "core/store/store_presence.h"
#include "wire/rendezvous/rendezvous_record_store.h"

#define RECORD "/torch.rendezvous.a job/1"

/* `key` is the only key, or the first of several. */
static void check(struct record_question question, enum store_operation operation, const char *key,
    const char *value, int64_t number) {
    struct owned_request own;
    record_request_build(&question, "a job/1", &own);
    struct slice first = own.request.count > 0 ? own.request.keys[0] : own.request.key;
    assert_int_equal(record_question_operation(question.kind), operation);
    assert_int_equal(own.request.operation, operation);
    assert_true(slice_equals(first, slice_from_string(key)));
    assert_true(slice_equals(own.request.value, slice_from_string(value)));
    assert_int_equal(own.request.number, number);
    owned_request_clear(&own);
}

static void check_expectation(struct record_question question, const char *expected) {
    struct owned_request own;
    record_request_build(&question, "a job/1", &own);
    assert_true(slice_equals(own.request.expected, slice_from_string(expected)));
    owned_request_clear(&own);
}

static void the_record_is_asked_for_as_torchrun_does(void **state) {
    (void)state;
    struct record_question write = {
        .kind = RECORD_QUESTION_WRITE, .value = slice_from_string("new")};
    check((struct record_question){.kind = RECORD_QUESTION_BEGINNING}, STORE_COMPARE_SET, RECORD,
        "Y2FuaW1hZGFt", 0);
    check_expectation((struct record_question){.kind = RECORD_QUESTION_BEGINNING}, "");
    check((struct record_question){.kind = RECORD_QUESTION_RECORD}, STORE_GET, RECORD, "", 0);
    check(write, STORE_COMPARE_SET, RECORD, "new", 0);
    check_expectation(write, ""); /* the key is missing or empty */
    write.expected = slice_from_string("old");
    check_expectation(write, "old");
}

/* Base64 of other programs is read as Python reads it, which skips characters outside the
 * alphabet. */
static void what_a_write_expects_is_any_bytes(void **state) {
    (void)state;
    static const uint8_t bytes[] = {'a', 0, 'b'};
    struct record_question write = {
        .kind = RECORD_QUESTION_WRITE, .value = slice_from_string("new"), .expected = {bytes, 3}};
    struct owned_request own;
    record_request_build(&write, "job", &own);
    assert_true(slice_equals(own.request.expected, write.expected));
    owned_request_clear(&own);
}

static void the_settings_are_compared_with_what_is_there(void **state) {
    (void)state;
    struct record_question settings = {
        .kind = RECORD_QUESTION_SETTINGS, .value = slice_from_string("1:4")};
    check(settings, STORE_COMPARE_SET, RECORD "/muster/settings", "1:4", 0);
    check_expectation(settings, "");
}

static void the_protocol_is_compared_with_what_is_there(void **state) {
    (void)state;
    struct record_question protocol = {
        .kind = RECORD_QUESTION_PROTOCOL, .value = slice_from_string("1 muster 0.2.0")};
    check(protocol, STORE_COMPARE_SET, RECORD "/muster/protocol", "1 muster 0.2.0", 0);
    check_expectation(protocol, "");
    check((struct record_question){.kind = RECORD_QUESTION_REFUSED}, STORE_CHECK,
        RECORD "/muster/presence/served", "", 0);
}

static void changes_are_counted_and_each_has_a_key(void **state) {
    (void)state;
    const char *counter = RECORD "/muster/changes";
    const char *seventh = RECORD "/muster/changed/7";
    check(
        (struct record_question){.kind = RECORD_QUESTION_CHANGE_COUNT}, STORE_ADD, counter, "", 0);
    check((struct record_question){.kind = RECORD_QUESTION_NEW_CHANGE}, STORE_ADD, counter, "", 1);
    check((struct record_question){.kind = RECORD_QUESTION_NEW_WRITE}, STORE_ADD, counter, "", 1);
    check((struct record_question){.kind = RECORD_QUESTION_TELL_CHANGE, .number = 7}, STORE_SET,
        seventh, "", 0);
    check((struct record_question){.kind = RECORD_QUESTION_TELL_WRITE, .number = 7}, STORE_SET,
        seventh, "", 0);
    check((struct record_question){.kind = RECORD_QUESTION_NEXT_CHANGE, .number = 7}, STORE_WAIT,
        seventh, "", 0);
    check((struct record_question){.kind = RECORD_QUESTION_FORGET_CHANGE, .number = 7},
        STORE_DELETE, seventh, "", 0);
}

static void a_server_that_serves_presence_is_asked_for_the_key_it_has(void **state) {
    (void)state;
    struct text prefix = {0};
    rendezvous_key_write_presences("a job/1", &prefix);
    struct store_presence *presence = store_presence_new(text_string(&prefix));
    check((struct record_question){.kind = RECORD_QUESTION_PRESENCE_SERVED}, STORE_CHECK,
        store_presence_served_key(presence), "", 0);
    store_presence_free(presence);
    text_clear(&prefix);
}

static void nodes_show_themselves_and_are_counted(void **state) {
    (void)state;
    struct record_question presence = {
        .kind = RECORD_QUESTION_PRESENCE, .key = "/k", .value = slice_from_string("running")};
    check(presence, STORE_SET, "/k", "running", 0);
    check((struct record_question){.kind = RECORD_QUESTION_DELETE, .key = "/k"}, STORE_DELETE, "/k",
        "", 0);
    check((struct record_question){.kind = RECORD_QUESTION_FINISHED_COUNT, .number = 3}, STORE_ADD,
        RECORD ".3/torchelastic/agent/terminal_state/num_members", "", 0);
    check((struct record_question){.kind = RECORD_QUESTION_ROLL_ANSWER, .number = 3, .node = 1},
        STORE_SET, RECORD ".3/muster/roll/1", "", 0);
}

static void a_roll_waits_for_every_rank(void **state) {
    (void)state;
    struct owned_request own;
    struct record_question roll = {.kind = RECORD_QUESTION_ROLL, .number = 3, .node = 2};
    record_request_build(&roll, "a job/1", &own);
    assert_int_equal(own.request.operation, STORE_WAIT);
    assert_int_equal(own.request.count, 2);
    assert_true(slice_equals(own.request.keys[0], slice_from_string(RECORD ".3/muster/roll/0")));
    assert_true(slice_equals(own.request.keys[1], slice_from_string(RECORD ".3/muster/roll/1")));
    owned_request_clear(&own);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_record_is_asked_for_as_torchrun_does),
    cmocka_unit_test(what_a_write_expects_is_any_bytes),
    cmocka_unit_test(the_settings_are_compared_with_what_is_there),
    cmocka_unit_test(the_protocol_is_compared_with_what_is_there),
    cmocka_unit_test(changes_are_counted_and_each_has_a_key),
    cmocka_unit_test(a_server_that_serves_presence_is_asked_for_the_key_it_has),
    cmocka_unit_test(nodes_show_themselves_and_are_counted),
    cmocka_unit_test(a_roll_waits_for_every_rank),
};

UNIT_TESTS(tests)
