/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/failure.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* glibc has it since 2.32. An older one lacks it, so the reference is weak. */
extern const char *strerrordesc_np(int system_error) __attribute__((weak));

const char *failure_system_words(int system_error) {
    const char *words = strerrordesc_np == NULL ? NULL : strerrordesc_np(system_error);
    return words != NULL ? words : strerror(system_error);
}

enum failure_code failure_set(
    struct failure *failure, enum failure_code code, const char *format, ...) {
    if (failure != NULL) {
        failure->code = code;
        failure->system_error = 0;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(failure->message, sizeof failure->message, format, arguments);
        va_end(arguments);
        utf8_make_line_printable(failure->message);
    }
    return code;
}

enum failure_code failure_set_system(
    struct failure *failure, int system_error, const char *format, ...) {
    if (failure != NULL) {
        failure->code = FAILURE_SYSTEM;
        failure->system_error = system_error;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(failure->message, sizeof failure->message, format, arguments);
        va_end(arguments);
        size_t used = strlen(failure->message);
        snprintf(failure->message + used, sizeof failure->message - used, ": %s%s",
            failure_system_words(system_error),
            system_error == EMFILE ? " (limit on open files, see ulimit -n)" : "");
        utf8_make_line_printable(failure->message);
    }
    return FAILURE_SYSTEM;
}

enum failure_code failure_wrap(struct failure *failure, const char *format, ...) {
    assert(failure != NULL); /* the code returned is the one in `failure` */
    char inner[FAILURE_MESSAGE_SIZE];
    memcpy(inner, failure->message, sizeof inner);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    size_t used = strlen(failure->message);
    snprintf(failure->message + used, sizeof failure->message - used, ": %s", inner);
    utf8_make_line_printable(failure->message);
    return failure->code;
}
