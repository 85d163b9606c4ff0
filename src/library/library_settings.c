/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/library_settings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

enum muster_error library_error(enum failure_code code) {
    switch (code) {
    case FAILURE_NONE:
        return MUSTER_OK;
    case FAILURE_INCOMPLETE:
    case FAILURE_MALFORMED:
    case FAILURE_PROTOCOL:
        return MUSTER_ERROR_PROTOCOL;
    case FAILURE_LIMIT:
        return MUSTER_ERROR_LIMIT;
    case FAILURE_MISSING:
        return MUSTER_ERROR_MISSING;
    case FAILURE_INVALID:
    case FAILURE_AMBIGUOUS:
        return MUSTER_ERROR_INVALID;
    case FAILURE_UNSUPPORTED:
        return MUSTER_ERROR_UNSUPPORTED;
    case FAILURE_SYSTEM:
        return MUSTER_ERROR_SYSTEM;
    case FAILURE_TIMEOUT:
        return MUSTER_ERROR_TIMEOUT;
    case FAILURE_DISCONNECTED:
        return MUSTER_ERROR_DISCONNECTED;
    case FAILURE_CANCELLED:
        return MUSTER_ERROR_CANCELLED;
    }
    return MUSTER_ERROR_SYSTEM;
}

const char *muster_error_text(enum muster_error error) {
    switch (error) {
    case MUSTER_OK:
        return "no error";
    case MUSTER_ERROR_INVALID:
        return "invalid value";
    case MUSTER_ERROR_LIMIT:
        return "limit passed";
    case MUSTER_ERROR_STATE:
        return "not possible now";
    case MUSTER_ERROR_FORKED:
        return "belongs to another process";
    case MUSTER_ERROR_MEMORY:
        return "out of memory";
    case MUSTER_ERROR_MISSING:
        return "missing";
    case MUSTER_ERROR_UNSUPPORTED:
        return "not supported";
    case MUSTER_ERROR_TIMEOUT:
        return "timed out";
    case MUSTER_ERROR_DISCONNECTED:
        return "disconnected";
    case MUSTER_ERROR_PROTOCOL:
        return "protocol broken";
    case MUSTER_ERROR_CANCELLED:
        return "cancelled";
    case MUSTER_ERROR_SYSTEM:
        return "system error";
    case MUSTER_ERROR_CLOSED:
        return "closed";
    case MUSTER_ERROR_GRACEFUL_EXIT:
        return "ended without this node";
    }
    return "unknown";
}

const char *muster_version(void) {
    return MUSTER_VERSION;
}

static void fill_in(struct muster_failure *out_failure, enum muster_error error, int system_error) {
    out_failure->error = error;
    out_failure->system_error = system_error;
}

enum muster_error library_fail(
    struct muster_failure *out_failure, enum muster_error error, const char *format, ...) {
    if (out_failure != NULL) {
        va_list arguments;
        fill_in(out_failure, error, 0);
        va_start(arguments, format);
        vsnprintf(out_failure->message, sizeof out_failure->message, format, arguments);
        va_end(arguments);
        utf8_make_line_printable(out_failure->message);
    }
    return error;
}

enum muster_error library_pass_on(
    struct muster_failure *out_failure, const struct failure *failure) {
    enum muster_error error = library_error(failure->code);
    if (error == MUSTER_ERROR_SYSTEM && failure->system_error == ENOMEM) {
        error = MUSTER_ERROR_MEMORY;
    }
    if (out_failure != NULL) {
        fill_in(out_failure, error, failure->system_error);
        snprintf(out_failure->message, sizeof out_failure->message, "%s", failure->message);
    }
    return error;
}

/* Memory. */

/* For what libuv and others take, which know nothing of the house's reserve. */
#define FOREIGN_BYTES 65536

enum muster_error library_memory_check(struct muster_failure *out_failure) {
    if (spare_memory_keep_reserve() && spare_memory_is_there(FOREIGN_BYTES)) {
        return MUSTER_OK;
    }
    return library_fail(out_failure, MUSTER_ERROR_MEMORY, "there is no memory");
}

bool library_memory_is_there(void) {
    if (library_memory_check(NULL) != MUSTER_OK) {
        errno = ENOMEM;
        return false;
    }
    return true;
}

/* Settings. */

