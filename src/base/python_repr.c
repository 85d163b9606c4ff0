/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/python_repr.h"

#include <string.h>

#include "base/utf8.h"

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
    const char *end = string + strlen(string);
    while (string < end) {
        const unsigned char *bytes = (const unsigned char *)string;
        size_t length = utf8_character_length(bytes, (size_t)(end - string));
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
