/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store_table.h"

static void a_new_table_is_empty(void **state) {
    (void)state;
    struct store_table *table = store_table_new(&STORE_LIMITS_DEFAULT);
    assert_int_equal(store_table_count(table), 0);
    assert_int_equal(store_table_memory(table), 0);
    store_table_free(table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_new_table_is_empty),
};

TEST_MAIN(tests)
