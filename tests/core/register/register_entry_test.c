/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/register/register_entry.h"

static struct register_entry make_entry(void) {
    struct register_entry entry = {
        .number = 3,
        .kind = REGISTER_ENTRY_COMMIT,
        .term = 2,
        .host = memory_duplicate_string("node1_17_0"),
        .addresses = memory_duplicate_string("10.0.0.1:29400"),
        .settings = memory_duplicate_string("digest"),
    };
    assert_int_equal(bytes_append(&entry.record, "rec\0rd", 6), FAILURE_NONE);
    register_entry_write_nonce(1, UINT64_MAX, entry.nonce);
    return entry;
}

TEST(copy_shares_nothing) {
    CLEARED_BY(register_entry_clear) struct register_entry entry = make_entry();
    struct register_entry copy;
    register_entry_copy(&entry, &copy);
    entry.host[0] = 'X';
    entry.record.data[0] = 'X';
    assert_string_equal(copy.host, "node1_17_0");
    assert_memory_equal(copy.record.data, "rec\0rd", 6);
    assert_int_equal(copy.number, entry.number);
    assert_string_equal(copy.nonce, entry.nonce);
    register_entry_clear(&copy);
    assert_null(copy.host);
}

TEST(numbers_out_of_range_are_refused) {
    static const int64_t pairs[][2] = {
        {0, 0}, {0, 1}, {1, 0}, {1, 2}, {-1, -1}, {REGISTER_ENTRY_HIGHEST_NUMBER + 1, 1}};
    CLEARED_BY(register_entry_clear) struct register_entry entry = make_entry();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        entry.number = pairs[i][0];
        entry.term = pairs[i][1];
        assert_int_equal(register_entry_check(&entry), FAILURE_INVALID);
    }
    entry.number = REGISTER_ENTRY_HIGHEST_NUMBER;
    entry.term = REGISTER_ENTRY_HIGHEST_NUMBER;
    assert_int_equal(register_entry_check(&entry), FAILURE_NONE);
}

TEST(other_nonces_are_refused) {
    CLEARED_BY(register_entry_clear) struct register_entry entry = make_entry();
    entry.nonce[4] = 'A';
    assert_int_equal(register_entry_check(&entry), FAILURE_INVALID);
    entry.nonce[4] = '\0';
    assert_int_equal(register_entry_check(&entry), FAILURE_INVALID);
}

TEST(a_process_is_as_many_digits_or_none) {
    CLEARED_BY(register_entry_clear) struct register_entry entry = make_entry();
    assert_int_equal(register_entry_check(&entry), FAILURE_NONE);
    register_entry_write_nonce(1, 2, entry.process);
    assert_int_equal(register_entry_check(&entry), FAILURE_NONE);
    entry.process[31] = '\0';
    assert_int_equal(register_entry_check(&entry), FAILURE_INVALID);
}

static char *letters(size_t count) {
    char *text = memory_allocate(count + 1);
    memset(text, 'a', count);
    return text;
}

TEST(each_part_has_its_limit) {
    CLEARED_BY(register_entry_clear) struct register_entry entry = make_entry();
    free(entry.host);
    entry.host = letters(REGISTER_ENTRY_HOST_MAXIMUM + 1);
    assert_int_equal(register_entry_check(&entry), FAILURE_LIMIT);
    entry.host[1] = '\0';
    free(entry.addresses);
    entry.addresses = letters(REGISTER_ENTRY_ADDRESSES_MAXIMUM + 1);
    assert_int_equal(register_entry_check(&entry), FAILURE_LIMIT);
    entry.addresses[0] = '\0';
    free(entry.settings);
    entry.settings = letters(REGISTER_ENTRY_SETTINGS_MAXIMUM + 1);
    assert_int_equal(register_entry_check(&entry), FAILURE_LIMIT);
    entry.settings[0] = '\0';
    assert_int_equal(register_entry_check(&entry), FAILURE_NONE);
    bytes_clear(&entry.record);
    assert_int_equal(bytes_grow(&entry.record, REGISTER_ENTRY_RECORD_MAXIMUM + 1), FAILURE_NONE);
    entry.record.length = REGISTER_ENTRY_RECORD_MAXIMUM + 1;
    assert_int_equal(register_entry_check(&entry), FAILURE_LIMIT);
}

TEST(kinds_have_names) {
    for (int kind = REGISTER_ENTRY_CLAIM; kind <= REGISTER_ENTRY_CLOSE; kind++) {
        enum register_entry_kind read;
        assert_true(register_entry_kind_parse(
            register_entry_kind_name((enum register_entry_kind)kind), &read));
        assert_int_equal(read, kind);
    }
    enum register_entry_kind kept = REGISTER_ENTRY_CLOSE;
    assert_false(register_entry_kind_parse("depose", &kept));
    assert_int_equal(kept, REGISTER_ENTRY_CLOSE);
}

/* Register name. */

static void expect_name(const char *id, const char *name) {
    CLEARED_BY(text_clear) struct text text = {0};
    register_name_write(id, &text);
    assert_string_equal(text_string(&text), name);
}

TEST(plain_ids_stay_as_they_are) {
    expect_name("Job-1_a.b", "Job-1_a.b");
    expect_name("", "");
}

TEST(other_bytes_become_numbers) {
    expect_name("a/b", "a%2fb");
    expect_name("a%2fb", "a%252fb");
    expect_name("\xc3\xa9 \n", "%c3%a9%20%0a");
}

static char *short_name(const char *id) {
    struct text text = {0};
    register_name_write_short(id, &text);
    return text_take(&text);
}

TEST(short_names_have_few_characters) {
    FREED char *name = short_name("Train-1.b_c/d");
    assert_string_equal(name, "Train-1.b_5fc_2fd");
}

TEST(long_ids_keep_their_beginning_and_differ) {
    FREED char *longest = short_name("train-12345678-1234-1234-1234-123456789abc");
    FREED char *longer = short_name("train-12345678-1234-1234-1234-123456789abcd");
    FREED char *other = short_name("train-12345678-1234-1234-1234-123456789abce");
    assert_string_equal(longest, "train-12345678-1234-1234-1234-123456789abc");
    assert_int_equal(strlen(longer), REGISTER_NAME_SHORT);
    assert_memory_equal(longer, "train-12345678-1234-1234__", 26);
    assert_string_not_equal(longer, other);
    /* what an id of that very name would become is another one again */
    FREED char *same = short_name(longer);
    assert_string_not_equal(same, longer);
}
