/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/loop/clock.h"

TEST(seeds_differ) {
    assert_true(random_seed() != random_seed());
}

TEST(names_are_fresh_and_plain) {
    char first[9];
    char second[9];
    random_seed_name(first, 8);
    random_seed_name(second, 8);
    assert_int_equal(strlen(first), 8);
    assert_int_equal(strspn(first, "abcdefghijklmnopqrstuvwxyz0123456789_"), 8);
    assert_string_not_equal(first, second);
}

TEST(uuids_are_fresh_and_of_version_four) {
    char *first = random_seed_uuid();
    char *second = random_seed_uuid();
    assert_int_equal(strlen(first), 36);
    assert_int_equal(strspn(first, "0123456789abcdef-"), 36);
    assert_int_equal(first[14], '4');
    assert_non_null(strchr("89ab", first[19]));
    assert_string_not_equal(first, second);
    free(first);
    free(second);
}
