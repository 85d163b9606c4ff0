/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_server.h"

static void keys_and_values_are_copied(void **state) {
    (void)state;
    struct store_seeds seeds = {0};
    char key[] = "/record";
    uint8_t value[] = {0, 1, 2};
    store_seeds_add(&seeds, key, (struct slice){value, sizeof value});
    store_seeds_add(&seeds, "/empty", (struct slice){0});
    key[1] = 'x';
    value[0] = 9;
    assert_int_equal(seeds.count, 2);
    assert_string_equal(seeds.items[0].key, "/record");
    assert_int_equal(seeds.items[0].value.length, 3);
    assert_int_equal(seeds.items[0].value.data[0], 0);
    assert_int_equal(seeds.items[1].value.length, 0);
    store_seeds_clear(&seeds);
    assert_int_equal(seeds.count, 0);
    store_seeds_clear(&seeds); /* an empty list is cleared, too */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_and_values_are_copied),
};

UNIT_TESTS(tests)
