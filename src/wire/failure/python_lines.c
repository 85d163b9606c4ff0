/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/python_lines.h"

#include <stdbool.h>
#include <stddef.h>

/* The first byte of an entry has the top bit set, then 4 bits for the form in which the position is
 * written, then 3 bits for the number of instructions (of 2 bytes each) it covers. The bytes after
 * it have the top bit clear. */
#define ENTRY_MARK 0x80
#define INSTRUCTION_SIZE 2
#define NUMBER_BITS 6
#define NUMBER_CONTINUES 0x40

enum spelling {
    SPELLING_NEXT_LINES =
        10, /* 10, 11 and 12 mean this line, the next one, and the one after that */
    SPELLING_LINE_ONLY = 13,
    SPELLING_LONG = 14,
    SPELLING_NONE = 15,
};

/* Reads a signed number: least significant bits first, the sign in the lowest bit. False when there
 * is no number or it is larger than any line number. */
static bool take_signed(struct slice table, size_t at, int64_t *out_value) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 6 * NUMBER_BITS; shift += NUMBER_BITS) {
        if (at >= table.length || (table.data[at] & ENTRY_MARK) != 0) {
            return false;
        }
        uint8_t byte = table.data[at++];
        value |= (uint64_t)(byte & (NUMBER_CONTINUES - 1)) << shift;
        if ((byte & NUMBER_CONTINUES) == 0) {
            *out_value = (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
            return true;
        }
    }
    return false;
}

/* Reads the number of lines by which the entry at `at` changes the current line. */
static bool read_delta(struct slice table, size_t at, unsigned spelling, int64_t *out_delta) {
    *out_delta = 0;
    if (spelling == SPELLING_LINE_ONLY || spelling == SPELLING_LONG) {
        return take_signed(table, at + 1, out_delta);
    }
    if (spelling >= SPELLING_NEXT_LINES && spelling < SPELLING_LINE_ONLY) {
        *out_delta = (int64_t)(spelling - SPELLING_NEXT_LINES);
    }
    return true;
}

static size_t next_entry(struct slice table, size_t at) {
    do {
        at++;
    } while (at < table.length && (table.data[at] & ENTRY_MARK) == 0);
    return at;
}

enum failure_code python_lines_find(
    struct slice table, int first_line, uint64_t offset, int *out_line) {
    int64_t line = first_line;
    uint64_t end = 0;
    for (size_t at = 0; at < table.length; at = next_entry(table, at)) {
        unsigned head = table.data[at];
        unsigned spelling = (head >> 3) & 0xf;
        int64_t delta;
        if ((head & ENTRY_MARK) == 0 || !read_delta(table, at, spelling, &delta)) {
            return FAILURE_MALFORMED;
        }
        line += delta;
        if (line < 0 || line > INT32_MAX) {
            return FAILURE_MALFORMED;
        }
        end += (uint64_t)((head & 7) + 1) * INSTRUCTION_SIZE;
        if (offset < end) {
            if (spelling == SPELLING_NONE) {
                return FAILURE_MISSING;
            }
            *out_line = (int)line;
            return FAILURE_NONE;
        }
    }
    return FAILURE_MISSING;
}
