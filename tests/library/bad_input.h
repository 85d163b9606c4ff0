/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the tests of bad input (bad_*_test.c). tools/check_bad_input.py derives from the
 * public headers which rows there have to be, and reads in these tests which there are. So a row
 * names a function (or a struct), one of its parameters (or members), and the kind of mistake.
 *
 * Most are made from a table: see tools/make_bad_input.py.
 *
 * REFUSED: the call is an error, which is told, and the same without a place for the reason.
 * REFUSED_ERRNO: the same of a function with errno; the expression says that it has failed.
 * ALLOWED: what looks like a mistake is none, for a reason; the expression shows that it is well.
 * IN_EACH: one function in each situation that its object can be in. */
#ifndef MUSTER_TESTS_LIBRARY_BAD_INPUT_H
#define MUSTER_TESTS_LIBRARY_BAD_INPUT_H

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/error.h>

#include "library/process_look.h"

/* What is no UTF-8. */
#define NO_UTF8 "\xff\xfe"

#define BAD_INPUT_FAIL(...)                                                                        \
    do {                                                                                           \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        bad_input_fail(__FILE__, __LINE__);                                                        \
    } while (0)

/* `call` ends with a place for `failure`. */
#define REFUSED(function, subject, kind, expected, call)                                           \
    do {                                                                                           \
        struct muster_failure told = {0};                                                          \
        struct muster_failure *failure = &told;                                                    \
        for (int turn = 0; turn < 2; turn++) {                                                     \
            enum muster_error error = (call);                                                      \
            if (error != (expected)) {                                                             \
                BAD_INPUT_FAIL(#function " " #subject " " #kind ": %s", muster_error_text(error)); \
            }                                                                                      \
            assert_int_equal(told.error, expected);                                                \
            assert_string_not_equal(told.message, "");                                             \
            failure = NULL;                                                                        \
        }                                                                                          \
    } while (0)

#define REFUSED_ERRNO(function, subject, kind, expected, expression)                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if (!(expression) || errno != (expected)) {                                                \
            BAD_INPUT_FAIL(#function " " #subject " " #kind ": errno is %d", errno);               \
        }                                                                                          \
    } while (0)

/* The expression may name `failure`. */
#define ALLOWED(function, subject, kind, reason, expression)                                       \
    do {                                                                                           \
        struct muster_failure told = {0};                                                          \
        struct muster_failure *failure = &told;                                                    \
        (void)failure;                                                                             \
        if (!(expression)) {                                                                       \
            BAD_INPUT_FAIL(                                                                        \
                #function " " #subject " " #kind " is no mistake (" reason "): %s", told.message); \
        }                                                                                          \
    } while (0)

static bool bad_input_is_child;

/* In a child cmocka would go on with the tests that follow. */
static inline void bad_input_fail(const char *file, int line) {
    print_error("%s:%d\n", file, line);
    if (bad_input_is_child) {
        _exit(1);
    }
    fail();
}

/* The situations of an object. */
enum situation {
    IS_NULL,     /* there is none */
    FORKED,      /* in a child */
    IN_CALLBACK, /* from inside one of its callbacks */
    BEING_FREED, /* the same, after it was freed there */
    TOO_EARLY,   /* before it is connected, started, asked */
    TOO_LATE,    /* after it is shut down, is stopped, has ended, or its server has */
    SITUATIONS
};

/* In the place of a result: the object does not come into this situation. */
#define NEVER INT_MIN

/* Which situations were played. Each file has one object. */
static bool bad_input_played[SITUATIONS];

/* One function, with arguments that are right but for the object, and what it returns in each
 * situation. `now` is the situation that is played. `renew` is the file's: it has a new object
 * there where the call would not be the first one otherwise. */
#define IN_EACH(function, call, null, forked, callback, freed, early, late)                        \
    do {                                                                                           \
        static const int expected[SITUATIONS] = {null, forked, callback, freed, early, late};      \
        renew(now);                                                                                \
        int returned = (int)(call);                                                                \
        if (expected[now] == NEVER || returned != expected[now]) {                                 \
            BAD_INPUT_FAIL(                                                                        \
                #function " in situation %d: %d, not %d", (int)now, returned, expected[now]);      \
        }                                                                                          \
        bad_input_played[now] = true;                                                              \
    } while (0)

/* Plays FORKED. */
static inline void bad_input_play_in_child(void (*play)(enum situation now)) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bad_input_is_child = true;
        play(FORKED);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bad_input_played[FORKED] = true;
}

/* Stands where the rows of an object say NEVER, in the last test of the file. */
#define NEVER_HAPPENS(object, situation, reason)                                                   \
    do {                                                                                           \
        (void)(reason);                                                                            \
        assert_false(bad_input_played[situation]);                                                 \
        bad_input_played[situation] = true;                                                        \
    } while (0)

static inline void bad_input_assert_all_played(void) {
    for (int i = 0; i < SITUATIONS; i++) {
        assert_true(bad_input_played[i]);
    }
}

/* A text of `length` bytes. The caller frees it. */
static inline char *bad_input_text(size_t length) {
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

#endif
