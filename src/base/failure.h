/* SPDX-License-Identifier: BSD-3-Clause */
/* Why something did not work. There is one table of codes for the whole program. From the host
 * floor up a failure also has a message of fixed size, to which each caller can add context. The
 * pure floors return codes alone. */
#ifndef MUSTER_BASE_FAILURE_H
#define MUSTER_BASE_FAILURE_H

#include <stddef.h>

#define FAILURE_MESSAGE_SIZE 1024

enum failure_code {
    FAILURE_NONE = 0,
    FAILURE_INCOMPLETE,   /* more input is needed */
    FAILURE_MALFORMED,    /* the input breaks its grammar */
    FAILURE_LIMIT,        /* a ceiling would be passed */
    FAILURE_MISSING,      /* the named thing does not exist */
    FAILURE_INVALID,      /* a value the user gave is not usable */
    FAILURE_AMBIGUOUS,    /* a value the user gave means several things */
    FAILURE_UNSUPPORTED,  /* the value is understood, but not supported */
    FAILURE_SYSTEM,       /* the operating system refused; the message holds the reason */
    FAILURE_TIMEOUT,      /* a deadline passed */
    FAILURE_DISCONNECTED, /* the peer is gone */
    FAILURE_PROTOCOL,     /* the peer broke the protocol */
    FAILURE_CANCELLED,    /* the caller cancelled it */
};

struct failure {
    enum failure_code code;
    int system_error; /* errno, or 0 */
    char message[FAILURE_MESSAGE_SIZE];
};

/* Records a failure and returns `code`, so that callers can write `return failure_set(…)`.
 * `failure` may be NULL: then only the code is returned. A message that is too long is cut, and is
 * made one printable line: it may quote what others have sent. */
__attribute__((format(printf, 3, 4))) enum failure_code failure_set(
    struct failure *failure, enum failure_code code, const char *format, ...);

/* Like failure_set with FAILURE_SYSTEM: appends ": " and the text of `system_error`, and for EMFILE
 * the limit that was reached. */
__attribute__((format(printf, 3, 4))) enum failure_code failure_set_system(
    struct failure *failure, int system_error, const char *format, ...);

/* The words for an errno, in English. Unlike strerror it takes no lock of libc's for translations:
 * in a copy of a program with threads that may stay locked for ever. */
const char *failure_system_words(int system_error);

/* Puts "context: " in front of the message; returns the failure's code. */
__attribute__((format(printf, 2, 3))) enum failure_code failure_wrap(
    struct failure *failure, const char *format, ...);

#endif
