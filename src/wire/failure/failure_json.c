/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/failure_json.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/launch/launch_config.h"
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

/* Json. */

#define EXIT_CODE_MAXIMUM 255
#define SIGNAL_MAXIMUM 64
#define LAST_SECOND_OF_9999 INT64_C(253402300799)

static const char left_out[] = "(the beginning is left out)\n";

/* Writing. */

/* Where the last `length` bytes of a valid text begin, rounded up to the start of a character. */
static const char *last_bytes(const struct text *text, size_t length) {
    const char *start = text->data + text->length - length;
    while (((unsigned char)*start & 0xc0) == 0x80) {
        start++;
    }
    return start;
}

/* Cuts the text to at most `length` bytes, rounded down to whole characters. */
static void cut(struct text *text, size_t length) {
    while (((unsigned char)text->data[length] & 0xc0) == 0x80) {
        length--;
    }
    text->data[length] = '\0';
    text->length = length;
}

static void write_text(const char *name, const char *value, struct text *out) {
    if (value == NULL) {
        return;
    }
    struct text valid = {0};
    json_repair_text(slice_from_string(value), &valid);
    if (valid.length > FAILURE_JSON_TEXT_MAXIMUM) {
        cut(&valid, FAILURE_JSON_TEXT_MAXIMUM);
    }
    text_append_format(out, ", \"%s\": ", name);
    json_text_write(text_string(&valid), out);
    text_clear(&valid);
}

static void write_message(const struct failure_account *account, struct text *out) {
    if (account->message == NULL) {
        return;
    }
    struct text valid = {0};
    struct text shown = {0};
    json_repair_text(slice_from_string(account->message), &valid);
    if (valid.length > FAILURE_JSON_MESSAGE_MAXIMUM) {
        text_append(&shown, left_out);
        text_append(&shown, last_bytes(&valid, FAILURE_JSON_MESSAGE_MAXIMUM - strlen(left_out)));
    } else {
        text_append(&shown, text_string(&valid));
    }
    text_append_format(out, ", \"%s\": ", account->is_message_object ? "traceback" : "message");
    json_text_write(text_string(&shown), out);
    text_clear(&valid);
    text_clear(&shown);
}

static void write_end(const struct failure_account *account, struct text *out) {
    if (account->stuck.nanoseconds > 0) {
        text_append_format(out, ", \"stuck_milliseconds\": %" PRId64,
            duration_milliseconds_ceiling(account->stuck));
    } else if (account->start_message == NULL) {
        text_append_format(out, ", \"%s\": %d", account->exit.is_signal ? "signal" : "exit_code",
            account->exit.value);
        if (account->exit.has_dumped_core) {
            text_append(out, ", \"has_dumped_core\": true");
        }
    }
}

void failure_json_write(const struct failure_account *account, struct text *out) {
    text_append_format(out,
        "{\"rank\": %d, \"local_rank\": %d, \"group_rank\": %d, \"role_rank\": %d, \"time\": "
        "%" PRId64 ", \"pid\": %" PRId64,
        account->rank, account->local_rank, account->group_rank, account->role_rank,
        account->seconds, account->pid);
    write_end(account, out);
    write_text("host", account->host, out);
    write_text("node", account->node, out);
    write_text("start_message", account->start_message, out);
    write_text("error_file", account->error_file, out);
    write_text("log_file", account->log_file, out);
    write_text("summary", account->summary, out);
    write_text("evidence", account->evidence, out);
    write_text("note", account->note, out);
    write_message(account, out);
    text_append(out, "}");
}

/* Reading. */

/* `code` is the first failure; after it, nothing more is read. */
struct reader {
    const struct json_value *root;
    enum failure_code code;
};

static void refuse(struct reader *reader, enum failure_code code) {
    if (reader->code == FAILURE_NONE) {
        reader->code = code;
    }
}

static int64_t read_integer(
    struct reader *reader, const char *name, int64_t minimum, int64_t maximum) {
    int64_t value;
    if (!json_value_integer(json_value_member(reader->root, name), &value)) {
        refuse(reader, FAILURE_MALFORMED);
        return minimum;
    }
    if (value < minimum || value > maximum) {
        refuse(reader, FAILURE_LIMIT);
        return minimum;
    }
    return value;
}

