/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/file_store_codec.h"

#include "base/bytes.h"

#define LENGTH_SIZE 4
#define REMOVAL_MARK '-'

/* Takes a length and that many bytes off the front of `input`. */
static enum failure_code take_text(struct slice *input, size_t limit, struct slice *out_text) {
    if (input->length < LENGTH_SIZE) {
        return FAILURE_INCOMPLETE;
    }
    size_t length = little_endian_load32(input->data);
    if (length > limit) {
        return FAILURE_MALFORMED;
    }
    if (input->length - LENGTH_SIZE < length) {
        return FAILURE_INCOMPLETE;
    }
    *out_text = (struct slice){input->data + LENGTH_SIZE, length};
    input->data += LENGTH_SIZE + length;
    input->length -= LENGTH_SIZE + length;
    return FAILURE_NONE;
}

enum failure_code file_store_record_read(struct slice input, const struct file_store_limits *limits,
    struct file_store_record *out_record, size_t *out_consumed) {
    struct slice rest = input;
    struct file_store_record record = {0};
    if (input.length >= LENGTH_SIZE && little_endian_load32(input.data) == 0) {
        return FAILURE_MALFORMED;
    }
    /* The '-' of a deletion does not count towards the key's limit. */
    enum failure_code code = take_text(&rest, limits->key_bytes + 1, &record.key);
    if (code == FAILURE_NONE) {
        code = take_text(&rest, limits->value_bytes, &record.value);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    if (record.key.data[0] == REMOVAL_MARK) {
        record.is_removal = true;
        record.key = (struct slice){record.key.data + 1, record.key.length - 1};
        record.value = (struct slice){0};
    }
    *out_record = record;
    *out_consumed = input.length - rest.length;
    return FAILURE_NONE;
}

enum failure_code file_store_record_append(
    const struct file_store_record *record, struct bytes *out) {
    static const uint8_t removal_mark = REMOVAL_MARK;
    if (record->key.length == 0 || record->key.data[0] == REMOVAL_MARK) {
        return FAILURE_INVALID;
    }
    size_t mark_length = record->is_removal ? 1 : 0;
    if (record->key.length > UINT32_MAX - mark_length || record->value.length > UINT32_MAX) {
        return FAILURE_LIMIT;
    }
    uint8_t key_length[LENGTH_SIZE];
    uint8_t value_length[LENGTH_SIZE];
    little_endian_store32(key_length, (uint32_t)(record->key.length + mark_length));
    little_endian_store32(value_length, (uint32_t)record->value.length);
    size_t start = out->length;
    enum failure_code code = bytes_append(out, key_length, LENGTH_SIZE);
    if (code == FAILURE_NONE) {
        code = bytes_append(out, &removal_mark, mark_length);
    }
    if (code == FAILURE_NONE) {
        code = bytes_append(out, record->key.data, record->key.length);
    }
    if (code == FAILURE_NONE) {
        code = bytes_append(out, value_length, LENGTH_SIZE);
    }
    if (code == FAILURE_NONE) {
        code = bytes_append(out, record->value.data, record->value.length);
    }
    if (code != FAILURE_NONE) {
        out->length = start;
    }
    return code;
}
