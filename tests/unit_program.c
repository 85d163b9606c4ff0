/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that test files are linked into: one for all files of a floor, since there are
 * hundreds, and to link a program takes as long as to compile a file.
 *
 *   FLOOR_tests [FILE [PATTERN]]
 *
 * FILE is a file's name without _test.c. Without it all files are played, one after the other.
 * PATTERN filters tests by name ("expired_*"). A program of one file takes PATTERN only. */
#include "unit.h"

#include <stdio.h>

#define ENDING "_test.c"

#define TESTS_MAXIMUM 512 /* of a file */

static struct unit_test *tests; /* by file, and by line in it */
static struct unit_test_surroundings *surroundings;

static bool is_before(const struct unit_test *test, const struct unit_test *other) {
    int order = strcmp(test->path, other->path);
    return order < 0 || (order == 0 && test->line < other->line);
}

/* Constructors run in an order that compilers and linkers choose. */
void unit_test_add(struct unit_test *test) {
    static struct unit_test *last; /* the one that came last: the next is most often behind it */
    struct unit_test **link = last != NULL && is_before(last, test) ? &last->next : &tests;
    while (*link != NULL && is_before(*link, test)) {
        link = &(*link)->next;
    }
    test->next = *link;
    *link = test;
    last = test;
}

void unit_test_surround(struct unit_test_surroundings *added) {
    added->next = surroundings;
    surroundings = added;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_called(const struct unit_test *test, const char *name) {
    const char *base = base_of(test->path);
    size_t length = strlen(name);
    return strncmp(base, name, length) == 0 && strcmp(base + length, ENDING) == 0;
}

static struct unit_test *next_file(const struct unit_test *first) {
    struct unit_test *test = first->next;
    while (test != NULL && strcmp(test->path, first->path) == 0) {
        test = test->next;
    }
    return test;
}

/* Returns the number of tests that failed. */
static int play(const struct unit_test *first) {
    static struct CMUnitTest group[TESTS_MAXIMUM];
    size_t count = 0;
    const struct unit_test *end = next_file(first);
    for (const struct unit_test *test = first; test != end; test = test->next) {
        if (count == TESTS_MAXIMUM) {
            fprintf(stderr, "%s has more than %d tests\n", test->path, TESTS_MAXIMUM);
            return 1;
        }
        group[count++] = test->test;
    }
    const struct unit_test_surroundings *around = surroundings;
    while (around != NULL && strcmp(around->path, first->path) != 0) {
        around = around->next;
    }
    return _cmocka_run_group_tests(base_of(first->path), group, count,
        around == NULL ? NULL : around->set_up, around == NULL ? NULL : around->tear_down);
}

static int play_all(void) {
    int failed = 0;
    for (const struct unit_test *file = tests; file != NULL; file = next_file(file)) {
        failed += play(file);
    }
    return failed;
}

static int play_file(const char *name) {
    for (const struct unit_test *file = tests; file != NULL; file = next_file(file)) {
        if (is_called(file, name)) {
            return play(file);
        }
    }
    fprintf(stderr,
        "this program has no tests of '%s' (expected the name of a file without " ENDING ")\n",
        name);
    return 1;
}

int main(int argument_count, char **arguments) {
    const char *name = NULL;
    if (next_file(tests) != NULL && argument_count > 1) {
        name = arguments[1];
        arguments++;
        argument_count--;
    }
    if (argument_count > 1) {
        cmocka_set_test_filter(arguments[1]);
    }
    return (name == NULL ? play_all() : play_file(name)) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
