/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/standby/gate_message.h"

#include <string.h>

#include "base/bytes.h"

#define GREETING "hello "
#define VERSION "1 "
/* The longest first line, with its newline. */
#define LINE_MAXIMUM 32
#define PID_DIGITS 10

static bool read_number(struct slice digits, int64_t *out_number) {
    int64_t number = 0;
    if (digits.length == 0 || digits.length > PID_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < digits.length; i++) {
        if (!text_is_digit(digits.data[i])) {
            return false;
        }
        number = number * 10 + (digits.data[i] - '0');
    }
    *out_number = number;
    return true;
}

enum failure_code standby_record_read_hello(
    struct slice record, int64_t *out_pid, struct slice *out_imports) {
    size_t reach = record.length < LINE_MAXIMUM ? record.length : LINE_MAXIMUM;
    const uint8_t *end = reach == 0 ? NULL : memchr(record.data, '\n', reach);
    if (end == NULL) {
        return reach < LINE_MAXIMUM ? FAILURE_INCOMPLETE : FAILURE_MALFORMED;
    }
    struct slice line = {record.data, (size_t)(end - record.data)};
    if (!slice_starts_with(line, slice_from_string(GREETING))) {
        return FAILURE_MALFORMED;
    }
    struct slice rest = slice_from(line, strlen(GREETING));
    if (!slice_starts_with(rest, slice_from_string(VERSION))) {
        return FAILURE_UNSUPPORTED;
    }
    if (!read_number(slice_from(rest, strlen(VERSION)), out_pid)) {
        return FAILURE_MALFORMED;
    }
    *out_imports = slice_from(record, line.length + 1);
    return FAILURE_NONE;
}

/* Gate message. */

#define WORD 4

static uint32_t word_at(struct slice body, size_t index) {
    return little_endian_load32(body.data + index * WORD);
}

static enum failure_code read_hello(struct slice body, struct gate_message *out_message) {
    if (body.length != 2 * WORD) {
        return FAILURE_MALFORMED;
    }
    if (word_at(body, 0) != GATE_VERSION) {
        return FAILURE_UNSUPPORTED;
    }
    *out_message = (struct gate_message){.kind = GATE_MESSAGE_HELLO};
    out_message->hello.version = word_at(body, 0);
    out_message->hello.pid = word_at(body, 1);
    return FAILURE_NONE;
}

static enum failure_code read_ready(
    struct slice body, bool is_at_line, struct gate_message *out_message) {
    if (body.length != 4 * WORD) {
        return FAILURE_MALFORMED;
    }
    *out_message = (struct gate_message){.kind = GATE_MESSAGE_READY};
    out_message->ready.modules = word_at(body, 0);
    out_message->ready.skipped = word_at(body, 1);
    out_message->ready.cpu_milliseconds = word_at(body, 2);
    out_message->ready.memory_kib = word_at(body, 3);
    out_message->ready.is_at_line = is_at_line;
    return FAILURE_NONE;
}

enum failure_code gate_message_read(struct slice packet, struct gate_message *out_message) {
    if (packet.length == 0 || packet.length > GATE_MESSAGE_MAXIMUM) {
        return FAILURE_MALFORMED;
    }
    struct slice body = slice_from(packet, 1);
    switch (packet.data[0]) {
    case 'H':
        return read_hello(body, out_message);
    case 'P':
    case 'A':
        return read_ready(body, packet.data[0] == 'A', out_message);
    case 'E':
        *out_message = (struct gate_message){.kind = GATE_MESSAGE_FAILED, .reason = body};
        return FAILURE_NONE;
    case 'D':
        *out_message = (struct gate_message){.kind = GATE_MESSAGE_DIRTY, .reason = body};
        return FAILURE_NONE;
    case 'X':
        *out_message = (struct gate_message){.kind = GATE_MESSAGE_LEFT_OUT, .name = body};
        return FAILURE_NONE;
    case 'U':
        *out_message = (struct gate_message){.kind = GATE_MESSAGE_UNSUITED, .reason = body};
        return FAILURE_NONE;
    case 'R':
        if (body.length != 0) {
            return FAILURE_MALFORMED;
        }
        *out_message = (struct gate_message){.kind = GATE_MESSAGE_THROUGH};
        return FAILURE_NONE;
    default:
        return FAILURE_MALFORMED;
    }
}

static void append(struct bytes *out_bytes, const void *data, size_t length) {
    (void)!bytes_append(out_bytes, data, length); /* there is no ceiling */
}

static void append_word(struct bytes *out_bytes, uint32_t value) {
    uint8_t word[WORD];
    little_endian_store32(word, value);
    append(out_bytes, word, sizeof word);
}

void gate_message_write_body(
    const char *directory, const struct text_list *environment, struct bytes *out_bytes) {
    append_word(out_bytes, (uint32_t)strlen(directory));
    append(out_bytes, directory, strlen(directory));
    for (size_t i = 0; i < environment->count; i++) {
        append(out_bytes, environment->items[i], strlen(environment->items[i]) + 1);
    }
}

void gate_message_write_pages(uint32_t pid, struct bytes *out_bytes) {
    append(out_bytes, "W", 1);
    append_word(out_bytes, pid);
}

void gate_message_write_go(uint32_t flags, struct bytes *out_bytes) {
    append(out_bytes, "G", 1);
    append_word(out_bytes, flags);
}
