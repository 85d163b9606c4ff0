/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/machine/cpu_plan.h"

static struct cpu_set_bits parsed(const char *list) {
    struct cpu_set_bits set;
    assert_int_equal(cpu_set_parse(slice_from_string(list), &set), FAILURE_NONE);
    return set;
}

TEST(a_list_may_be_spelled_in_many_ways) {
    static const struct {
        const char *list;
        const char *same;
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
        struct cpu_set_bits same = parsed(cases[i].same);
        assert_memory_equal(&set, &same, sizeof set);
        assert_int_equal(cpu_set_count(&set), cases[i].count);
    }
}

TEST(other_text_is_refused_and_changes_nothing) {
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

TEST(members_are_walked_in_order) {
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

TEST(numbers_outside_the_ceiling_are_no_members) {
    struct cpu_set_bits set = parsed("0-8191");
    assert_false(cpu_set_has(&set, -1));
    assert_false(cpu_set_has(&set, 8192));
}
