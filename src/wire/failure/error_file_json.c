/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/error_file_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/json/json_document.h"

#define NOT_AVAILABLE "<N/A>"

static void explain(struct text *out_reason, const char *reason) {
    if (out_reason != NULL) {
        text_append(out_reason, reason);
    }
}

/* Reads a number or a text as Python's int(value) does. Where Python would raise, this returns
 * false. */
static bool read_timestamp(const struct json_value *value, int64_t *out_timestamp) {
    const char *text = json_value_text(value);
    if (text != NULL) {
        return text_parse_integer(text, out_timestamp) == FAILURE_NONE;
    }
    if (json_value_integer(value, out_timestamp)) {
        return true;
    }
    double number;
    if (!json_value_number(value, &number) || !(number > -9e18 && number < 9e18)) {
        return false;
    }
    *out_timestamp = (int64_t)number;
    return true;
}

/* A timestamp is plausible when it lies between 1970 and the year 9999. */
static bool is_plausible(int64_t seconds) {
    return seconds > 0 && seconds < INT64_C(253402300800);
}

static const char *message_of_object(const struct json_value *message) {
    const char *traceback =
        json_value_text(json_value_member(json_value_member(message, "extraInfo"), "py_callstack"));
    if (traceback != NULL) {
        return traceback;
    }
    const char *text = json_value_text(json_value_member(message, "message"));
    return text != NULL ? text : NOT_AVAILABLE;
}

/* The first line of a message, or the last line of a traceback, which says what happened. NULL when
 * there are only blanks. The caller frees the result. */
static char *summarize(const char *message) {
    static const char blanks[] = " \t\n\r\f\v";
    bool is_traceback = text_starts_with(message, "Traceback ");
    char *summary = NULL;
    while (summary == NULL || is_traceback) {
        message += strspn(message, blanks);
        size_t length = strcspn(message, "\r\n");
        if (length == 0) {
            break;
        }
        free(summary);
        summary = text_format("%.*s", (int)length, message);
        message += length;
    }
    return summary;
}

static enum failure_code read_root(
    const struct json_value *root, struct error_file *out_file, struct text *out_reason) {
    const struct json_value *message = json_value_member(root, "message");
    const char *text = json_value_text(message);
    const char *summarized = text;
    const struct json_value *timestamp;
    struct error_file file = {0};
    if (text != NULL) {
        timestamp = json_value_member(root, "timestamp");
    } else if (json_value_is_object(message)) {
        summarized = json_value_text(json_value_member(message, "message"));
        text = message_of_object(message);
        timestamp = json_value_member(json_value_member(message, "extraInfo"), "timestamp");
        file.is_message_object = true;
    } else {
        explain(out_reason,
            message == NULL ? "no message in it" : "its message is neither text nor an object");
        return FAILURE_MALFORMED;
    }
    int64_t seconds;
    if (read_timestamp(timestamp, &seconds) && is_plausible(seconds)) {
        file.has_timestamp = true;
        file.timestamp = seconds;
    }
    file.message = memory_duplicate_string(text);
    file.summary = summarized == NULL ? NULL : summarize(summarized);
    *out_file = file;
    return FAILURE_NONE;
}

enum failure_code error_file_json_read(
    struct slice input, struct error_file *out_file, struct text *out_reason) {
    if (input.length == 0) {
        explain(out_reason, "empty");
        return FAILURE_MALFORMED;
    }
    struct json_document *document;
    enum failure_code code =
        json_document_parse(input, ERROR_FILE_JSON_MAXIMUM_SIZE, &document, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_root(json_document_root(document), out_file, out_reason);
    json_document_free(document);
    return code;
}

void error_file_clear(struct error_file *file) {
    free(file->message);
    free(file->summary);
    *file = (struct error_file){0};
}

void error_file_json_write(const struct failure_account *account, struct text *out) {
    const char *message = account->message == NULL ? NOT_AVAILABLE : account->message;
    int exit_code = process_exit_python_code(account->exit);
    text_append(out, "{\"message\": {\"message\": ");
    json_text_write(account->summary == NULL ? message : account->summary, out);
    text_append(out, ", \"extraInfo\": {\"py_callstack\": ");
    json_text_write(message, out);
    text_append_format(out, ", \"timestamp\": \"%" PRId64 "\"}", account->seconds);
    if (exit_code != 0) {
        text_append_format(out, ", \"errorCode\": %d", exit_code);
    }
    text_append(out, "}}");
}

enum failure_code error_file_json_write_for_parent(
    struct slice input, int exit_code, struct text *out) {
    struct json_document *document;
    enum failure_code code =
        json_document_parse(input, ERROR_FILE_JSON_MAXIMUM_SIZE, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct json_value *root = json_document_root(document);
    struct json_value *message = json_value_member(root, "message");
    if (json_value_is_object(message) && exit_code != 0) {
        json_value_set_integer(message, "errorCode", exit_code);
    }
    json_value_write(root, out);
    json_document_free(document);
    return FAILURE_NONE;
}
