/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/failure/last_lines.h"

#include <string.h>

#include "base/utf8.h"

static const uint8_t *find_newline(const uint8_t *at, const uint8_t *end) {
    return at == end ? NULL : memchr(at, '\n', (size_t)(end - at));
}

/* Where the last lines begin. */
static const uint8_t *find_start(struct slice bytes) {
    size_t at =
        bytes.length > 0 && bytes.data[bytes.length - 1] == '\n' ? bytes.length - 1 : bytes.length;
    size_t lines = 0;
    while (at > 0) {
        lines += bytes.data[at - 1] == '\n' ? 1 : 0;
        if (lines == LAST_LINES_MAXIMUM) {
            break;
        }
        at--;
    }
    return bytes.data + at;
}

static void append_line(const uint8_t *start, const uint8_t *end, struct text *out) {
    while (end > start && end[-1] == '\r') {
        end--;
    }
    const uint8_t *shown = end;
    while (shown > start && shown[-1] != '\r') {
        shown--;
    }
    text_append_bytes(out, (const char *)shown, (size_t)(end - shown));
    text_append(out, "\n");
}

void last_lines_append(struct slice end, bool is_cut, struct text *out) {
    if (end.length == 0) {
        return;
    }
    if (end.length > LAST_LINES_WINDOW) {
        end = slice_from(end, end.length - LAST_LINES_WINDOW);
        is_cut = true;
    }
    const uint8_t *stop = end.data + end.length;
    const uint8_t *first_newline = is_cut ? find_newline(end.data, stop) : NULL;
    if (first_newline != NULL && first_newline + 1 < stop) {
        end = slice_from(end, (size_t)(first_newline + 1 - end.data));
    }
    size_t before = out->length;
    for (const uint8_t *line = find_start(end); line < stop;) {
        const uint8_t *newline = find_newline(line, stop);
        append_line(line, newline == NULL ? stop : newline, out);
        line = newline == NULL ? stop : newline + 1;
    }
    out->length = before + utf8_make_printable(out->data + before, out->length - before);
    out->data[out->length] = '\0';
}
