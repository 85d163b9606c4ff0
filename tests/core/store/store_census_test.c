/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"
#include "core/store/store_step.h"

static void add_key(struct store_entries *entries, const char *key, size_t length) {
    uint8_t *value = calloc(1, length + 1);
    struct store_entry *entry = store_entries_add(entries, slice_from_string(key));
    store_entry_set_value(entries, entry, (struct slice){value, length});
    free(value);
}

/* Adds keys that end in numbers: counted ones, or scattered ones in hexadecimal. */
static void add_keys(struct store_entries *entries, const char *start, int count, size_t length) {
    for (int i = 0; i < count; i++) {
        char *key = text_format("%s%08d", start, i);
        add_key(entries, key, length);
        free(key);
    }
}

static void add_scattered_keys(
    struct store_entries *entries, const char *start, uint32_t count, size_t length) {
    for (uint32_t i = 0; i < count; i++) {
        char *key = text_format("%s%08x", start, i * UINT32_C(2654435761));
        add_key(entries, key, length);
        free(key);
    }
}

static void expect_description(
    struct store_entries *entries, const char *words, int least_percent) {
    struct text text = {0};
    store_census_describe(entries, &text);
    const char *found = strstr(text_string(&text), words);
    const char *about = strstr(text_string(&text), "; about ");
    assert_non_null(found);
    assert_int_equal(about != NULL, least_percent > 0);
    if (about != NULL) {
        assert_in_range(atoi(about + strlen("; about ")), least_percent, 100);
    }
    text_clear(&text);
}

static void expect_census(
    struct store_entries *entries, const char *name, bool is_whole_key, int least_percent) {
    char *words = text_format(" %% of what the keys take is for %s '%s'",
        is_whole_key ? "the key" : "those that begin with", name);
    expect_description(entries, least_percent > 0 ? words : " keys take ", least_percent);
    free(words);
}

static void the_beginning_of_most_keys_is_found(void **state) {
    (void)state;
    struct store_entries entries;
    store_entries_init(&entries, (size_t)1 << 30);
    add_keys(&entries, "/default_pg/0//", 1000, 10);
    add_keys(&entries, "/leak/", 20000, 10);
    expect_census(&entries, "leak/", false, 90);
    store_entries_clear(&entries);
}

static void keys_with_random_ends_count_together(void **state) {
    (void)state;
    struct store_entries entries;
    store_entries_init(&entries, (size_t)1 << 30);
    add_scattered_keys(&entries, "/request-", 9000, 100);
    add_keys(&entries, "/other-", 2000, 10);
    expect_census(&entries, "request-", false, 80);
    store_entries_clear(&entries);
}

static void one_large_value_among_many_keys_is_named(void **state) {
    (void)state;
    struct store_entries entries;
    store_entries_init(&entries, (size_t)1 << 30);
    add_keys(&entries, "/small/", 9000, 10);
    add_key(&entries, "/lar'ge\n", (size_t)8 << 20);
    expect_census(&entries, "lar?ge?", true, 70);
    store_entries_clear(&entries);
}

static void a_long_queue_counts_with_its_key(void **state) {
    (void)state;
    struct store_entries entries;
    store_entries_init(&entries, (size_t)1 << 30);
    add_keys(&entries, "/small/", 100, 10);
    struct store_entry *queue = store_entries_add(&entries, slice_from_string("/queue"));
    for (int i = 0; i < 1000; i++) {
        store_queue_push(&entries, queue, slice_from_string("0123456789012345678901234567890"));
    }
    expect_census(&entries, "queue", true, 60);
    (void)store_queue_take(&entries, queue);
    store_queue_free_taken(&entries);
    store_queue_empty(&entries, queue);
    assert_int_equal(queue->queue_bytes, 0);
    store_entries_clear(&entries);
}

static void keys_without_anything_in_common_have_no_name(void **state) {
    (void)state;
    struct store_entries entries;
    store_entries_init(&entries, (size_t)1 << 30);
    expect_census(&entries, "", false, 0);
    add_key(&entries, "/a", 100);
    add_key(&entries, "/b", 100);
    add_key(&entries, "/c", 100);
    expect_census(&entries, "", false, 0);
    store_entries_clear(&entries);
}

static void a_census_is_taken_again_when_much_has_changed(void **state) {
    (void)state;
    struct store_entries entries;
    store_entries_init(&entries, (size_t)1 << 20);
    add_keys(&entries, "/first/", 2000, 10);
    expect_census(&entries, "first/", false, 90);
    add_key(&entries, "/second/small", 100);
    expect_census(&entries, "first/", false, 90);
    add_key(&entries, "/second/large", (size_t)1 << 20);
    expect_census(&entries, "second/large", true, 50);
    store_entries_clear(&entries);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_beginning_of_most_keys_is_found),
    cmocka_unit_test(keys_with_random_ends_count_together),
    cmocka_unit_test(one_large_value_among_many_keys_is_named),
    cmocka_unit_test(a_long_queue_counts_with_its_key),
    cmocka_unit_test(keys_without_anything_in_common_have_no_name),
    cmocka_unit_test(a_census_is_taken_again_when_much_has_changed),
};

UNIT_TESTS(tests)