/* A struct cannot be that large: its initialiser was forgotten. */
#define LARGEST_STRUCT 65536
/* The kernel takes no longer path. */
#define PATH_BYTES 4095
#define DEFAULT_SILENCE 180
#define LEAST_SILENCE 2
/* About 30 years. It is counted with, so "for ever" would not do. */
#define LONGEST_SILENCE 1e9

static bool is_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

enum muster_error library_settings_read(
    const void *given, size_t least, void *out, size_t size, struct muster_failure *out_failure) {
    size_t given_size = 0;
    if (given != NULL) {
        memcpy(&given_size, given, sizeof given_size);
    }
    if (given_size < least || given_size > LARGEST_STRUCT) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID,
            given == NULL ? "the settings are NULL"
                          : "the settings do not begin with their initialiser");
    }
    size_t known = given_size < size ? given_size : size;
    if (!is_zero((const unsigned char *)given + known, given_size - known)) {
        return library_fail(out_failure, MUSTER_ERROR_UNSUPPORTED,
            "the settings have a field that libmuster %s does not know", muster_version());
    }
    memset(out, 0, size);
    memcpy(out, given, known);
    return MUSTER_OK;
}

enum muster_error library_text_check(
    const char *what, const char *text, size_t maximum, struct muster_failure *out_failure) {
    if (text == NULL || *text == '\0') {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no %s", what);
    }
    if (strnlen(text, maximum + 1) > maximum) {
        return library_fail(
            out_failure, MUSTER_ERROR_LIMIT, "the %s is longer than %zu bytes", what, maximum);
    }
    return MUSTER_OK;
}

enum muster_error library_path_check(
    const char *what, const char *path, struct muster_failure *out_failure) {
    return library_text_check(what, path, PATH_BYTES, out_failure);
}

enum muster_error library_utf8_check(
    const char *what, const char *text, size_t maximum, struct muster_failure *out_failure) {
    enum muster_error error = library_text_check(what, text, maximum, out_failure);
    if (error == MUSTER_OK && !utf8_is_python_text((const uint8_t *)text, strlen(text))) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "the %s is not UTF-8", what);
    }
    return error;
}

/* No name of a machine has a control character or a space. */
static bool is_in_one_word(const char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ' || *text == '\x7f') {
            return false;
        }
    }
    return true;
}

enum muster_error library_host_check(
    const char *what, const char *host, size_t maximum, struct muster_failure *out_failure) {
    enum muster_error error = library_utf8_check(what, host, maximum, out_failure);
    if (error == MUSTER_OK && !is_in_one_word(host)) {
        return library_fail(
            out_failure, MUSTER_ERROR_INVALID, "the %s has a space or a control character", what);
    }
    return error;
}

enum muster_error library_time_read(double seconds, struct duration zero, struct duration *out,
    struct muster_failure *out_failure) {
    if (isnan(seconds)) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "the time is no number");
    }
    *out = seconds < 0 ? DURATION_FOREVER : duration_from_seconds(seconds);
    if (out->nanoseconds == 0) {
        *out = seconds > 0 ? (struct duration){1} : zero;
    }
    return MUSTER_OK;
}

enum muster_error library_silence_read(
    double seconds, struct duration *out, struct muster_failure *out_failure) {
    seconds = seconds == 0 ? DEFAULT_SILENCE : seconds;
    if (!(seconds >= LEAST_SILENCE)) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID,
            "the silence timeout has to be %d or more", LEAST_SILENCE);
    }
    *out = duration_from_seconds(seconds < LONGEST_SILENCE ? seconds : LONGEST_SILENCE);
    return MUSTER_OK;
}

/* Server. */

enum muster_error library_server_check(
    const struct embedded_loop *loop, struct muster_failure *out_failure) {
    if (loop == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "the server is NULL");
    }
    if (!embedded_loop_is_of_this_process(loop)) {
        return library_fail(
            out_failure, MUSTER_ERROR_FORKED, "the server belongs to the process that has made it");
    }
    return MUSTER_OK;
}

enum muster_error library_server_check_outside(
    const struct embedded_loop *loop, struct muster_failure *out_failure) {
    enum muster_error error = library_server_check(loop, out_failure);
    if (error == MUSTER_OK && embedded_loop_is_running(loop)) {
        return library_fail(out_failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    return error;
}

enum muster_error library_server_process(
    struct embedded_loop *loop, struct muster_failure *out_failure) {
    enum muster_error error = library_server_check_outside(loop, out_failure);
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error == MUSTER_OK) {
        embedded_loop_process(loop);
    }
    return error;
}
