/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/py_spy_dump.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "wire/failure/socket_table.h"

static bool ends_with(struct slice line, const char *end) {
    size_t length = strlen(end);
    return line.length >= length && memcmp(line.data + line.length - length, end, length) == 0;
}

/* Such a line looks like: Thread 4711 (idle): "MainThread" */
static bool is_thread(struct slice line) {
    return slice_starts_with(line, slice_from_string("Thread "));
}

static bool is_wanted(struct slice line, int64_t thread) {
    char start[64];
    snprintf(start, sizeof start, "Thread %" PRId64 " (", thread);
    return slice_starts_with(line, slice_from_string(start)) || ends_with(line, ": \"MainThread\"");
}

/* Such a line looks like "    step (train.py:17)". NULL for other lines. */
static char *read_frame(struct slice line) {
    static const char indent[] = "    ";
    static const char opening[] = " (";
    struct text words = {0};
    size_t start = strlen(indent);
    if (!slice_starts_with(line, slice_from_string(indent)) || !ends_with(line, ")")) {
        return NULL;
    }
    size_t at = start;
    while (at + strlen(opening) < line.length &&
           memcmp(line.data + at, opening, strlen(opening)) != 0) {
        at++;
    }
    size_t place = at + strlen(opening);
    if (at == start || place + 1 >= line.length) {
        return NULL;
    }
    text_append_bytes(&words, (const char *)line.data + place, line.length - 1 - place);
    text_append(&words, " in ");
    text_append_bytes(&words, (const char *)line.data + start, at - start);
    return text_take(&words);
}

char *py_spy_dump_place(struct slice dump, int64_t thread) {
    struct slice line;
    bool is_inside = false;
    while (socket_table_next_line(&dump, &line)) {
        if (is_thread(line)) {
            is_inside = is_wanted(line, thread);
        } else if (is_inside) {
            return read_frame(line);
        }
    }
    return NULL;
}
