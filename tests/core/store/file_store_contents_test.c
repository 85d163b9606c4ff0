/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/file_store_contents.h"

struct fixture {
    struct file_store_contents *contents;
    struct file_store_answer answer;
};

static void set_up(struct fixture *fixture) {
    static const struct file_store_limits limits = {
        .key_bytes = 64, .value_bytes = 100, .entries = 10, .memory_bytes = 100000};
    *fixture = (struct fixture){.contents = file_store_contents_new(&limits)};
}

/* With room for little. */
static void set_up_small(struct fixture *fixture) {
    static const struct file_store_limits limits = {
        .key_bytes = 8, .value_bytes = 100, .entries = 3, .memory_bytes = 1000};
    *fixture = (struct fixture){.contents = file_store_contents_new(&limits)};
}

static void tear_down(struct fixture *fixture) {
    file_store_answer_clear(&fixture->answer);
    file_store_contents_free(fixture->contents);
}

/* Asks, and takes the appended records as if they had been written to the file. */
static enum failure_code ask(struct fixture *fixture, struct store_request request) {
    struct file_store_answer *answer = &fixture->answer;
    enum failure_code code = file_store_answer_find(answer, fixture->contents, &request, false);
    for (size_t i = 0; i < answer->record_count; i++) {
        assert_int_equal(
            file_store_contents_take(fixture->contents, &answer->records[i]), FAILURE_NONE);
    }
    return code;
}

static void set(struct fixture *fixture, const char *key, const char *value) {
    assert_int_equal(ask(fixture, (struct store_request){.operation = STORE_SET,
                                      .key = slice_from_string(key),
                                      .value = slice_from_string(value)}),
        FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.kind, STORE_REPLY_NONE);
}

static int64_t add(struct fixture *fixture, const char *key, int64_t number) {
    assert_int_equal(ask(fixture, (struct store_request){.operation = STORE_ADD,
                                      .key = slice_from_string(key),
                                      .number = number}),
        FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.kind, STORE_REPLY_INTEGER);
    return fixture->answer.reply.integer;
}

static void assert_compare_set(struct fixture *fixture, const char *key, const char *expected,
    const char *desired, const char *reply, bool is_stored) {
    struct store_request request = {.operation = STORE_COMPARE_SET,
        .key = slice_from_string(key),
        .expected = slice_from_string(expected),
        .value = slice_from_string(desired)};
    assert_int_equal(
        file_store_answer_find(&fixture->answer, fixture->contents, &request, false), FAILURE_NONE);
    assert_true(slice_equals(fixture->answer.reply.blob, slice_from_string(reply)));
    assert_int_equal(fixture->answer.record_count, is_stored ? 1 : 0);
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
}

static void assert_value(struct fixture *fixture, const char *key, const char *value) {
    assert_int_equal(
        ask(fixture, (struct store_request){.operation = STORE_GET, .key = slice_from_string(key)}),
        FAILURE_NONE);
    assert_true(slice_equals(fixture->answer.reply.blob, slice_from_string(value)));
    assert_int_equal(fixture->answer.record_count, 0);
}

static uint8_t check(struct fixture *fixture, const char *first, const char *second) {
    const struct slice keys[] = {slice_from_string(first), slice_from_string(second)};
    assert_int_equal(
        ask(fixture, (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 2}),
        FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.kind, STORE_REPLY_BYTE);
    return fixture->answer.reply.byte;
}

static int64_t count(struct fixture *fixture) {
    assert_int_equal(
        ask(fixture, (struct store_request){.operation = STORE_COUNT_KEYS}), FAILURE_NONE);
    return fixture->answer.reply.integer;
}

FIXTURE_TEST(counters_count_from_nothing_and_from_text) {
    assert_int_equal(add(fixture, "/n", 3), 3);
    assert_int_equal(add(fixture, "/n", -5), -2);
    assert_value(fixture, "/n", "-2");
    set(fixture, "/n", "12abc");
    assert_int_equal(add(fixture, "/n", 1), 13);
    set(fixture, "/n", "");
    assert_int_equal(add(fixture, "/n", 1), 1);
    set(fixture, "/n", "9223372036854775807");
    assert_int_equal(add(fixture, "/n", 1), INT64_MIN);
}

FIXTURE_TEST(what_is_no_number_is_not_counted_on) {
    set(fixture, "/n", "many");
    struct store_request request = {
        .operation = STORE_ADD, .key = slice_from_string("/n"), .number = 1};
    assert_int_equal(ask(fixture, request), FAILURE_PROTOCOL);
    assert_non_null(fixture->answer.reason);
    assert_int_equal(fixture->answer.record_count, 0);
    assert_value(fixture, "/n", "many");
}

