/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/machine/cpu_plan.h"

static struct cpu_set_bits parsed(const char *list) {
    struct cpu_set_bits set;
    assert_int_equal(cpu_set_parse(slice_from_string(list), &set), FAILURE_NONE);
    return set;
}

static void a_list_becomes_the_same_shortest_list(void **state) {
    (void)state;
    static const struct {
        const char *list;
        const char *shortest;
        size_t count;
    } cases[] = {
        {"0-3,8\n", "0-3,8", 5},
        {"8, 0-3", "0-3,8", 5},
        {"3,2,1,0", "0-3", 4},
        {"0-2,1-5", "0-5", 6},
        {"7-7", "7", 1},
        {"", "", 0},
        {"\n", "", 0},
        {",,1,", "1", 1},
        {"0-8191", "0-8191", 8192},
        {"63-64,127,8191", "63-64,127,8191", 4},
        {"007", "7", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cpu_set_bits set = parsed(cases[i].list);
        struct text text = {0};
        cpu_set_format(&set, &text);
        assert_string_equal(text_string(&text), cases[i].shortest);
        assert_int_equal(cpu_set_count(&set), cases[i].count);
        text_clear(&text);
    }
}

static void other_text_is_refused_and_changes_nothing(void **state) {
    (void)state;
    static const struct {
        const char *list;
        enum failure_code code;
    } cases[] = {
        {"x", FAILURE_MALFORMED},
        {"-1", FAILURE_MALFORMED},
        {"1-", FAILURE_MALFORMED},
        {"3-1", FAILURE_MALFORMED},
        {"1 2", FAILURE_MALFORMED},
        {"0-16:2/4", FAILURE_MALFORMED},
        {"1-2-3", FAILURE_MALFORMED},
        {"8192", FAILURE_LIMIT},
        {"0-8192", FAILURE_LIMIT},
        {"99999999999999999999", FAILURE_LIMIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cpu_set_bits set = parsed("5");
        assert_int_equal(cpu_set_parse(slice_from_string(cases[i].list), &set), cases[i].code);
        assert_int_equal(cpu_set_count(&set), 1);
        assert_true(cpu_set_has(&set, 5));
    }
}

static void members_are_walked_in_order(void **state) {
    (void)state;
    struct cpu_set_bits set = parsed("0,63-65,640,8191");
    static const int expected[] = {0, 63, 64, 65, 640, 8191};
    size_t seen = 0;
    for (int cpu = cpu_set_next(&set, 0); cpu >= 0; cpu = cpu_set_next(&set, cpu + 1)) {
        assert_true(seen < sizeof expected / sizeof *expected);
        assert_int_equal(cpu, expected[seen++]);
    }
    assert_int_equal(seen, 6);
    assert_int_equal(cpu_set_next(&set, 8192), -1);
}

static void numbers_outside_the_ceiling_are_no_members(void **state) {
    (void)state;
    struct cpu_set_bits set = parsed("0-8191");
    assert_false(cpu_set_has(&set, -1));
    assert_false(cpu_set_has(&set, 8192));
}

static void sets_unite(void **state) {
    (void)state;
    struct cpu_set_bits set = parsed("0-3,100");
    struct cpu_set_bits other = parsed("2-5,200");
    cpu_set_unite(&set, &other);
    struct cpu_set_bits expected = parsed("0-5,100,200");
    assert_true(cpu_set_equals(&set, &expected));
    assert_false(cpu_set_equals(&set, &other));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_list_becomes_the_same_shortest_list),
    cmocka_unit_test(other_text_is_refused_and_changes_nothing),
    cmocka_unit_test(members_are_walked_in_order),
    cmocka_unit_test(numbers_outside_the_ceiling_are_no_members),
    cmocka_unit_test(sets_unite),
};

UNIT_TESTS(tests)