static bool has_member(const struct reader *reader, const char *name) {
    return json_value_member(reader->root, name) != NULL;
}

/* Returns a copy of the text, or NULL when the member is absent. */
static char *read_text(struct reader *reader, const char *name, size_t maximum) {
    if (!has_member(reader, name)) {
        return NULL;
    }
    const char *text = json_value_text(json_value_member(reader->root, name));
    if (text == NULL) {
        refuse(reader, FAILURE_MALFORMED);
    } else if (strlen(text) > maximum) {
        refuse(reader, FAILURE_LIMIT);
        text = NULL;
    }
    return memory_duplicate_string(text);
}

static void read_end(struct reader *reader, struct failure_account *account) {
    if (has_member(reader, "stuck_milliseconds")) {
        account->stuck = duration_from_milliseconds(
            read_integer(reader, "stuck_milliseconds", 1, INT64_MAX / NANOSECONDS_PER_MILLISECOND));
    } else if (account->start_message == NULL) {
        account->exit.is_signal = has_member(reader, "signal");
        account->exit.value = account->exit.is_signal
                                  ? (int)read_integer(reader, "signal", 1, SIGNAL_MAXIMUM)
                                  : (int)read_integer(reader, "exit_code", 0, EXIT_CODE_MAXIMUM);
        account->exit.has_dumped_core =
            account->exit.is_signal &&
            json_value_is_true(json_value_member(reader->root, "has_dumped_core"));
    }
}

static void read_numbers(struct reader *reader, struct failure_account *account) {
    account->rank = (int)read_integer(reader, "rank", 0, INT_MAX);
    account->local_rank =
        (int)read_integer(reader, "local_rank", 0, LAUNCH_MAXIMUM_WORKERS_PER_NODE - 1);
    account->group_rank = (int)read_integer(reader, "group_rank", 0, LAUNCH_MAXIMUM_NODES - 1);
    account->role_rank = (int)read_integer(reader, "role_rank", 0, INT_MAX);
    account->seconds = read_integer(reader, "time", 0, LAST_SECOND_OF_9999);
    account->pid = read_integer(reader, "pid", 0, INT64_MAX);
}

static void read_texts(struct reader *reader, struct failure_account *account) {
    account->host = read_text(reader, "host", FAILURE_JSON_TEXT_MAXIMUM);
    account->node = read_text(reader, "node", FAILURE_JSON_TEXT_MAXIMUM);
    account->start_message = read_text(reader, "start_message", FAILURE_JSON_TEXT_MAXIMUM);
    account->error_file = read_text(reader, "error_file", FAILURE_JSON_TEXT_MAXIMUM);
    account->log_file = read_text(reader, "log_file", FAILURE_JSON_TEXT_MAXIMUM);
    account->summary = read_text(reader, "summary", FAILURE_JSON_TEXT_MAXIMUM);
    account->evidence = read_text(reader, "evidence", FAILURE_JSON_TEXT_MAXIMUM);
    account->note = read_text(reader, "note", FAILURE_JSON_TEXT_MAXIMUM);
    account->is_message_object = has_member(reader, "traceback");
    account->message = read_text(
        reader, account->is_message_object ? "traceback" : "message", FAILURE_JSON_MESSAGE_MAXIMUM);
    if (account->host == NULL) {
        refuse(reader, FAILURE_MALFORMED);
    }
}

enum failure_code failure_json_read(struct slice input, struct failure_account *out_account) {
    struct json_document *document;
    enum failure_code code = json_document_parse(input, FAILURE_JSON_MAXIMUM_SIZE, &document, NULL);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct reader reader = {.root = json_document_root(document)};
    struct failure_account account = {0};
    read_numbers(&reader, &account);
    read_texts(&reader, &account);
    read_end(&reader, &account);
    json_document_free(document);
    if (reader.code != FAILURE_NONE) {
        failure_account_clear(&account);
        return reader.code;
    }
    *out_account = account;
    return FAILURE_NONE;
}
