/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <inttypes.h>

#include "base/text.h"
#include "core/store/store_table.h"
#include "core/store_fixture.h"
#include "store_fixture.h"

static int owned_setup(void **state);

#define OWNED_TEST(function) TEST_WITH(function, owned_setup, store_teardown)

STORE_TEST(a_new_table_is_empty) {
    struct store_fixture *store = *state;
    assert_int_equal(count_keys(store), 0);
    assert_int_equal(store_table_waiting(store->table), 0);
    assert_int_equal(store_table_memory(store->table), 0);
    store_table_free(NULL);
}

STORE_TEST(validate_is_not_answered_and_ping_is) {
    struct store_fixture *store = *state;
    apply(store, 0, &(struct store_request){.operation = STORE_VALIDATE});
    assert_silent(store);
    apply(store, 0, &(struct store_request){.operation = STORE_PING, .nonce = 0x4c78});
    assert_int_equal(assert_reply(store, 0, 0, STORE_REPLY_NONCE)->nonce, 0x4c78);
}

TEST(a_table_may_go_while_clients_wait) {
    struct store_fixture store;
    fixture_init(&store, 1 << 20);
    apply_keys(&store, 1, STORE_WAIT, KEYS(S("/a"), S("/b")));
    apply_value(&store, 0, STORE_QUEUE_PUSH, S("/q"), S("item"));
    apply_key(&store, 0, STORE_QUEUE_POP, S("/q"));
    fixture_clear(&store);
    assert_null(store.clients[1].wait);
}

