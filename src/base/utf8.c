/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/utf8.h"

#include <string.h>

size_t utf8_character_length(const uint8_t *bytes, size_t length) {
    if (length == 0) {
        return 0;
    }
    uint8_t first = bytes[0];
    size_t needed = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (needed == 0 || first > 0xf4 || needed > length) {
        return 0;
    }
    for (size_t i = 1; i < needed; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
        (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f)) {
        return 0;
    }
    return needed;
}

static bool is_surrogate(const uint8_t *bytes, size_t length) {
    return length >= 3 && bytes[0] == 0xed && (bytes[1] & 0xe0) == 0xa0 &&
           (bytes[2] & 0xc0) == 0x80;
}

bool utf8_is_python_text(const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length;) {
        size_t one = utf8_character_length(bytes + i, length - i);
        if (one == 0 && is_surrogate(bytes + i, length - i)) {
            one = 3;
        }
        if (one == 0) {
            return false;
        }
        i += one;
    }
    return true;
}

/* The length of "ESC [ numbers m" at the start of the bytes, or 0. */
static size_t colour_length(const uint8_t *bytes, size_t length) {
    if (length < 3 || bytes[0] != 0x1b || bytes[1] != '[') {
        return 0;
    }
    size_t end = 2;
    while (end < length && ((bytes[end] >= '0' && bytes[end] <= '9') || bytes[end] == ';')) {
        end++;
    }
    return end < length && bytes[end] == 'm' ? end + 1 : 0;
}

static bool is_control(const uint8_t *character, size_t length) {
    return length == 2 ? character[0] == 0xc2 && character[1] < 0xa0
                       : character[0] < ' ' || character[0] == 0x7f;
}

size_t utf8_make_printable(char *text, size_t length) {
    const uint8_t *bytes = (const uint8_t *)text;
    size_t kept = 0;
    for (size_t i = 0, taken = 0; i < length; i += taken) {
        taken = colour_length(bytes + i, length - i);
        if (taken > 0) {
            continue;
        }
        taken = utf8_character_length(bytes + i, length - i);
        if (taken == 0 || (is_control(bytes + i, taken) && text[i] != '\n' && text[i] != '\t')) {
            taken = taken == 0 ? 1 : taken;
            text[kept++] = '?';
        } else {
            memmove(text + kept, text + i, taken);
            kept += taken;
        }
    }
    return kept;
}

void utf8_make_string_printable(char *string) {
    string[utf8_make_printable(string, strlen(string))] = '\0';
}

/* Marks by which text is shown in another order than it has: U+061C, U+200E and F, U+202A to E,
 * U+2066 to 9. */
static bool is_direction_mark(const uint8_t *bytes, size_t length) {
    if (length == 2) {
        return bytes[0] == 0xd8 && bytes[1] == 0x9c;
    }
    return length == 3 && bytes[0] == 0xe2 &&
           ((bytes[1] == 0x80 &&
                ((bytes[2] >= 0xaa && bytes[2] <= 0xae) || bytes[2] == 0x8e || bytes[2] == 0x8f)) ||
               (bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9));
}

void utf8_make_line_printable(char *line) {
    size_t length = utf8_make_printable(line, strlen(line));
    size_t kept = 0;
    for (size_t at = 0, taken = 0; at < length; at += taken) {
        taken = utf8_character_length((const uint8_t *)line + at, length - at);
        if (line[at] == '\n' || line[at] == '\t' ||
            is_direction_mark((const uint8_t *)line + at, taken)) {
            line[kept++] = '?';
        } else {
            memmove(line + kept, line + at, taken);
            kept += taken;
        }
    }
    line[kept] = '\0';
}
