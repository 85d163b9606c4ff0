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

/* The tests of one file, in a program that holds several (unit_program.c). */
struct unit_test_file {
    const char *path; /* as the compiler was told */
    int (*run)(void); /* the number of tests that failed */
    struct unit_test_file *next;
};

void unit_test_file_add(struct unit_test_file *file);

/* Ends each test file, with its `static const struct CMUnitTest tests[]`. */
#define UNIT_TESTS(tests) UNIT_TESTS_WITHIN(tests, NULL, NULL)

/* The same, with functions that are called before and after all of them, or NULL. */
#define UNIT_TESTS_WITHIN(tests, set_up, tear_down)                                                \
    static int run_the_tests(void) {                                                               \
        return cmocka_run_group_tests(tests, set_up, tear_down);                                   \
    }                                                                                              \
    __attribute__((constructor)) static void add_the_tests(void) {                                 \
        static struct unit_test_file file = {.path = __FILE__, .run = run_the_tests};              \
        unit_test_file_add(&file);                                                                 \
    }

#endif
