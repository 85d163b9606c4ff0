/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_table.h"
#include "core/store_fixture.h"

/* Values and counters. */

STORE_TEST(a_large_buffer_is_given_back_when_little_is_left_in_it) {
    struct store_fixture *store = *state;
    uint8_t *large = calloc(1, 100000);
    apply_value(store, 0, STORE_SET, S("/k"), (struct slice){large, 100000});
    assert_true(store_table_memory(store->table) > 100000);
    apply_value(store, 0, STORE_SET, S("/k"), S("short"));
    assert_true(store_table_memory(store->table) < 1000);
    assert_value(store, S("/k"), S("short"));
    free(large);
}

STORE_TEST(compare_set_on_a_missing_key_only_takes_an_empty_expectation) {
    struct store_fixture *store = *state;
    apply_compare_set(store, 0, S("/cs2"), S("zzz"), S("c"));
    assert_blob(store, 0, S("zzz"));
    apply_keys(store, 0, STORE_CHECK, KEYS(S("/cs2")));
    assert_byte(store, 0, 0, STORE_NOT_READY);
    apply_compare_set(store, 0, S("/cs"), S(""), S("a"));
    assert_blob(store, 0, S("a"));
    apply_compare_set(store, 0, S("/cs"), S("a"), S("b"));
    assert_blob(store, 0, S("b"));
    apply_compare_set(store, 0, S("/cs"), S("zzz"), S("c"));
    assert_blob(store, 0, S("b"));
    apply_compare_set(store, 0, S("/cs"), S(""), S("c"));
    assert_blob(store, 0, S("b"));
}

STORE_TEST(appending_creates_and_extends) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_APPEND, S("/ap"), S("x"));
    assert_silent(store);
    for (int i = 0; i < 100; i++) {
        apply_value(store, 0, STORE_APPEND, S("/ap"), S("yz"));
    }
    apply_key(store, 0, STORE_GET, S("/ap"));
    struct slice value = store->effects.items[0].reply.blob;
    assert_int_equal(value.length, 201);
    assert_memory_equal(value.data, "xyzyz", 5);
    assert_memory_equal(value.data + 196, "zyzyz", 5);
}

TEST(appending_leaves_room_for_more_unless_memory_is_short) {
    static const uint8_t piece[4000];
    struct store_fixture store;
    fixture_init(&store, 10000);
    apply_value(&store, 0, STORE_APPEND, S("/ap"), (struct slice){piece, 1000});
    size_t memory = store_table_memory(store.table);
    apply_value(&store, 0, STORE_APPEND, S("/ap"), (struct slice){piece, 500});
    assert_int_equal(store_table_memory(store.table), memory);
    apply_value(&store, 0, STORE_APPEND, S("/ap"), (struct slice){piece, 3500});
    assert_int_equal(store_table_memory(store.table), memory + 6000);
    apply_value(&store, 0, STORE_APPEND, S("/ap"), (struct slice){piece, 4000});
    assert_int_equal(store_table_memory(store.table), memory + 7500);
    apply_key(&store, 0, STORE_GET, S("/ap"));
    assert_int_equal(store.effects.items[0].reply.blob.length, 9000);
    fixture_clear(&store);
}

STORE_TEST(deleting_says_whether_there_was_a_value) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/m1"), S("A"));
    apply_key(store, 0, STORE_DELETE, S("/m1"));
    assert_integer(store, 0, 1);
    apply_key(store, 0, STORE_DELETE, S("/m1"));
    assert_integer(store, 0, 0);
    assert_int_equal(store_table_memory(store->table), 0);
}

STORE_TEST(several_keys_are_written_and_read_in_order) {
    struct store_fixture *store = *state;
    const struct slice keys[] = {S("/m1"), S("/m2"), S("/m1")};
    const struct slice values[] = {S("A"), S("BB"), S("last wins")};
    apply(store, 0,
        &(struct store_request){
            .operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 3});
    assert_silent(store);
    apply_keys(store, 0, STORE_MULTI_GET, KEYS(S("/m2"), S("/nope"), S("/m1")));
    const struct store_reply *reply = assert_reply(store, 0, 0, STORE_REPLY_BLOBS);
    assert_int_equal(reply->list.count, 3);
    assert_true(slice_equals(reply->list.items[0], S("BB")));
    assert_int_equal(reply->list.items[1].length, 0);
    assert_true(slice_equals(reply->list.items[2], S("last wins")));
    apply_keys(store, 0, STORE_MULTI_GET, NULL, 0);
    assert_int_equal(assert_reply(store, 0, 0, STORE_REPLY_BLOBS)->list.count, 0);
}

