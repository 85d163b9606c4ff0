/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_counter.h"

#include <stdbool.h>

#include "base/text.h"

static bool is_blank(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

enum failure_code store_counter_parse(struct slice text, int64_t *out_value) {
    const uint8_t *position = text.data;
    const uint8_t *end = text.length == 0 ? position : position + text.length;
    while (position < end && is_blank(*position)) {
        position++;
    }
    bool is_negative = position < end && *position == '-';
    if (position < end && (*position == '-' || *position == '+')) {
        position++;
    }
    if (position == end || !text_is_digit(*position)) {
        return FAILURE_MALFORMED;
    }
    /* The value is built as a negative number, because the negative range is larger. */
    int64_t value = 0;
    for (; position < end && text_is_digit(*position); position++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *position - '0', &value)) {
            return FAILURE_LIMIT;
        }
    }
    if (!is_negative && value == INT64_MIN) {
        return FAILURE_LIMIT;
    }
    *out_value = is_negative ? value : -value;
    return FAILURE_NONE;
}

struct slice store_counter_format(int64_t value, uint8_t buffer[STORE_COUNTER_SIZE]) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint8_t *end = buffer + STORE_COUNTER_SIZE;
    uint8_t *start = end;
    do {
        *--start = (uint8_t)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (value < 0) {
        *--start = '-';
    }
    return (struct slice){start, (size_t)(end - start)};
}
