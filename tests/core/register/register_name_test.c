/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/register/register_entry.h"

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