static void fill(struct store_fixture *store) {
    apply_value(store, 0, STORE_SET, S("/kept/k"), S("v"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/kept/q"), S("item"));
    apply_number(store, 0, STORE_ADD, S("init/"), 2);
    apply_value(store, 0, STORE_SET, S("/other"), S("v"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("item"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/q"), S("popped, and borrowed by the reply"));
    apply_key(store, 0, STORE_QUEUE_POP, S("/q"));
}

STORE_TEST(renewing_keeps_what_starts_with_the_prefix) {
    struct store_fixture *store = *state;
    fill(store);
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/kept/later")));
    store_effects_reset(&store->effects);
    store_table_renew(store->table, S("/kept/"), &store->effects);
    assert_silent(store);
    assert_int_equal(count_keys(store), 1);
    assert_value(store, S("/kept/k"), S("v"));
    assert_value(store, S("/other"), S(""));
    apply_key(store, 0, STORE_QUEUE_LENGTH, S("/kept/q"));
    assert_integer(store, 0, 1);
    apply_key(store, 0, STORE_QUEUE_LENGTH, S("/q"));
    assert_integer(store, 0, 0);
    apply_value(store, 0, STORE_SET, S("/kept/later"), S("1"));
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
}

STORE_TEST(renewing_closes_those_who_wait_for_a_forgotten_key) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/gone"), S("/kept/k"), S("/gone"), S("/gone2")));
    apply_number(store, 2, STORE_BARRIER, S("/gone2"), 2);
    store_effects_reset(&store->effects);
    store_table_renew(store->table, S("/kept/"), &store->effects);
    assert_int_equal(store->effects.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(store->effects.items[i].kind, STORE_EFFECT_CLOSE);
        assert_ptr_equal(store->effects.items[i].connection, &store->clients[1 + i]);
        assert_non_null(strstr(store->effects.items[i].reason, "renewed"));
    }
    assert_int_equal(store_table_waiting(store->table), 0);
    assert_int_equal(store_table_memory(store->table), 0);
}

TEST(a_request_that_would_pass_the_memory_limit_changes_nothing) {
    static const uint8_t large[5000];
    const struct slice value = {large, sizeof large};
    const struct slice keys[] = {S("/a"), S("/k")};
    const struct slice values[] = {S("1"), value};
    const struct store_request requests[] = {
        {.operation = STORE_SET, .key = S("/k"), .value = value},
        {.operation = STORE_APPEND, .key = S("/k"), .value = value},
        {.operation = STORE_COMPARE_SET, .key = S("/k"), .expected = S("v"), .value = value},
        {.operation = STORE_QUEUE_PUSH, .key = S("/k"), .value = value},
        {.operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 2},
        {.operation = STORE_ADD, .key = value, .number = 1},
        {.operation = STORE_BARRIER, .key = value, .number = 2},
        {.operation = STORE_WAIT, .keys = &value, .count = 1},
    };
    struct store_fixture store;
    fixture_init(&store, 4096);
    apply_value(&store, 0, STORE_SET, S("/k"), S("v"));
    size_t memory = store_table_memory(store.table);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        apply(&store, 1, &requests[i]);
        assert_closed(&store, 1, "the store's memory limit of 4096 bytes");
        assert_non_null(
            strstr(store.effects.items[0].reason, store_operation_name(requests[i].operation)));
        assert_int_equal(store_table_memory(store.table), memory);
        assert_int_equal(count_keys(&store), 1);
        assert_int_equal(store_table_waiting(store.table), 0);
        assert_value(&store, S("/k"), S("v"));
    }
    fixture_clear(&store);
}

#define STORE_FIXTURE_TEST(name)                                                                   \
    TEST_OF(store_fixture, name, fixture_init(&fixture, (size_t)1 << 30), fixture_clear)

/* A request that overwrites a key, or waits for an existing key, costs less than one with new keys.
 * It must pass although the first estimate finds no room for it. */
TEST_OF(
    store_fixture, a_full_store_can_still_be_used, fixture_init(&fixture, 1000), fixture_clear) {
    apply_value(fixture, 0, STORE_SET, S("/a"), S("1"));
    apply_value(fixture, 0, STORE_SET, S("/b"), S("2"));
    const struct slice keys[] = {S("/a"), S("/b"), S("/a")};
    const struct slice values[] = {S("3"), S("4"), S("5")};
    apply(fixture, 0,
        &(struct store_request){
            .operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 3});
    assert_silent(fixture);
    assert_value(fixture, S("/a"), S("5"));
    apply_keys(fixture, 0, STORE_WAIT, KEYS(S("/a"), S("/b"), S("/a"), S("/b")));
    assert_byte(fixture, 0, 0, STORE_STOP_WAITING);
}

STORE_TEST(memory_taken_by_others_is_not_given_out) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_SET, S("/a"), S("v"));
    store_table_reserve_memory(store->table, (size_t)1 << 30);
    apply_value(store, 1, STORE_SET, S("/b"), S("v"));
    assert_closed(store, 1, "the store's memory limit of 16.0 MiB");
    assert_value(store, S("/a"), S("v"));
    store_table_reserve_memory(store->table, (size_t)1 << 20);
    apply_value(store, 2, STORE_SET, S("/b"), S("v"));
    assert_silent(store);
    assert_value(store, S("/b"), S("v"));
}

static void leak(struct store_fixture *fixture) {
    CLEARED_BY(text_clear) struct text key = {0};
    do {
        text_clear(&key);
        text_append_format(&key, "/leak/%" PRId64, count_keys(fixture));
        apply_value(fixture, 0, STORE_SET, slice_from_string(text_string(&key)), S("value"));
    } while (fixture->effects.count == 0);
}

TEST_OF(store_fixture, a_full_store_says_who_has_filled_it, fixture_init(&fixture, (size_t)2 << 20),
    fixture_clear) {
    leak(fixture);
    assert_true(fixture->effects.is_full);
    assert_closed(fixture, 0, "memory limit of 2.0 MiB");
    assert_closed(fixture, 0, "keys take 2.0 MiB of");
    assert_closed(fixture, 0, "those that begin with 'leak/'");
    apply_key(fixture, 1, STORE_DELETE, S("/leak/7"));
    assert_false(fixture->effects.is_full);
}

static void refuse(
    struct store_fixture *fixture, enum store_operation operation, struct slice key) {
    store_effects_reset(&fixture->effects);
    store_table_refuse(fixture->table, &fixture->clients[0],
        &(struct store_request){.operation = operation,
            .key = key,
            .expected = S("old"),
            .value = S("new"),
            .number = 1},
        "it is not yours", &fixture->effects);
}

STORE_TEST(a_refused_request_changes_nothing_and_gets_a_true_reply) {
    struct store_fixture *fixture = *state;
    const enum store_operation silent[] = {
        STORE_SET, STORE_APPEND, STORE_MULTI_SET, STORE_QUEUE_PUSH};
    const enum store_operation closing[] = {STORE_ADD, STORE_BARRIER, STORE_QUEUE_POP, STORE_GET};
    apply_value(fixture, 1, STORE_SET, S("/k"), S("old"));
    for (size_t i = 0; i < 4; i++) {
        refuse(fixture, silent[i], S("/k"));
        assert_silent(fixture);
        refuse(fixture, closing[i], S("/k"));
        assert_closed(fixture, 0, "it is not yours");
    }
    refuse(fixture, STORE_COMPARE_SET, S("/k"));
    assert_blob(fixture, 0, S("old"));
    refuse(fixture, STORE_DELETE, S("/k"));
    assert_integer(fixture, 0, 0);
    assert_value(fixture, S("/k"), S("old"));
    refuse(fixture, STORE_COMPARE_SET, S("/missing"));
    assert_blob(fixture, 0, S("old"));
    apply_key(fixture, 1, STORE_COUNT_KEYS, S(""));
    assert_integer(fixture, 1, 1);
}

TEST_OF(store_fixture, the_owners_keys_have_room_when_others_have_filled_the_store,
    fixture_init(&fixture, (size_t)1 << 20), fixture_clear) {
    store_table_own(fixture->table, S("/own/"));
    leak(fixture);
    apply_value(fixture, 1, STORE_SET, S("/own/k"), S("v"));
    assert_silent(fixture);
    apply_keys(fixture, 2, STORE_WAIT, KEYS(S("/own/w"), S("/own/x")));
    assert_silent(fixture);
    apply_value(fixture, 0, STORE_SET, S("/leak/more"), S("value"));
    assert_closed(fixture, 0, "memory limit");
    apply_keys(fixture, 0, STORE_WAIT, KEYS(S("/leak/w"), S("/own/x")));
    assert_closed(fixture, 0, "memory limit");
}

STORE_TEST(what_the_host_tells_releases_who_waits_and_an_empty_word_empties_the_queue) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/q")));
    store_effects_reset(&store->effects);
    store_table_tell(store->table, S("/q"), S("word"), &store->effects);
    assert_byte(store, 0, 1, STORE_STOP_WAITING);
    store_effects_reset(&store->effects);
    store_table_tell(store->table, S("/q"), S(""), &store->effects);
    store_table_tell(store->table, S("/none"), S(""), &store->effects);
    assert_silent(store);
    assert_int_equal(store_table_memory(store->table), 0);
}

