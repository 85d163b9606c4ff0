/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/file_store_contents.h"

static struct file_store_record value_record(const char *key, const char *value) {
    return (struct file_store_record){
        .key = slice_from_string(key), .value = slice_from_string(value)};
}

static struct file_store_record removal(const char *key) {
    return (struct file_store_record){.key = slice_from_string(key), .is_removal = true};
}

static enum failure_code take(
    struct file_store_contents *contents, const char *key, const char *value) {
    struct file_store_record record = value_record(key, value);
    return file_store_contents_take(contents, &record);
}

static void assert_value(
    const struct file_store_contents *contents, const char *key, const char *value) {
    struct slice found;
    assert_true(file_store_contents_find(contents, slice_from_string(key), &found));
    assert_true(slice_equals(found, slice_from_string(value)));
}

static struct file_store_contents *new_contents(void) {
    static const struct file_store_limits limits = {
        .key_bytes = 8, .value_bytes = 100, .entries = 3, .memory_bytes = 1000};
    return file_store_contents_new(&limits);
}

TEST(the_last_record_of_a_key_wins) {
    struct file_store_contents *contents = new_contents();
    assert_int_equal(take(contents, "/k", "one"), FAILURE_NONE);
    assert_int_equal(take(contents, "/k", ""), FAILURE_NONE);
    assert_value(contents, "/k", "");
    assert_int_equal(take(contents, "/k", "two"), FAILURE_NONE);
    assert_value(contents, "/k", "two");
    assert_int_equal(file_store_contents_count(contents), 1);
    file_store_contents_free(contents);
}

TEST(a_removed_key_has_no_value_until_it_is_set_again) {
    struct file_store_contents *contents = new_contents();
    struct file_store_record removed = removal("/k");
    assert_int_equal(file_store_contents_take(contents, &removed), FAILURE_NONE);
    assert_int_equal(take(contents, "/k", "one"), FAILURE_NONE);
    assert_int_equal(file_store_contents_take(contents, &removed), FAILURE_NONE);
    assert_false(file_store_contents_find(contents, slice_from_string("/k"), NULL));
    assert_int_equal(file_store_contents_count(contents), 0);
    assert_int_equal(take(contents, "/k", "two"), FAILURE_NONE);
    assert_value(contents, "/k", "two");
    file_store_contents_free(contents);
}

TEST(keys_are_listed_once_each) {
    struct file_store_contents *contents = new_contents();
    struct slice keys[2];
    assert_int_equal(take(contents, "/a", "1"), FAILURE_NONE);
    assert_int_equal(take(contents, "count/", "1"), FAILURE_NONE);
    assert_int_equal(take(contents, "/a", "2"), FAILURE_NONE);
    assert_int_equal(file_store_contents_count(contents), 2);
    file_store_contents_list(contents, keys);
    assert_true(slice_equals(keys[0], slice_from_string("/a")) ||
                slice_equals(keys[1], slice_from_string("/a")));
    assert_true(slice_equals(keys[0], slice_from_string("count/")) ||
                slice_equals(keys[1], slice_from_string("count/")));
    file_store_contents_free(contents);
}

TEST(what_passes_a_ceiling_changes_nothing) {
    struct file_store_contents *contents = new_contents();
    char longer[102];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(take(contents, "/k", "one"), FAILURE_NONE);
    assert_int_equal(take(contents, "/k", longer), FAILURE_LIMIT);
    assert_int_equal(take(contents, "/long-key", "v"), FAILURE_LIMIT);
    assert_value(contents, "/k", "one");
    assert_int_equal(take(contents, "/l", "v"), FAILURE_NONE);
    assert_int_equal(take(contents, "/m", "v"), FAILURE_NONE);
    assert_int_equal(take(contents, "/n", "v"), FAILURE_LIMIT);
    assert_int_equal(take(contents, "/m", "w"), FAILURE_NONE);
    assert_int_equal(file_store_contents_count(contents), 3);
    file_store_contents_free(contents);
}

TEST(memory_of_replaced_and_removed_values_is_free_again) {
    struct file_store_contents *contents = new_contents();
    char value[91];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    struct file_store_record removed = removal("/k");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(take(contents, "/k", value), FAILURE_NONE);
        assert_int_equal(take(contents, "/k", "v"), FAILURE_NONE);
        assert_int_equal(file_store_contents_take(contents, &removed), FAILURE_NONE);
    }
    file_store_contents_free(contents);
}

TEST(room_is_asked_for_all_records_together) {
    struct file_store_contents *contents = new_contents();
    struct file_store_record records[] = {value_record("/a", "1"), value_record("/b", "2"),
        removal("/c"), value_record("/d", "4"), value_record("/e", "5")};
    assert_true(file_store_contents_have_room(contents, records, 4));
    assert_false(file_store_contents_have_room(contents, records, 5));
    assert_int_equal(take(contents, "/f", "6"), FAILURE_NONE);
    assert_false(file_store_contents_have_room(contents, records, 4));
    assert_true(file_store_contents_have_room(contents, &records[2], 1));
    file_store_contents_free(contents);
}
