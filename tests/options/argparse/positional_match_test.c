/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/argparse/option_parser.h"

#define ONE OPTION_ARITY_ONE
#define OPTIONAL OPTION_ARITY_OPTIONAL
#define ANY OPTION_ARITY_ANY
#define SOME OPTION_ARITY_SOME
#define REMAINDER OPTION_ARITY_REMAINDER

/* The expected results are those of Python 3.14's argparse. */
static void each_positional_takes_all_it_can(void **state) {
    (void)state;
    static const struct {
        enum option_arity arities[3];
        size_t arity_count;
        const char *pattern;
        size_t matched;
        size_t taken[3];
    } cases[] = {
        {{ONE, REMAINDER}, 2, "AOA-A", 2, {1, 4}},
        {{ONE, REMAINDER}, 2, "-AAA", 2, {2, 2}},
        {{ONE, REMAINDER}, 2, "A-A", 2, {2, 1}},
        {{ONE, REMAINDER}, 2, "AA-A", 2, {1, 3}},
        {{ONE, REMAINDER}, 2, "", 0, {0}},
        {{ONE, REMAINDER}, 2, "OA", 0, {0}},
        {{ONE, ONE}, 2, "AA", 2, {1, 1}},
        {{ONE, ONE}, 2, "AOA", 1, {1}},
        {{ANY}, 1, "OA", 0, {0}},
        {{ANY}, 1, "", 1, {0}},
        {{ANY, ONE}, 2, "AAA", 2, {2, 1}},
        {{ANY, ONE}, 2, "A", 2, {0, 1}},
        {{SOME, ONE}, 2, "AAA", 2, {2, 1}},
        {{SOME, ONE}, 2, "A", 1, {1}},
        {{OPTIONAL, ONE}, 2, "A", 2, {0, 1}},
        {{OPTIONAL, ONE}, 2, "AA", 2, {1, 1}},
        {{ONE, OPTIONAL}, 2, "AOA", 1, {1}},
        {{ONE, OPTIONAL}, 2, "A", 2, {1, 0}},
        {{SOME, SOME, ONE}, 3, "AA-AA", 3, {3, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t taken[POSITIONAL_MAXIMUM_COUNT] = {0};
        assert_int_equal(
            positional_match(cases[i].arities, cases[i].arity_count, cases[i].pattern, taken),
            cases[i].matched);
        for (size_t j = 0; j < cases[i].matched; j++) {
            assert_int_equal(taken[j], cases[i].taken[j]);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_positional_takes_all_it_can),
};

UNIT_TESTS(tests)
