/* SPDX-License-Identifier: BSD-3-Clause */
/* What every unit test includes: cmocka with the headers it wants first. */
#ifndef MUSTER_TESTS_UNIT_H
#define MUSTER_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Skips the test, in words that tools/run_tests.py repeats. */
#define SKIP_BECAUSE(reason)                                                                       \
    do {                                                                                           \
        print_message("skipped: %s\n", reason);                                                    \
        skip();                                                                                    \
    } while (false)

/* main() for a module's test: `TEST_MAIN(tests)` with a `const struct CMUnitTest tests[]`; the
 * first command line argument filters tests by name pattern ("expired_*"). */
#define TEST_MAIN(tests)                                                                           \
    int main(int argument_count, char **arguments) {                                               \
        if (argument_count > 1) {                                                                  \
            cmocka_set_test_filter(arguments[1]);                                                  \
        }                                                                                          \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

#endif