FIXTURE_TEST(compare_set_answers_as_pytorch_does) {
    assert_compare_set(fixture, "/x", "a", "b", "a", false);
    assert_int_equal(check(fixture, "/x", "/x"), STORE_NOT_READY);
    assert_compare_set(fixture, "/x", "", "1", "1", true);
    assert_compare_set(fixture, "/x", "2", "3", "1", false);
    assert_compare_set(fixture, "/x", "", "3", "1", false);
    assert_compare_set(fixture, "/x", "2", "1", "1", false);
    assert_compare_set(fixture, "/x", "1", "", "", true);
    assert_compare_set(fixture, "/x", "", "new", "new", true);
}

FIXTURE_TEST(keys_are_ready_when_all_exist) {
    set(fixture, "/a", "");
    assert_int_equal(check(fixture, "/a", "/b"), STORE_NOT_READY);
    set(fixture, "/b", "2");
    assert_int_equal(check(fixture, "/a", "/b"), STORE_READY);
}

FIXTURE_TEST(waits_until_every_key_exists) {
    const struct slice keys[] = {slice_from_string("/a"), slice_from_string("/b")};
    struct store_request request = {.operation = STORE_WAIT, .keys = keys, .count = 2};
    set(fixture, "/b", "2");
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
    assert_true(fixture->answer.is_waiting);
    set(fixture, "/a", "1");
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
    assert_false(fixture->answer.is_waiting);
    assert_int_equal(fixture->answer.reply.byte, STORE_STOP_WAITING);
}

FIXTURE_TEST(a_get_may_wait_for_its_keys_first) {
    struct slice key = slice_from_string("/a");
    struct store_request one = {.operation = STORE_GET, .key = key};
    struct store_request several = {.operation = STORE_MULTI_GET, .keys = &key, .count = 1};
    struct file_store_answer *answer = &fixture->answer;
    assert_int_equal(file_store_answer_find(answer, fixture->contents, &one, true), FAILURE_NONE);
    assert_true(answer->is_waiting);
    assert_int_equal(
        file_store_answer_find(answer, fixture->contents, &several, true), FAILURE_NONE);
    assert_true(answer->is_waiting);
    set(fixture, "/a", "1");
    assert_int_equal(file_store_answer_find(answer, fixture->contents, &one, true), FAILURE_NONE);
    assert_false(answer->is_waiting);
    assert_true(slice_equals(answer->reply.blob, slice_from_string("1")));
}

FIXTURE_TEST(deleting_tells_whether_there_was_something) {
    struct store_request request = {.operation = STORE_DELETE, .key = slice_from_string("/k")};
    set(fixture, "/k", "");
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.integer, 1);
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.integer, 0);
    assert_int_equal(fixture->answer.record_count, 0);
}

FIXTURE_TEST(appending_joins_values) {
    struct store_request request = {.operation = STORE_APPEND,
        .key = slice_from_string("/k"),
        .value = slice_from_string("ab")};
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
    assert_value(fixture, "/k", "abab");
}

FIXTURE_TEST(several_keys_are_set_and_got_together) {
    const struct slice keys[] = {
        slice_from_string("/a"), slice_from_string("/b"), slice_from_string("/missing")};
    const struct slice values[] = {slice_from_string("1"), slice_from_string("2")};
    assert_int_equal(
        ask(fixture,
            (struct store_request){
                .operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 2}),
        FAILURE_NONE);
    assert_int_equal(fixture->answer.record_count, 2);
    assert_int_equal(
        ask(fixture,
            (struct store_request){.operation = STORE_MULTI_GET, .keys = keys, .count = 3}),
        FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.kind, STORE_REPLY_BLOBS);
    assert_int_equal(fixture->answer.reply.list.count, 3);
    assert_true(slice_equals(fixture->answer.reply.list.items[1], values[1]));
    assert_int_equal(fixture->answer.reply.list.items[2].length, 0);
}

FIXTURE_TEST(keys_are_counted_and_listed) {
    set(fixture, "refcount/", "1");
    set(fixture, "/k", "v");
    set(fixture, "/k", "w");
    assert_int_equal(count(fixture), 2);
    assert_int_equal(
        ask(fixture, (struct store_request){.operation = STORE_LIST_KEYS}), FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.kind, STORE_REPLY_KEYS);
    assert_int_equal(fixture->answer.reply.list.count, 2);
    const struct slice *keys = fixture->answer.reply.list.items;
    bool is_first = slice_equals(keys[0], slice_from_string("/k"));
    assert_true(slice_equals(keys[is_first ? 0 : 1], slice_from_string("/k")));
    assert_true(slice_equals(keys[is_first ? 1 : 0], slice_from_string("refcount/")));
}

