/* SPDX-License-Identifier: BSD-3-Clause */
/* A store table with a few clients, short functions for requests, and assertions on the effects of
 * a step. */
#ifndef MUSTER_TESTS_STORE_FIXTURE_H
#define MUSTER_TESTS_STORE_FIXTURE_H

#include "unit.h"

#include "core/store/store_table.h"

#define STORE_CLIENTS 8
#define KEYS(...)                                                                                  \
    (const struct slice[]){__VA_ARGS__},                                                           \
        sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)
#define S(text)                                                                                    \
    (struct slice) {                                                                               \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

struct store_fixture {
    struct store_table *table;
    struct store_effects effects;
    struct store_connection clients[STORE_CLIENTS];
};

static inline void fixture_init(struct store_fixture *fixture, size_t memory_limit) {
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = memory_limit;
    *fixture = (struct store_fixture){.table = store_table_new(&limits)};
}

static inline int store_setup(void **state) {
    struct store_fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL) {
        return -1;
    }
    fixture_init(fixture, (size_t)1 << 24);
    *state = fixture;
    return 0;
}

static inline void fixture_clear(struct store_fixture *fixture) {
    store_table_free(fixture->table);
    store_effects_clear(&fixture->effects);
}

static inline int store_teardown(void **state) {
    fixture_clear(*state);
    free(*state);
    return 0;
}

#define STORE_TEST(function) TEST_WITH(function, store_setup, store_teardown)

static inline void apply(
    struct store_fixture *fixture, int client, const struct store_request *request) {
    store_effects_reset(&fixture->effects);
    store_table_apply(fixture->table, &fixture->clients[client], request, &fixture->effects);
}

static inline void apply_key(
    struct store_fixture *fixture, int client, enum store_operation operation, struct slice key) {
    apply(fixture, client, &(struct store_request){.operation = operation, .key = key});
}

static inline void apply_value(struct store_fixture *fixture, int client,
    enum store_operation operation, struct slice key, struct slice value) {
    apply(fixture, client,
        &(struct store_request){.operation = operation, .key = key, .value = value});
}

static inline void apply_number(struct store_fixture *fixture, int client,
    enum store_operation operation, struct slice key, int64_t number) {
    apply(fixture, client,
        &(struct store_request){.operation = operation, .key = key, .number = number});
}

static inline void apply_keys(struct store_fixture *fixture, int client,
    enum store_operation operation, const struct slice *keys, size_t count) {
    apply(fixture, client,
        &(struct store_request){.operation = operation, .keys = keys, .count = count});
}

static inline void apply_compare_set(struct store_fixture *fixture, int client, struct slice key,
    struct slice expected, struct slice desired) {
    apply(fixture, client,
        &(struct store_request){
            .operation = STORE_COMPARE_SET, .key = key, .expected = expected, .value = desired});
}

static inline void assert_silent(const struct store_fixture *fixture) {
    assert_int_equal(fixture->effects.count, 0);
}

/* Checks that effect number `index` is a reply of that kind to that client. */
static inline const struct store_reply *assert_reply(
    const struct store_fixture *fixture, size_t index, int client, enum store_reply_kind kind) {
    assert_true(index < fixture->effects.count);
    const struct store_effect *effect = &fixture->effects.items[index];
    assert_int_equal(effect->kind, STORE_EFFECT_REPLY);
    assert_ptr_equal(effect->connection, &fixture->clients[client]);
    assert_int_equal(effect->reply.kind, kind);
    return &effect->reply;
}

static inline void assert_byte(
    const struct store_fixture *fixture, size_t index, int client, uint8_t byte) {
    assert_int_equal(assert_reply(fixture, index, client, STORE_REPLY_BYTE)->byte, byte);
}

/* Checks that the only effect is this integer for that client. */
static inline void assert_integer(
    const struct store_fixture *fixture, int client, int64_t expected) {
    assert_int_equal(fixture->effects.count, 1);
    int64_t actual = assert_reply(fixture, 0, client, STORE_REPLY_INTEGER)->integer;
    assert_true(actual == expected);
}

/* Checks that the only effect is this blob for that client. */
static inline void assert_blob(
    const struct store_fixture *fixture, int client, struct slice expected) {
    assert_int_equal(fixture->effects.count, 1);
    assert_true(slice_equals(assert_reply(fixture, 0, client, STORE_REPLY_BLOB)->blob, expected));
}

static inline void assert_value(
    struct store_fixture *fixture, struct slice key, struct slice expected) {
    apply_key(fixture, 7, STORE_GET, key);
    assert_blob(fixture, 7, expected);
}

/* How many keys have a value. */
static inline int64_t count_keys(struct store_fixture *fixture) {
    apply(fixture, 7, &(struct store_request){.operation = STORE_COUNT_KEYS});
    return assert_reply(fixture, 0, 7, STORE_REPLY_INTEGER)->integer;
}

/* Checks that the only effect closes this client for this reason. */
static inline void assert_closed(
    const struct store_fixture *fixture, int client, const char *reason) {
    assert_int_equal(fixture->effects.count, 1);
    const struct store_effect *effect = &fixture->effects.items[0];
    assert_int_equal(effect->kind, STORE_EFFECT_CLOSE);
    assert_ptr_equal(effect->connection, &fixture->clients[client]);
    assert_non_null(strstr(effect->reason, reason));
}

#endif
