/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "core/store/store_presence.h"

#define PREFIX "/job/presence/"

struct door {
    struct store_presence *presence;
    struct store_presence_holder first;
    struct store_presence_holder second;
};

static int setup(void **state) {
    struct door *door = calloc(1, sizeof *door);
    door->presence = store_presence_new(PREFIX);
    *state = door;
    return 0;
}

static int teardown(void **state) {
    struct door *door = *state;
    store_presence_free(door->presence);
    free(door);
    return 0;
}

static struct store_request set_of(const char *key, const char *value) {
    return (struct store_request){
        .operation = STORE_SET, .key = slice_from_string(key), .value = slice_from_string(value)};
}

static const struct store_presence_key *set(
    struct door *door, struct store_presence_holder *holder, const char *key, const char *value) {
    struct store_request request = set_of(key, value);
    assert_null(store_presence_objection(door->presence, &request));
    assert_null(store_presence_refusal(door->presence, holder, &request));
    return store_presence_note(door->presence, holder, &request);
}

static void delete_key(struct door *door, struct store_presence_holder *holder, const char *key) {
    struct store_request request = {.operation = STORE_DELETE, .key = slice_from_string(key)};
    assert_null(store_presence_refusal(door->presence, holder, &request));
    assert_null(store_presence_note(door->presence, holder, &request));
}

static void expect_gone(struct door *door, const char *name, const char *value) {
    struct store_presence_key *key = store_presence_take_gone(door->presence);
    assert_non_null(key);
    assert_string_equal(key->name, name);
    assert_string_equal(key->value, value);
    assert_memory_equal(key->raw_key, PREFIX, strlen(PREFIX));
    assert_string_equal(key->raw_key + strlen(PREFIX), name);
    store_presence_key_free(key);
}

static void expect_nobody_gone(struct door *door) {
    assert_null(store_presence_take_gone(door->presence));
}

TEST_WITH(end_of_the_connection_ends_all_its_keys_with_their_last_values, setup, teardown) {
    struct door *door = *state;
    set(door, &door->first, PREFIX "a", "1");
    set(door, &door->first, PREFIX "b", "2");
    set(door, &door->second, PREFIX "c", "3");
    set(door, &door->first, PREFIX "a", "4");
    store_presence_leave(door->presence, &door->first);
    expect_gone(door, "a", "4");
    expect_gone(door, "b", "2");
    expect_nobody_gone(door);
    assert_null(door->first.first);
    assert_null(store_presence_find(door->presence, "a"));
    assert_ptr_equal(store_presence_find(door->presence, "c"), &door->second);
}

static const enum store_operation writing[] = {STORE_SET, STORE_COMPARE_SET, STORE_ADD,
    STORE_DELETE, STORE_APPEND, STORE_BARRIER, STORE_MULTI_SET};
static const enum store_operation others[] = {STORE_GET, STORE_CHECK, STORE_WAIT, STORE_MULTI_GET,
    STORE_QUEUE_PUSH, STORE_QUEUE_POP, STORE_QUEUE_LENGTH, STORE_PING, STORE_LIST_KEYS};

#define LENGTH_OF(array) (sizeof(array) / sizeof(array)[0])

/* Whether that operation on the key is refused; of several keys it is the last one. */
static bool is_refused(struct door *door, const struct store_presence_holder *holder,
    enum store_operation operation, const char *key) {
    const struct slice keys[] = {slice_from_string("/k"), slice_from_string(key)};
    bool is_multi = operation == STORE_MULTI_SET || operation == STORE_MULTI_GET ||
                    operation == STORE_CHECK || operation == STORE_WAIT;
    struct store_request request = {.operation = operation, .key = keys[1]};
    if (is_multi) {
        request = (struct store_request){
            .operation = operation, .keys = keys, .values = keys, .count = LENGTH_OF(keys)};
    }
    return store_presence_refusal(door->presence, holder, &request) != NULL;
}

TEST_WITH(only_its_own_connection_writes_a_bound_key, setup, teardown) {
    struct door *door = *state;
    set(door, &door->first, PREFIX "a", "1");
    for (size_t i = 0; i < LENGTH_OF(writing); i++) {
        assert_true(is_refused(door, &door->second, writing[i], PREFIX "a"));
        assert_false(is_refused(door, &door->first, writing[i], PREFIX "a"));
        assert_false(is_refused(door, &door->second, writing[i], PREFIX "b"));
        assert_false(is_refused(door, &door->second, writing[i], "/a"));
    }
    for (size_t i = 0; i < LENGTH_OF(others); i++) {
        assert_false(is_refused(door, &door->second, others[i], PREFIX "a"));
    }
}

TEST_WITH(no_client_writes_the_key_that_says_that_presence_is_served, setup, teardown) {
    struct door *door = *state;
    for (size_t i = 0; i < LENGTH_OF(writing); i++) {
        assert_true(is_refused(door, &door->first, writing[i], PREFIX STORE_PRESENCE_SERVED));
    }
    assert_false(is_refused(door, &door->first, STORE_CHECK, PREFIX STORE_PRESENCE_SERVED));
}