STORE_TEST(keys_with_values_are_counted_and_listed) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_ADD, S("init/"), 1);
    apply_value(store, 0, STORE_SET, S("/k"), S(""));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/queue"), S("no value"));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/awaited")));
    apply_key(store, 0, STORE_COUNT_KEYS, S(""));
    assert_integer(store, 0, 2);
    apply_key(store, 0, STORE_LIST_KEYS, S(""));
    const struct store_reply *reply = assert_reply(store, 0, 0, STORE_REPLY_KEYS);
    assert_int_equal(reply->list.count, 2);
    assert_true(slice_equals(reply->list.items[0], S("init/")));
    assert_true(slice_equals(reply->list.items[1], S("/k")));
}

STORE_TEST(keys_that_are_hidden_from_a_client_are_not_in_its_list) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/agents/secret"), S("x"));
    apply_value(store, 0, STORE_SET, S("/worker"), S("x"));
    store->clients[1].hidden_prefix = S("/agents/");
    apply_key(store, 1, STORE_LIST_KEYS, S(""));
    const struct store_reply *reply = assert_reply(store, 0, 1, STORE_REPLY_KEYS);
    assert_int_equal(reply->list.count, 1);
    assert_true(slice_equals(reply->list.items[0], S("/worker")));
    apply_key(store, 0, STORE_LIST_KEYS, S(""));
    assert_int_equal(assert_reply(store, 0, 0, STORE_REPLY_KEYS)->list.count, 2);
}

/* Queues. */

static void assert_pop(
    const struct store_fixture *store, int client, int64_t length, struct slice front) {
    assert_int_equal(store->effects.count, 1);
    const struct store_reply *reply = assert_reply(store, 0, client, STORE_REPLY_POP);
    assert_int_equal(reply->pop.length, length);
    assert_true(slice_equals(reply->pop.front, front));
}

STORE_TEST(items_leave_in_the_order_they_came) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    assert_silent(store);
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S(""));
    apply_key(store, 1, STORE_QUEUE_LENGTH, S("/q"));
    assert_integer(store, 1, 2);
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 2, S("e1"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e3"));
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 2, S(""));
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 1, S("e3"));
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    assert_pop(store, 1, 0, S(""));
    apply_key(store, 1, STORE_QUEUE_LENGTH, S("/q"));
    assert_integer(store, 1, 0);
    assert_int_equal(store_table_memory(store->table), 0);
}

STORE_TEST(a_queue_with_items_counts_as_a_key_that_is_there) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    apply_keys(store, 1, STORE_CHECK, KEYS(S("/q")));
    assert_byte(store, 0, 1, STORE_READY);
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q")));
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
    apply_key(store, 1, STORE_QUEUE_POP, S("/q"));
    apply_keys(store, 1, STORE_CHECK, KEYS(S("/q")));
    assert_byte(store, 0, 1, STORE_NOT_READY);
}

STORE_TEST(an_item_passes_by_who_misses_something_else) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q"), S("/other")));
    apply_keys(store, 2, STORE_WAIT, KEYS(S("/q")));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 2, STORE_STOP_WAITING);
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e2"));
    assert_silent(store);
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/other"), S("e3"));
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
}

STORE_TEST(an_item_for_nobody_but_who_misses_something_else_releases_nobody) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q"), S("/other")));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("e1"));
    assert_silent(store);
    assert_int_equal(store_table_waiting(store->table), 1);
}

/* Waiting. */

static void assert_released(const struct store_fixture *store, int client) {
    assert_int_equal(store->effects.count, 1);
    assert_byte(store, 0, client, STORE_STOP_WAITING);
}

