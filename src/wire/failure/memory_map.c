/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/memory_map.h"

#include <stddef.h>

/* Fields between the permissions and the path: offset, device, inode. */
#define FIELDS_BEFORE_PATH 3

static int digit_value(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Takes an address and the byte after it, which must be `end`. */
static bool take_address(struct slice *text, char end, uint64_t *out_value) {
    uint64_t value = 0;
    size_t length = 0;
    for (; length < text->length && digit_value(text->data[length]) >= 0; length++) {
        if (value >> 60 != 0) {
            return false;
        }
        value = value << 4 | (uint64_t)digit_value(text->data[length]);
    }
    if (length == 0 || length == text->length || text->data[length] != (uint8_t)end) {
        return false;
    }
    *text = slice_from(*text, length + 1);
    *out_value = value;
    return true;
}

static void skip_blanks(struct slice *text) {
    while (text->length > 0 && text->data[0] == ' ') {
        *text = slice_from(*text, 1);
    }
}

static void skip_field(struct slice *text) {
    while (text->length > 0 && text->data[0] != ' ') {
        *text = slice_from(*text, 1);
    }
    skip_blanks(text);
}

enum failure_code memory_map_read_line(struct slice line, struct memory_mapping *out_mapping) {
    struct memory_mapping mapping = {0};
    if (!take_address(&line, '-', &mapping.start) || !take_address(&line, ' ', &mapping.end) ||
        mapping.end <= mapping.start || line.length < 4) {
        return FAILURE_MALFORMED;
    }
    mapping.is_readable = line.data[0] == 'r';
    mapping.is_writable = line.data[1] == 'w';
    skip_field(&line);
    for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
        skip_field(&line);
    }
    mapping.path = line;
    *out_mapping = mapping;
    return FAILURE_NONE;
}

bool memory_mapping_is_file(const struct memory_mapping *mapping, const char *start) {
    size_t name = mapping->path.length;
    while (name > 0 && mapping->path.data[name - 1] != '/') {
        name--;
    }
    return name > 0 && slice_starts_with(slice_from(mapping->path, name), slice_from_string(start));
}