TEST_WITH(delete_by_its_own_connection_is_a_goodbye, setup, teardown) {
    struct door *door = *state;
    set(door, &door->first, PREFIX "a", "1");
    delete_key(door, &door->first, PREFIX "a");
    assert_null(store_presence_find(door->presence, "a"));
    store_presence_leave(door->presence, &door->first);
    expect_nobody_gone(door);
    set(door, &door->first, PREFIX "a", "again");
    store_presence_leave(door->presence, &door->first);
    expect_gone(door, "a", "again");
}

TEST_WITH(delete_of_an_unbound_key_changes_nothing, setup, teardown) {
    struct door *door = *state;
    set(door, &door->first, PREFIX "a", "1");
    delete_key(door, &door->second, PREFIX "unknown");
    store_presence_leave(door->presence, &door->second);
    expect_nobody_gone(door);
    store_presence_leave(door->presence, &door->first);
    expect_gone(door, "a", "1");
}

TEST_WITH(other_keys_and_other_operations_bind_nobody, setup, teardown) {
    struct door *door = *state;
    assert_null(set(door, &door->first, "/job/presence", "1"));
    assert_null(set(door, &door->first, "/other", "1"));
    struct store_request request = set_of(PREFIX "a", "1");
    const enum store_operation operations[] = {
        STORE_APPEND, STORE_ADD, STORE_COMPARE_SET, STORE_GET};
    for (size_t i = 0; i < LENGTH_OF(operations); i++) {
        request.operation = operations[i];
        assert_null(store_presence_note(door->presence, &door->first, &request));
    }
    assert_null(door->first.first);
}

TEST_WITH(served_key_follows_the_prefix, setup, teardown) {
    struct door *door = *state;
    assert_string_equal(store_presence_served_key(door->presence), PREFIX "served");
}

TEST(without_a_prefix_no_key_tells_who_is_there) {
    struct store_presence_holder holder = {0};
    struct store_presence *presence = store_presence_new(NULL);
    struct store_request request = set_of("/a", "1");
    assert_null(store_presence_objection(presence, &request));
    assert_null(store_presence_note(presence, &holder, &request));
    assert_string_equal(store_presence_served_key(presence), "");
    store_presence_free(presence);
}

static bool is_objected_to(struct door *door, struct slice key, struct slice value) {
    struct store_request request = {.operation = STORE_SET, .key = key, .value = value};
    return store_presence_objection(door->presence, &request) != NULL;
}

TEST_WITH(names_and_values_have_ceilings, setup, teardown) {
    struct door *door = *state;
    uint8_t text[1024];
    memset(text, 'x', sizeof text);
    memcpy(text, PREFIX, strlen(PREFIX));
    struct slice value = slice_from_string("v");
    size_t longest = strlen(PREFIX) + STORE_PRESENCE_NAME_BYTES;
    assert_false(is_objected_to(door, (struct slice){text, longest}, value));
    assert_true(is_objected_to(door, (struct slice){text, longest + 1}, value));
    assert_true(is_objected_to(door, slice_from_string(PREFIX), value));
    struct slice key = slice_from_string(PREFIX "a");
    assert_false(is_objected_to(door, key, (struct slice){text, STORE_PRESENCE_VALUE_BYTES}));
    assert_true(is_objected_to(door, key, (struct slice){text, STORE_PRESENCE_VALUE_BYTES + 1}));
    assert_false(is_objected_to(door, key, (struct slice){NULL, 0}));
}

TEST_WITH(names_and_values_are_text, setup, teardown) {
    struct door *door = *state;
    static const uint8_t name[] = PREFIX "a\0b";
    static const uint8_t value[] = {'a', 0, 'b'};
    assert_true(
        is_objected_to(door, (struct slice){name, sizeof name - 1}, slice_from_string("v")));
    assert_true(is_objected_to(door, slice_from_string(PREFIX "a"), (struct slice){value, 3}));
}

TEST_WITH(number_of_keys_has_a_ceiling, setup, teardown) {
    struct door *door = *state;
    char key[64];
    for (size_t i = 0; i < STORE_PRESENCE_KEYS; i++) {
        snprintf(key, sizeof key, PREFIX "%zu", i);
        set(door, &door->first, key, "");
    }
    assert_true(is_objected_to(door, slice_from_string(PREFIX "more"), slice_from_string("")));
    assert_false(is_objected_to(door, slice_from_string(PREFIX "7"), slice_from_string("again")));
    delete_key(door, &door->first, PREFIX "8");
    assert_false(is_objected_to(door, slice_from_string(PREFIX "more"), slice_from_string("")));
}

TEST_WITH(what_is_gone_need_not_be_taken, setup, teardown) {
    struct door *door = *state;
    set(door, &door->first, PREFIX "a", "1");
    set(door, &door->second, PREFIX "b", "1");
    store_presence_leave(door->presence, &door->first);
}
