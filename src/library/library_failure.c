/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/library_failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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
