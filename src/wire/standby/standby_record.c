/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/standby/standby_record.h"

#include <string.h>

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
