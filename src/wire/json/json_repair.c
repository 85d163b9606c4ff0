/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/json/json_repair.h"

#include <stdbool.h>

#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define REPLACEMENT_ESCAPE "\\ufffd"
#define LARGEST_NUMBER "1.7976931348623157e308"

/* Copies one character, or replaces one byte. Returns the number of bytes consumed. */
static size_t copy_character(struct slice rest, struct text *out) {
    size_t length = utf8_character_length(rest.data, rest.length);
    if (length == 0) {
        text_append(out, REPLACEMENT);
        return 1;
    }
    text_append_bytes(out, (const char *)rest.data, length);
    return length;
}

void json_repair_text(struct slice input, struct text *out) {
    for (size_t i = 0; i < input.length;) {
        if (input.data[i] == 0) {
            text_append(out, REPLACEMENT);
            i++;
        } else {
            i += copy_character((struct slice){input.data + i, input.length - i}, out);
        }
    }
}

static int hexadecimal_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The value of the escape \uXXXX at the start; -1 when there is none. */
static int code_unit(struct slice rest) {
    if (rest.length < 6 || rest.data[0] != '\\' || rest.data[1] != 'u') {
        return -1;
    }
    int value = 0;
    for (size_t i = 2; i < 6; i++) {
        int digit = hexadecimal_digit(rest.data[i]);
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

static bool is_surrogate(int unit, int first) {
    return unit >= first && unit < first + 0x400;
}

/* Copies or replaces an escape that starts with a backslash. Returns the number of bytes
 * consumed. */
static size_t copy_escape(struct slice rest, struct text *out) {
    int unit = code_unit(rest);
    if (unit < 0) {
        size_t taken = rest.length < 2 || rest.data[1] >= 0x80 ? 1 : 2;
        text_append_bytes(out, (const char *)rest.data, taken);
        return taken;
    }
    if (is_surrogate(unit, 0xd800)) {
        struct slice next = {rest.data + 6, rest.length - 6};
        if (is_surrogate(code_unit(next), 0xdc00)) {
            text_append_bytes(out, (const char *)rest.data, 12);
            return 12;
        }
    }
    if (unit == 0 || is_surrogate(unit, 0xd800) || is_surrogate(unit, 0xdc00)) {
        text_append(out, REPLACEMENT_ESCAPE);
    } else {
        text_append_bytes(out, (const char *)rest.data, 6);
    }
    return 6;
}

/* Replaces NaN, Infinity or -Infinity. Returns the number of bytes consumed, 0 for anything
 * else. */
static size_t copy_non_number(struct slice rest, struct text *out) {
    static const struct {
        const char *name;
        const char *replacement;
    } numbers[] = {
        {"NaN", "null"}, {"Infinity", LARGEST_NUMBER}, {"-Infinity", "-" LARGEST_NUMBER}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct slice name = slice_from_string(numbers[i].name);
        if (slice_starts_with(rest, name)) {
            text_append(out, numbers[i].replacement);
            return name.length;
        }
    }
    return 0;
}

enum failure_code json_repair(struct slice input, int maximum_depth, struct text *out) {
    bool is_in_string = false;
    int depth = 0;
    for (size_t i = 0; i < input.length;) {
        struct slice rest = {input.data + i, input.length - i};
        uint8_t byte = rest.data[0];
        if (is_in_string && byte == '\\') {
            i += copy_escape(rest, out);
            continue;
        }
        if (byte == '"') {
            is_in_string = !is_in_string;
        } else if (!is_in_string && (byte == '{' || byte == '[')) {
            depth++;
        } else if (!is_in_string && (byte == '}' || byte == ']')) {
            depth--;
        }
        if (depth > maximum_depth) {
            return FAILURE_LIMIT;
        }
        size_t taken = is_in_string ? 0 : copy_non_number(rest, out);
        i += taken > 0 ? taken : copy_character(rest, out);
    }
    return FAILURE_NONE;
}
