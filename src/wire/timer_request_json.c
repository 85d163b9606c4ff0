/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/timer_request_json.h"

#include <stdbool.h>

#include "base/memory.h"
#include "core/signal_name.h"
#include "wire/json_document.h"

#define NANOSECONDS_PER_SECOND 1e9
/* About the year 2262: what does not fit into struct wall_time. */
#define NEVER_SECONDS 9.2e9

static enum failure_code refuse(struct text *out_reason, const char *reason) {
    if (out_reason != NULL) {
        text_append(out_reason, reason);
    }
    return FAILURE_MALFORMED;
}

/* Scopes may be of any simple kind; those that are no text go by their spelling. NULL for other
 * values. The caller frees it. */
static char *read_scope(const struct json_value *value) {
    const char *text = json_value_text(value);
    if (text != NULL) {
        return memory_duplicate_string(text);
    }
    if (value == NULL || json_value_is_object(value) || json_value_is_array(value)) {
        return NULL;
    }
    struct text spelling = {0};
    json_value_write(value, &spelling);
    return text_take(&spelling);
}

static enum failure_code read_signal(
    const struct json_value *root, int *out_signal, struct text *out_reason) {
    int64_t signal;
    if (!json_value_integer(json_value_member(root, "signal"), &signal)) {
        return refuse(out_reason, "its signal is missing or no integer");
    }
    if (signal > SIGNAL_NUMBER_REAL_TIME_LAST ||
        (signal > 0 && signal_name_from_number((int)signal) == NULL)) {
        return refuse(out_reason, "there is no signal of its number");
    }
    *out_signal = signal > 0 ? (int)signal : 0;
    return FAILURE_NONE;
}

static enum failure_code read_root(
    const struct json_value *root, struct watchdog_request *out_request, struct text *out_reason) {
    struct watchdog_request request = {0};
    double seconds;
    if (!json_value_is_object(root)) {
        return refuse(out_reason, "it is no object");
    }
    if (!json_value_integer(json_value_member(root, "pid"), &request.pid) || request.pid <= 0) {
        return refuse(out_reason, "its pid is missing or no positive integer");
    }
    if (!json_value_number(json_value_member(root, "expiration_time"), &seconds)) {
        return refuse(out_reason, "its expiration_time is missing or no number");
    }
    if (read_signal(root, &request.signal, out_reason) != FAILURE_NONE) {
        return FAILURE_MALFORMED;
    }
    request.scope = read_scope(json_value_member(root, "scope_id"));
    if (request.scope == NULL) {
        return refuse(out_reason, "its scope_id is missing or no text");
    }
    if (seconds < 0 || seconds > NEVER_SECONDS) {
        request.kind = WATCHDOG_RELEASE;
    } else {
        request.kind = WATCHDOG_ACQUIRE;
        request.expiration.nanoseconds = (int64_t)(seconds * NANOSECONDS_PER_SECOND);
    }
    *out_request = request;
    return FAILURE_NONE;
}

/* What follows from the last place where an object with members begins, other than at the front.
 * JSON text has no such place within a string, unless the string ends there. */
static bool find_last_object(struct slice line, struct slice *out_rest) {
    for (size_t start = line.length; start >= 3; start--) {
        const uint8_t *place = line.data + start - 2;
        if (place[0] == '{' && place[1] == '"') {
            *out_rest = (struct slice){place, line.length - start + 2};
            return true;
        }
    }
    return false;
}

static enum failure_code read_line(
    struct slice line, struct watchdog_request *out_request, struct text *out_reason) {
    struct json_document *document;
    enum failure_code code =
        json_document_parse(line, TIMER_REQUEST_JSON_MAXIMUM_SIZE, &document, out_reason);
    if (code == FAILURE_NONE) {
        code = read_root(json_document_root(document), out_request, out_reason);
        json_document_free(document);
    }
    return code;
}

enum failure_code timer_request_json_read(
    struct slice line, struct watchdog_request *out_request, struct text *out_reason) {
    struct text reason = {0};
    struct slice rest;
    enum failure_code code = read_line(line, out_request, &reason);
    if (code != FAILURE_NONE && find_last_object(line, &rest) &&
        read_line(rest, out_request, NULL) == FAILURE_NONE) {
        code = FAILURE_NONE;
    }
    if (code != FAILURE_NONE && out_reason != NULL) {
        text_append(out_reason, text_string(&reason));
    }
    text_clear(&reason);
    return code;
}