FIXTURE_TEST(a_ping_gives_its_nonce_back) {
    assert_int_equal(
        ask(fixture, (struct store_request){.operation = STORE_PING, .nonce = 77}), FAILURE_NONE);
    assert_int_equal(fixture->answer.reply.kind, STORE_REPLY_NONCE);
    assert_int_equal(fixture->answer.reply.nonce, 77);
}

FIXTURE_TEST(queues_and_barriers_are_not_offered) {
    static const enum store_operation missing[] = {
        STORE_QUEUE_PUSH, STORE_QUEUE_POP, STORE_QUEUE_LENGTH, STORE_BARRIER, STORE_CANCEL_WAIT};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        struct store_request request = {.operation = missing[i], .key = slice_from_string("/q")};
        assert_int_equal(ask(fixture, request), FAILURE_UNSUPPORTED);
        assert_int_equal(
            file_store_answer_find(&fixture->answer, fixture->contents, &request, true),
            FAILURE_UNSUPPORTED);
        assert_false(fixture->answer.is_waiting);
    }
}

FIXTURE_TEST(what_finds_no_room_is_refused) {
    char longer[102];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    struct store_request request = {
        .operation = STORE_SET, .key = slice_from_string("/k"), .value = slice_from_string(longer)};
    assert_int_equal(ask(fixture, request), FAILURE_LIMIT);
    assert_int_equal(fixture->answer.record_count, 0);
    assert_non_null(fixture->answer.reason);
}

TEST(only_what_may_append_asks_for_a_writers_lock) {
    assert_true(file_store_request_writes(STORE_SET));
    assert_true(file_store_request_writes(STORE_COMPARE_SET));
    assert_true(file_store_request_writes(STORE_DELETE));
    assert_false(file_store_request_writes(STORE_GET));
    assert_false(file_store_request_writes(STORE_WAIT));
    assert_false(file_store_request_writes(STORE_QUEUE_PUSH));
}

/* The contents, one record after the other. */

static struct file_store_record removal(const char *key) {
    return (struct file_store_record){.key = slice_from_string(key), .is_removal = true};
}

static enum failure_code take(
    struct file_store_contents *contents, const char *key, const char *value) {
    struct file_store_record record = {
        .key = slice_from_string(key), .value = slice_from_string(value)};
    return file_store_contents_take(contents, &record);
}

FIXTURE_TEST_AFTER(what_passes_a_ceiling_changes_nothing, set_up_small(&fixture)) {
    struct file_store_contents *contents = fixture->contents;
    char longer[102];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(take(contents, "/k", "one"), FAILURE_NONE);
    assert_int_equal(take(contents, "/k", longer), FAILURE_LIMIT);
    assert_int_equal(take(contents, "/long-key", "v"), FAILURE_LIMIT);
    assert_value(fixture, "/k", "one");
    assert_int_equal(take(contents, "/l", "v"), FAILURE_NONE);
    assert_int_equal(take(contents, "/m", "v"), FAILURE_NONE);
    assert_int_equal(take(contents, "/n", "v"), FAILURE_LIMIT);
    assert_int_equal(take(contents, "/m", "w"), FAILURE_NONE);
    assert_int_equal(count(fixture), 3);
}

FIXTURE_TEST_AFTER(memory_of_replaced_and_removed_values_is_free_again, set_up_small(&fixture)) {
    struct file_store_contents *contents = fixture->contents;
    char value[91];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    struct file_store_record removed = removal("/k");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(take(contents, "/k", value), FAILURE_NONE);
        assert_int_equal(take(contents, "/k", "v"), FAILURE_NONE);
        assert_int_equal(file_store_contents_take(contents, &removed), FAILURE_NONE);
    }
}

FIXTURE_TEST_AFTER(room_is_asked_for_all_records_together, set_up_small(&fixture)) {
    static const struct slice keys[] = {{(const uint8_t *)"/a", 2}, {(const uint8_t *)"/b", 2},
        {(const uint8_t *)"/c", 2}, {(const uint8_t *)"/d", 2}};
    struct store_request request = {.operation = STORE_MULTI_SET, .keys = keys, .values = keys};
    for (request.count = 3; request.count <= 4; request.count++) {
        assert_int_equal(
            file_store_answer_find(&fixture->answer, fixture->contents, &request, false),
            request.count == 3 ? FAILURE_NONE : FAILURE_LIMIT);
    }
    assert_int_equal(take(fixture->contents, "/f", "6"), FAILURE_NONE);
    request.count = 3;
    assert_int_equal(ask(fixture, request), FAILURE_LIMIT);
    request.count = 2;
    assert_int_equal(ask(fixture, request), FAILURE_NONE);
}
