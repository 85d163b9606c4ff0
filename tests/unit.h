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

/* Clears a variable where its block ends: `CLEARED_BY(text_clear) struct text told = {0};`. Not
 * where a test has failed before. */
#define CLEARED_BY(function) __attribute__((cleanup(function)))

/* The same for memory: `FREED char *line = text_format("%d", 7);`. */
static inline void unit_free_at(void *pointer) {
    free(*(void **)pointer);
}
#define FREED __attribute__((cleanup(unit_free_at)))

/* A test, in a program that holds those of several files (unit_program.c). */
struct unit_test {
    struct CMUnitTest test;
    const char *path; /* as the compiler was told: of the file that includes one that is made */
    int line;
    struct unit_test *next;
};

void unit_test_add(struct unit_test *test);

/* Functions around all tests of a file; either may be NULL. */
struct unit_test_surroundings {
    const char *path;
    CMFixtureFunction set_up;
    CMFixtureFunction tear_down;
    struct unit_test_surroundings *next;
};

void unit_test_surround(struct unit_test_surroundings *surroundings);

/* A test is written `TEST(its_name) { … }`. It plays as its_name, in the order of the file's lines.
 * `state` is cmocka's. */
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The same, with functions that are called before and after it, or NULL. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    TEST_AGAIN(name, name, set_up, tear_down, NULL)                                                \
    static void name(__attribute__((unused)) void **state)

/* A test that is given a `struct fixture`, which the file's functions set_up and tear_down make and
 * end. The second one has another call in the place of set_up(&fixture). */
#define FIXTURE_TEST(name) FIXTURE_TEST_AFTER(name, set_up(&fixture))

#define FIXTURE_TEST_AFTER(name, beginning) TEST_OF(fixture, name, beginning, tear_down)

/* A test that is given a struct of another kind, which is made by the call `beginning` and ended by
 * the function `end`. */
#define TEST_OF(kind, name, beginning, end)                                                        \
    static void name##_within(struct kind *fixture);                                               \
    TEST(name) {                                                                                   \
        struct kind fixture;                                                                       \
        beginning;                                                                                 \
        name##_within(&fixture);                                                                   \
        end(&fixture);                                                                             \
    }                                                                                              \
    static void name##_within(__attribute__((unused)) struct kind *fixture)

/* Plays a function as one more test, with a state that it begins with. */
#define TEST_AGAIN(name, function, set_up, tear_down, state)                                       \
    __attribute__((constructor)) static void unit_test_add_##name(void) {                          \
        static struct unit_test test = {                                                           \
            {#name, function, set_up, tear_down, state}, __BASE_FILE__, __LINE__, NULL};           \
        unit_test_add(&test);                                                                      \
    }

/* Calls functions before and after all tests of this file. */
#define TESTS_WITHIN(set_up, tear_down)                                                            \
    __attribute__((constructor)) static void surround_the_tests(void) {                            \
        static struct unit_test_surroundings around = {__BASE_FILE__, set_up, tear_down, NULL};    \
        unit_test_surround(&around);                                                               \
    }

#endif
