/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/random.h"

TEST(same_seed_gives_the_same_numbers) {
    struct random left;
    struct random right;
    random_init(&left, 7);
    random_init(&right, 7);
    for (int i = 0; i < 100; i++) {
        assert_true(random_next(&left) == random_next(&right));
    }
}

TEST(numbers_stay_below_their_bound) {
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < 1000; i++) {
        assert_true(random_below(&random, 3) < 3);
        double fraction = random_fraction(&random);
        assert_true(fraction >= 0 && fraction < 1);
    }
}

TEST(names_use_only_file_name_letters) {
    struct random random;
    random_init(&random, 5);
    char name[9];
    random_name(&random, name, 8);
    assert_int_equal(strlen(name), 8);
    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), 8);
}
