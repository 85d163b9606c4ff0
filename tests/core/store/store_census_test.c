/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"
#include "store_fixture.h"

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

static void add_scattered_keys(
    struct store_fixture *store, const char *start, uint32_t count, size_t length) {
    for (uint32_t i = 0; i < count; i++) {
        FREED char *key = text_format("%s%08x", start, i * UINT32_C(2654435761));
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

TEST(the_beginning_of_most_keys_is_found) {
    struct store_fixture store;
    fixture_init(&store, (size_t)1 << 30);
    add_keys(&store, "/default_pg/0//", 1000, 10);
    add_keys(&store, "/leak/", 20000, 10);
    expect_census(&store, "leak/", false, 90);
    fixture_clear(&store);
}

TEST(keys_with_random_ends_count_together) {
    struct store_fixture store;
    fixture_init(&store, (size_t)1 << 30);
    add_scattered_keys(&store, "/request-", 9000, 100);
    add_keys(&store, "/other-", 2000, 10);
    expect_census(&store, "request-", false, 80);
    fixture_clear(&store);
}

TEST(one_large_value_among_many_keys_is_named) {
    struct store_fixture store;
    fixture_init(&store, (size_t)1 << 30);
    add_keys(&store, "/small/", 9000, 10);
    add_key(&store, "/lar'ge\n", (size_t)8 << 20);
    expect_census(&store, "lar?ge?", true, 70);
    fixture_clear(&store);
}

TEST(a_long_queue_counts_with_its_key) {
    struct store_fixture store;
    fixture_init(&store, (size_t)1 << 30);
    add_keys(&store, "/small/", 100, 10);
    for (int i = 0; i < 1000; i++) {
        apply_value(&store, 0, STORE_QUEUE_PUSH, S("/queue"), S("0123456789012345678901234567890"));
    }
    expect_census(&store, "queue", true, 60);
    fixture_clear(&store);
}

TEST(keys_without_anything_in_common_have_no_name) {
    struct store_fixture store;
    fixture_init(&store, (size_t)1 << 30);
    expect_census(&store, "", false, 0);
    add_key(&store, "/a", 100);
    add_key(&store, "/b", 100);
    add_key(&store, "/c", 100);
    expect_census(&store, "", false, 0);
    fixture_clear(&store);
}

TEST(a_census_is_taken_again_when_much_has_changed) {
    struct store_fixture store;
    fixture_init(&store, (size_t)4 << 20);
    add_keys(&store, "/first/", 2000, 10);
    expect_census(&store, "first/", false, 90);
    add_key(&store, "/second/small", 100);
    expect_census(&store, "first/", false, 90);
    add_key(&store, "/second/large", (size_t)1 << 20);
    expect_census(&store, "second/large", true, 50);
    fixture_clear(&store);
}
