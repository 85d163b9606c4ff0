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

static struct unit_test_file *files;

/* Constructors run in the order in which files are linked. */
void unit_test_file_add(struct unit_test_file *file) {
    struct unit_test_file **end = &files;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = file;
}

static bool is_called(const struct unit_test_file *file, const char *name) {
    const char *slash = strrchr(file->path, '/');
    const char *base = slash == NULL ? file->path : slash + 1;
    size_t length = strlen(name);
    return strncmp(base, name, length) == 0 && strcmp(base + length, ENDING) == 0;
}

static int play_all(void) {
    int failed = 0;
    for (const struct unit_test_file *file = files; file != NULL; file = file->next) {
        failed += file->run();
    }
    return failed;
}

static int play_file(const char *name) {
    for (const struct unit_test_file *file = files; file != NULL; file = file->next) {
        if (is_called(file, name)) {
            return file->run();
        }
    }
    fprintf(stderr,
        "this program has no tests of '%s' (expected the name of a file without " ENDING ")\n",
        name);
    return 1;
}

int main(int argument_count, char **arguments) {
    const char *name = NULL;
    if (files->next != NULL && argument_count > 1) {
        name = arguments[1];
        arguments++;
        argument_count--;
    }
    if (argument_count > 1) {
        cmocka_set_test_filter(arguments[1]);
    }
    return (name == NULL ? play_all() : play_file(name)) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
