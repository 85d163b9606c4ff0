/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/register/register_name.h"

static void expect_name(const char *id, const char *name) {
    struct text text = {0};
    register_name_write(id, &text);
    assert_string_equal(text_string(&text), name);
    text_clear(&text);
}

static void plain_ids_stay_as_they_are(void **state) {
    (void)state;
    expect_name("Job-1_a.b", "Job-1_a.b");
    expect_name("", "");
}

static void other_bytes_become_numbers(void **state) {
    (void)state;
    expect_name("a/b", "a%2fb");
    expect_name("a%2fb", "a%252fb");
    expect_name("\xc3\xa9 \n", "%c3%a9%20%0a");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plain_ids_stay_as_they_are),
    cmocka_unit_test(other_bytes_become_numbers),
};

TEST_MAIN(tests)