STORE_TEST(every_kind_of_write_releases) {
    struct store_fixture *store = *state;
    const struct slice key = S("/k");
    const struct slice value = S("1");
    const struct store_request writes[] = {
        {.operation = STORE_SET, .key = key, .value = value},
        {.operation = STORE_APPEND, .key = key, .value = value},
        {.operation = STORE_MULTI_SET, .keys = &key, .values = &value, .count = 1},
    };
    for (size_t i = 0; i < 3; i++) {
        apply_keys(store, 1, STORE_WAIT, KEYS(S("/k")));
        apply(store, 0, &writes[i]);
        assert_released(store, 1);
        apply_key(store, 0, STORE_DELETE, key);
    }
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/k")));
    apply_number(store, 0, STORE_ADD, key, 1);
    assert_int_equal(store->effects.count, 2);
    assert_reply(store, 0, 0, STORE_REPLY_INTEGER);
    assert_byte(store, 1, 1, STORE_STOP_WAITING);
}

STORE_TEST(a_compare_set_releases_only_when_it_stored) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/cs")));
    apply_compare_set(store, 0, S("/cs"), S("expected"), S("new"));
    assert_int_equal(store->effects.count, 1);
    apply_compare_set(store, 0, S("/cs"), S(""), S("new"));
    assert_int_equal(store->effects.count, 2);
    assert_byte(store, 1, 1, STORE_STOP_WAITING);
}

STORE_TEST(the_line_stays_whole_when_one_leaves_from_any_place) {
    static const int others[3][2] = {{1, 2}, {0, 2}, {0, 1}};
    for (int leaving = 0; leaving < 3; leaving++) {
        struct store_fixture store;
        fixture_init(&store, 10000);
        for (int i = 0; i < 3; i++) {
            apply_keys(&store, i, STORE_WAIT, KEYS(S("/k")));
        }
        store_table_disconnect(store.table, &store.clients[leaving]);
        apply_value(&store, 6, STORE_SET, S("/k"), S("1"));
        assert_int_equal(store.effects.count, 2);
        assert_byte(&store, 0, others[leaving][0], STORE_STOP_WAITING);
        assert_byte(&store, 1, others[leaving][1], STORE_STOP_WAITING);
        assert_int_equal(store_table_waiting(store.table), 0);
        apply_key(&store, 6, STORE_DELETE, S("/k"));
        assert_int_equal(store_table_memory(store.table), 0);
        fixture_clear(&store);
    }
}

STORE_TEST(a_newer_wait_replaces_the_older) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/old")));
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/new")));
    assert_int_equal(store_table_waiting(store->table), 1);
    apply_value(store, 0, STORE_SET, S("/old"), S("1"));
    assert_silent(store);
    apply_value(store, 0, STORE_SET, S("/new"), S("1"));
    assert_released(store, 1);
}

STORE_TEST(an_incomplete_barrier_does_not_release_those_who_wait_for_its_key) {
    struct store_fixture *store = *state;
    apply_keys(store, 4, STORE_WAIT, KEYS(S("/b")));
    apply_number(store, 0, STORE_BARRIER, S("/b"), 2);
    assert_silent(store);
    apply_number(store, 1, STORE_BARRIER, S("/b"), 2);
    assert_int_equal(store->effects.count, 3);
    assert_byte(store, 1, 4, STORE_STOP_WAITING);
}

STORE_TEST(a_barrier_given_up_stays_counted) {
    struct store_fixture *store = *state;
    apply_number(store, 0, STORE_BARRIER, S("/b2"), 2);
    apply(store, 0, &(struct store_request){.operation = STORE_CANCEL_WAIT});
    assert_byte(store, 0, 0, STORE_WAIT_CANCELLED);
    assert_value(store, S("/b2"), S("1"));
    apply_number(store, 1, STORE_BARRIER, S("/b2"), 2);
    assert_released(store, 1);
}

STORE_TEST(a_barrier_on_text_closes_and_changes_nothing) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/text"), S("abc"));
    apply_number(store, 0, STORE_BARRIER, S("/text"), 1);
    assert_closed(store, 0, "BARRIER: the key's value is not a 64-bit decimal number");
    assert_value(store, S("/text"), S("abc"));
}
