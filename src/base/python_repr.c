/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/python_repr.h"

#include <stdint.h>
#include <string.h>

/* The length of the UTF-8 character at `bytes`; 0 when there is no valid one. The terminating NUL
 * ends an incomplete character, since it is no continuation byte. */
static size_t character_length(const unsigned char *bytes) {
    size_t length = 0;
    unsigned char lowest = 0x80;
    unsigned char highest = 0xbf;
    if (bytes[0] < 0x80) {
        return 1;
    }
    if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf) {
        length = 2;
    } else if (bytes[0] >= 0xe0 && bytes[0] <= 0xef) {
        length = 3;
        lowest = bytes[0] == 0xe0 ? 0xa0 : lowest;   /* smaller values would be overlong */
        highest = bytes[0] == 0xed ? 0x9f : highest; /* larger values are surrogates */
    } else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4) {
        length = 4;
        lowest = bytes[0] == 0xf0 ? 0x90 : lowest;
        highest = bytes[0] == 0xf4 ? 0x8f : highest; /* larger values are beyond U+10FFFF */
    } else {
        return 0;
    }
    if (bytes[1] < lowest || bytes[1] > highest) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (bytes[i] < 0x80 || bytes[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

static void append_single_byte(struct text *out, char byte, char quote) {
    if (byte == quote || byte == '\\') {
        text_append_format(out, "\\%c", byte);
    } else if (byte == '\n') {
        text_append(out, "\\n");
    } else if (byte == '\r') {
        text_append(out, "\\r");
    } else if (byte == '\t') {
        text_append(out, "\\t");
    } else if (byte < ' ' || byte == 0x7f) {
        text_append_format(out, "\\x%02x", (unsigned)byte);
    } else {
        text_append_bytes(out, &byte, 1);
    }
}

/* C1 controls, the no-break space and the soft hyphen: not printable for Python. */
static bool is_hidden_latin(const unsigned char *bytes) {
    return bytes[0] == 0xc2 && (bytes[1] <= 0xa0 || bytes[1] == 0xad);
}

void python_repr_append(struct text *out, const char *string) {
    char quote = strchr(string, '\'') != NULL && strchr(string, '"') == NULL ? '"' : '\'';
    text_append_bytes(out, &quote, 1);
    while (*string != '\0') {
        const unsigned char *bytes = (const unsigned char *)string;
        size_t length = character_length(bytes);
        if (length == 0) {
            text_append_format(out, "\\udc%02x", bytes[0]);
            length = 1;
        } else if (length == 1) {
            append_single_byte(out, *string, quote);
        } else if (is_hidden_latin(bytes)) {
            text_append_format(out, "\\x%02x", bytes[1]);
        } else {
            text_append_bytes(out, string, length);
        }
        string += length;
    }
    text_append_bytes(out, &quote, 1);
}