static int owned_setup(void **state) {
    int code = store_setup(state);
    struct store_fixture *store = *state;
    if (code == 0) {
        store_table_own(store->table, S("/own/"));
    }
    return code;
}

static void assert_popped(const struct store_fixture *store, int client, struct slice front) {
    assert_int_equal(store->effects.count, 1);
    const struct store_reply *reply = assert_reply(store, 0, client, STORE_REPLY_POP);
    assert_true(reply->pop.length == 1);
    assert_true(slice_equals(reply->pop.front, front));
}

static void assert_gave_way(const struct store_fixture *store, int client) {
    assert_int_equal(assert_reply(store, 0, client, STORE_REPLY_POP)->pop.length, 0);
}

OWNED_TEST(a_pop_of_an_own_key_is_answered_at_once_where_an_item_is_there) {
    struct store_fixture *store = *state;
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/own/q"), S("word"));
    apply_key(store, 1, STORE_QUEUE_POP, S("/own/q"));
    assert_popped(store, 1, S("word"));
}

OWNED_TEST(those_who_wait_for_an_item_take_one_each_in_their_order) {
    struct store_fixture *store = *state;
    apply_key(store, 1, STORE_QUEUE_POP, S("/own/q"));
    apply_key(store, 2, STORE_QUEUE_POP, S("/own/q"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/own/q"), S("first"));
    assert_popped(store, 1, S("first"));
    apply_value(store, 0, STORE_QUEUE_PUSH, S("/own/q"), S("second"));
    assert_popped(store, 2, S("second"));
}

OWNED_TEST(a_pop_that_waits_takes_the_place_of_the_wait_before) {
    struct store_fixture *store = *state;
    apply_keys(store, 1, STORE_WAIT, KEYS(S("/own/q")));
    apply_key(store, 1, STORE_QUEUE_POP, S("/own/q"));
    assert_silent(store);
    apply_key(store, 1, STORE_QUEUE_POP, S("/own/q"));
    assert_gave_way(store, 1);
    assert_int_equal(store->effects.count, 1);
    assert_int_equal(store_table_waiting(store->table), 1);
    store_table_disconnect(store->table, &store->clients[1]);
    assert_int_equal(store_table_memory(store->table), 0);
}

/* So does one whose request is refused. */
OWNED_TEST(a_pop_that_waits_gives_way_to_what_is_refused_and_to_nobody_else) {
    struct store_fixture *store = *state;
    const struct store_request wanted = {.operation = STORE_DELETE, .key = S("/k")};
    apply_key(store, 1, STORE_QUEUE_POP, S("/own/q"));
    apply_key(store, 0, STORE_QUEUE_LENGTH, S("/k"));
    assert_int_equal(store->effects.count, 1);
    assert_int_equal(store_table_waiting(store->table), 1);
    store_effects_reset(&store->effects);
    store_table_refuse(store->table, &store->clients[1], &wanted, "no", &store->effects);
    assert_gave_way(store, 1);
    assert_int_equal(assert_reply(store, 1, 1, STORE_REPLY_INTEGER)->integer, 0);
    assert_int_equal(store_table_memory(store->table), 0);
}

TEST(a_full_store_loses_what_the_host_tells_and_closes_nobody) {
    static uint8_t much[2 << 10];
    struct store_fixture store;
    fixture_init(&store, 1 << 10);
    store_table_tell(store.table, S("/q"), (struct slice){much, sizeof much}, &store.effects);
    assert_silent(&store);
    assert_int_equal(store_table_memory(store.table), 0);
    fixture_clear(&store);
}

/* Store census. */

static void add_key(struct store_fixture *store, const char *key, size_t length) {
    uint8_t *value = calloc(1, length + 1);
    apply_value(store, 0, STORE_SET, slice_from_string(key), (struct slice){value, length});
    assert_silent(store);
    free(value);
}

/* Adds keys that end in numbers: counted ones, or scattered ones in hexadecimal. */
static void add_keys(struct store_fixture *store, const char *start, int count, size_t length) {
    for (int i = 0; i < count; i++) {
        FREED char *key = text_format("%s%08d", start, i);
        add_key(store, key, length);
    }
}

static void expect_description(struct store_fixture *store, const char *words, int least_percent) {
    CLEARED_BY(text_clear) struct text text = {0};
    store_table_describe(store->table, &text);
    const char *found = strstr(text_string(&text), words);
    const char *about = strstr(text_string(&text), "; about ");
    assert_non_null(found);
    assert_int_equal(about != NULL, least_percent > 0);
    if (about != NULL) {
        assert_in_range(atoi(about + strlen("; about ")), least_percent, 100);
    }
}

static void expect_census(
    struct store_fixture *store, const char *name, bool is_whole_key, int least_percent) {
    FREED char *words = text_format(" %% of what the keys take is for %s '%s'",
        is_whole_key ? "the key" : "those that begin with", name);
    expect_description(store, least_percent > 0 ? words : " keys take ", least_percent);
}

STORE_FIXTURE_TEST(the_beginning_of_most_keys_is_found) {
    add_keys(fixture, "/default_pg/0//", 1000, 10);
    add_keys(fixture, "/leak/", 20000, 10);
    expect_census(fixture, "leak/", false, 90);
}

STORE_FIXTURE_TEST(one_large_value_among_many_keys_is_named) {
    add_keys(fixture, "/small/", 9000, 10);
    add_key(fixture, "/lar'ge\n", (size_t)8 << 20);
    expect_census(fixture, "lar?ge?", true, 70);
}

STORE_FIXTURE_TEST(a_long_queue_counts_with_its_key) {
    add_keys(fixture, "/small/", 100, 10);
    for (int i = 0; i < 1000; i++) {
        apply_value(
            fixture, 0, STORE_QUEUE_PUSH, S("/queue"), S("0123456789012345678901234567890"));
    }
    expect_census(fixture, "queue", true, 60);
}

STORE_FIXTURE_TEST(keys_without_anything_in_common_have_no_name) {
    expect_census(fixture, "", false, 0);
    add_key(fixture, "/a", 100);
    add_key(fixture, "/b", 100);
    add_key(fixture, "/c", 100);
    expect_census(fixture, "", false, 0);
}

TEST_OF(store_fixture, a_census_is_taken_again_when_much_has_changed,
    fixture_init(&fixture, (size_t)4 << 20), fixture_clear) {
    add_keys(fixture, "/first/", 2000, 10);
    expect_census(fixture, "first/", false, 90);
    add_key(fixture, "/second/small", 100);
    expect_census(fixture, "first/", false, 90);
    add_key(fixture, "/second/large", (size_t)1 << 20);
    expect_census(fixture, "second/large", true, 50);
}
