/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/utf8.h"

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

bool utf8_is_python_text(struct slice bytes) {
    for (size_t i = 0; i < bytes.length;) {
        size_t length = utf8_character_length(bytes.data + i, bytes.length - i);
        if (length == 0 && is_surrogate(bytes.data + i, bytes.length - i)) {
            length = 3;
        }
        if (length == 0) {
            return false;
        }
        i += length;
    }
    return true;
}
