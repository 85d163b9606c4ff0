/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/watchdog/timer_request_json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"
#include "wire/json/json_document.h"

/* About the year 2262; struct wall_time cannot hold later times. */
#define NEVER_SECONDS 9.2e9

static enum failure_code refuse(struct text *out_reason, const char *reason) {
    if (out_reason != NULL) {
        text_append(out_reason, reason);
    }
    return FAILURE_MALFORMED;
}

/* A scope may be a JSON value of any simple kind. A value that is not a string is used as it is
 * spelled. NULL for other values. The caller frees the result. */
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

/* A fast path for the exact spelling of FileTimerClient and libmuster-timer, because a busy FIFO
 * contains little else. Lines with any difference go to the JSON reader. */

struct cursor {
    const uint8_t *place;
    const uint8_t *end;
};

static bool skip_word(struct cursor *cursor, const char *word) {
    size_t length = strlen(word);
    bool is_there =
        (size_t)(cursor->end - cursor->place) >= length && memcmp(cursor->place, word, length) == 0;
    cursor->place += is_there ? length : 0;
    return is_there;
}

/* Reads between one and `most` digits. */
static bool read_digits(struct cursor *cursor, int most, int64_t *out_number, int *out_count) {
    int64_t number = 0;
    int count = 0;
    while (cursor->place < cursor->end && *cursor->place >= '0' && *cursor->place <= '9' &&
           count <= most) {
        number = number * 10 + (*cursor->place++ - '0');
        count++;
    }
    *out_number = number;
    *out_count = count;
    return count > 0 && count <= most;
}

static bool read_seconds(struct cursor *cursor, struct watchdog_request *request) {
    int64_t seconds;
    int64_t fraction = 0;
    int count;
    if (skip_word(cursor, "-1,")) {
        cursor->place--;
        request->kind = WATCHDOG_RELEASE;
        return true;
    }
    if (!read_digits(cursor, 10, &seconds, &count) || seconds >= (int64_t)NEVER_SECONDS) {
        return false;
    }
    if (skip_word(cursor, ".")) {
        if (!read_digits(cursor, 9, &fraction, &count)) {
            return false;
        }
        for (; count < 9; count++) {
            fraction *= 10;
        }
    }
    request->kind = WATCHDOG_ACQUIRE;
    request->expiration.nanoseconds = seconds * 1000000000 + fraction;
    return true;
}

/* Reads a scope of plain characters: printable ASCII without an escape. */
static bool read_plain_scope(struct cursor *cursor, struct slice *out_scope) {
    const uint8_t *start = cursor->place;
    while (cursor->place < cursor->end && *cursor->place >= 0x20 && *cursor->place < 0x7f &&
           *cursor->place != '"' && *cursor->place != '\\') {
        cursor->place++;
    }
    *out_scope = (struct slice){start, (size_t)(cursor->place - start)};
    return skip_word(cursor, "\"");
}

static bool read_plain(struct slice line, struct watchdog_request *out_request) {
    struct cursor cursor = {line.data, line.data + line.length};
    struct watchdog_request request = {0};
    struct slice scope;
    int64_t signal;
    int count;
    if (!skip_word(&cursor, "{\"version\": 1, \"pid\": ") ||
        !read_digits(&cursor, 10, &request.pid, &count) || request.pid <= 0 ||
        !skip_word(&cursor, ", \"scope_id\": \"") || !read_plain_scope(&cursor, &scope) ||
        !skip_word(&cursor, ", \"expiration_time\": ") || !read_seconds(&cursor, &request) ||
        !skip_word(&cursor, ", \"signal\": ") || !read_digits(&cursor, 2, &signal, &count) ||
        (signal > 0 && signal_name_from_number((int)signal) == NULL) ||
        !(skip_word(&cursor, "}\n") || skip_word(&cursor, "}")) || cursor.place != cursor.end) {
        return false;
    }
    request.signal = (int)signal;
    request.scope = memory_allocate(scope.length + 1);
    memcpy(request.scope, scope.data, scope.length);
    *out_request = request;
    return true;
}

enum failure_code timer_request_json_read(
    struct slice text, struct watchdog_request *out_request, struct text *out_reason) {
    struct json_document *document;
    if (read_plain(text, out_request)) {
        return FAILURE_NONE;
    }
    enum failure_code code =
        json_document_parse(text, TIMER_REQUEST_JSON_MAXIMUM_SIZE, &document, out_reason);
    if (code == FAILURE_NONE) {
        code = read_root(json_document_root(document), out_request, out_reason);
        json_document_free(document);
    }
    return code;
}

/* Where the next object with members begins, the front excluded; the end if there is none. In valid
 * JSON a string contains such a place only at its end. */
static size_t find_next_object(struct slice line) {
    for (size_t start = 1; start + 1 < line.length; start++) {
        if (line.data[start] == '{' && line.data[start + 1] == '"') {
            return start;
        }
    }
    return line.length;
}

static bool is_blank(struct slice line) {
    size_t i = 0;
    while (i < line.length && (line.data[i] == ' ' || line.data[i] == '\t' ||
                                  line.data[i] == '\r' || line.data[i] == '\n')) {
        i++;
    }
    return i == line.length;
}

static bool read_piece(
    struct slice piece, const struct timer_request_visitor *visitor, struct text *out_reason) {
    struct watchdog_request request;
    if (timer_request_json_read(piece, &request, out_reason) != FAILURE_NONE) {
        return false;
    }
    visitor->request(visitor->context, &request);
    watchdog_request_clear(&request);
    return true;
}

/* Each piece is read once, so that the work for a hostile line is bounded by its length. */
static void read_pieces(struct slice line, const struct timer_request_visitor *visitor) {
    while (line.length > 0) {
        size_t length = find_next_object(line);
        struct slice piece = {line.data, length};
        struct text reason = {0};
        if (!is_blank(piece) && !read_piece(piece, visitor, &reason)) {
            visitor->refused(visitor->context, text_string(&reason));
        }
        text_clear(&reason);
        line = (struct slice){line.data + length, line.length - length};
    }
}

void timer_request_json_each(struct slice line, const struct timer_request_visitor *visitor) {
    struct text reason = {0};
    if (!is_blank(line) && !read_piece(line, visitor, &reason)) {
        if (find_next_object(line) == line.length) {
            visitor->refused(visitor->context, text_string(&reason));
        } else {
            read_pieces(line, visitor);
        }
    }
    text_clear(&reason);
}

void timer_request_json_write(const struct watchdog_request *request, struct text *out) {
    text_append_format(out, "{\"version\": 1, \"pid\": %" PRId64 ", \"scope_id\": ", request->pid);
    json_text_write(request->scope, out);
    if (request->kind == WATCHDOG_RELEASE) {
        text_append(out, ", \"expiration_time\": -1, \"signal\": 0}\n");
    } else {
        int64_t microseconds = request->expiration.nanoseconds / 1000;
        text_append_format(out,
            ", \"expiration_time\": %" PRId64 ".%06" PRId64 ", \"signal\": %d}\n",
            microseconds / 1000000, microseconds % 1000000, request->signal);
    }
}
