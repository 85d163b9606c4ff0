/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/register/etcd_message.h"

#include <stdlib.h>
#include <string.h>

/* The wire types of Protocol Buffers. */
enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

/* Field numbers and values of etcd's rpc.proto. */
enum {
    RANGE_KEY = 1,
    RANGE_END = 2,
    RANGE_LIMIT = 3,
    RANGE_SORT_ORDER = 5,
    SORT_DESCEND = 2,
    PUT_KEY = 1,
    PUT_VALUE = 2,
    DELETE_KEY = 1,
    DELETE_END = 2,
    OPERATION_RANGE = 1,
    OPERATION_PUT = 2,
    OPERATION_DELETE = 3,
    COMPARE_RESULT = 1,
    COMPARE_TARGET = 2,
    COMPARE_KEY = 3,
    COMPARE_CREATE_REVISION = 5,
    COMPARE_END = 64,
    RESULT_EQUAL = 0,
    RESULT_GREATER = 1,
    TARGET_CREATE = 1,
    TXN_COMPARE = 1,
    TXN_SUCCESS = 2,
    TXN_FAILURE = 3,
    AUTHENTICATE_NAME = 1,
    AUTHENTICATE_PASSWORD = 2,
    RANGE_REPLY_KEYS = 2,
    TXN_REPLY_SUCCEEDED = 2,
    TXN_REPLY_OPERATIONS = 3,
    AUTHENTICATE_REPLY_TOKEN = 2,
    PAIR_KEY = 1,
    PAIR_VALUE = 5,
};

#define FRAME_HEADER 5

/* Writing. */

static void put(struct bytes *out, const void *data, size_t length) {
    if (bytes_append(out, data, length) != FAILURE_NONE) {
        abort(); /* the buffers of requests have no ceiling */
    }
}

static void put_varint(struct bytes *out, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(out, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static void put_number(struct bytes *out, uint32_t field, uint64_t value) {
    put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(out, value);
}

static void put_bytes(struct bytes *out, uint32_t field, struct slice value) {
    put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(out, value.length);
    put(out, value.data, value.length);
}

static void put_string(struct bytes *out, uint32_t field, const char *value) {
    if (value != NULL) {
        put_bytes(out, field, slice_from_string(value));
    }
}

/* Puts the inner message as a field, and clears it. */
static void put_message(struct bytes *out, uint32_t field, struct bytes *inner) {
    put_bytes(out, field, bytes_slice(inner));
    bytes_clear(inner);
}

void etcd_write_range_last(struct etcd_range range, struct bytes *out) {
    put_string(out, RANGE_KEY, range.key);
    put_string(out, RANGE_END, range.end);
    put_number(out, RANGE_LIMIT, 1);
    put_number(out, RANGE_SORT_ORDER, SORT_DESCEND);
}

void etcd_write_put(const char *key, struct slice value, struct bytes *out) {
    put_string(out, PUT_KEY, key);
    put_bytes(out, PUT_VALUE, value);
}

void etcd_write_authenticate(const char *name, const char *password, struct bytes *out) {
    put_string(out, AUTHENTICATE_NAME, name);
    put_string(out, AUTHENTICATE_PASSWORD, password);
}

static void put_compare(struct bytes *out, struct etcd_range range, uint64_t result) {
    struct bytes compare = {0};
    put_number(&compare, COMPARE_RESULT, result);
    put_number(&compare, COMPARE_TARGET, TARGET_CREATE);
    put_string(&compare, COMPARE_KEY, range.key);
    put_number(&compare, COMPARE_CREATE_REVISION, 0);
    put_string(&compare, COMPARE_END, range.end);
    put_message(out, TXN_COMPARE, &compare);
}

static void put_operation(
    struct bytes *out, uint32_t branch, uint32_t operation, struct bytes *inner) {
    struct bytes outer = {0};
    put_message(&outer, operation, inner);
    put_message(out, branch, &outer);
}

void etcd_write_append(const struct etcd_append *append, struct bytes *out) {
    struct bytes inner = {0};
    put_compare(out, append->absent, RESULT_EQUAL);
    if (append->present != NULL) {
        put_compare(out, (struct etcd_range){.key = append->present}, RESULT_GREATER);
    }
    etcd_write_put(append->key, append->value, &inner);
    put_operation(out, TXN_SUCCESS, OPERATION_PUT, &inner);
    for (size_t i = 0; i < sizeof append->removed / sizeof *append->removed; i++) {
        if (append->removed[i].key != NULL) {
            put_string(&inner, DELETE_KEY, append->removed[i].key);
            put_string(&inner, DELETE_END, append->removed[i].end);
            put_operation(out, TXN_SUCCESS, OPERATION_DELETE, &inner);
        }
    }
    etcd_write_range_last(append->otherwise, &inner);
    put_operation(out, TXN_FAILURE, OPERATION_RANGE, &inner);
}

/* Reading. */

struct field {
    uint64_t number;
    enum wire_type type;
    uint64_t value;     /* of WIRE_VARINT */
    struct slice bytes; /* of WIRE_BYTES */
};

static bool take_varint(struct slice *input, uint64_t *out_value) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && input->length > 0; shift += 7) {
        uint8_t byte = input->data[0];
        *input = slice_from(*input, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct slice *input, uint64_t length, struct slice *out_bytes) {
    if (length > input->length) {
        return false;
    }
    *out_bytes = (struct slice){input->data, (size_t)length};
    *input = slice_from(*input, (size_t)length);
    return true;
}

static bool take_field(struct slice *input, struct field *out_field) {
    uint64_t tag;
    uint64_t length;
    *out_field = (struct field){0};
    if (!take_varint(input, &tag) || tag >> 3 == 0) {
        return false;
    }
    out_field->number = tag >> 3;
    out_field->type = (enum wire_type)(tag & 7);
    switch (out_field->type) {
    case WIRE_VARINT:
        return take_varint(input, &out_field->value);
    case WIRE_FIXED64:
        return take_bytes(input, 8, &out_field->bytes);
    case WIRE_BYTES:
        return take_varint(input, &length) && take_bytes(input, length, &out_field->bytes);
    case WIRE_FIXED32:
        return take_bytes(input, 4, &out_field->bytes);
    }
    return false;
}

/* The first field of that number in a message; false when the message is malformed. */
static bool find_bytes(
    struct slice message, uint64_t number, bool *out_is_there, struct slice *out_bytes) {
    struct field field;
    *out_is_there = false;
    while (message.length > 0) {
        if (!take_field(&message, &field)) {
            return false;
        }
        if (field.number == number && field.type == WIRE_BYTES && !*out_is_there) {
            *out_is_there = true;
            *out_bytes = field.bytes;
        }
    }
    return true;
}

static bool read_keys(struct slice message, struct etcd_reply *reply) {
    struct slice pair = {0};
    bool has;
    if (!find_bytes(message, RANGE_REPLY_KEYS, &reply->has_key, &pair)) {
        return false;
    }
    return !reply->has_key || (find_bytes(pair, PAIR_KEY, &has, &reply->key) &&
                                  find_bytes(pair, PAIR_VALUE, &has, &reply->value));
}

enum failure_code etcd_read_range(struct slice message, struct etcd_reply *out_reply) {
    struct etcd_reply reply = {0};
    if (!read_keys(message, &reply)) {
        return FAILURE_MALFORMED;
    }
    *out_reply = reply;
    return FAILURE_NONE;
}

static bool read_operation(struct slice operation, struct etcd_reply *reply) {
    struct slice range = {0};
    bool is_range;
    return find_bytes(operation, OPERATION_RANGE, &is_range, &range) &&
           (!is_range || read_keys(range, reply));
}

enum failure_code etcd_read_append(struct slice message, struct etcd_reply *out_reply) {
    struct etcd_reply reply = {0};
    struct field field;
    while (message.length > 0) {
        if (!take_field(&message, &field)) {
            return FAILURE_MALFORMED;
        }
        if (field.number == TXN_REPLY_SUCCEEDED && field.type == WIRE_VARINT) {
            reply.has_succeeded = field.value != 0;
        } else if (field.number == TXN_REPLY_OPERATIONS && field.type == WIRE_BYTES &&
                   !read_operation(field.bytes, &reply)) {
            return FAILURE_MALFORMED;
        }
    }
    *out_reply = reply;
    return FAILURE_NONE;
}

enum failure_code etcd_read_token(struct slice message, struct slice *out_token) {
    bool has_token;
    struct slice token = {0};
    if (!find_bytes(message, AUTHENTICATE_REPLY_TOKEN, &has_token, &token) || !has_token) {
        return FAILURE_MALFORMED;
    }
    *out_token = token;
    return FAILURE_NONE;
}

void grpc_write_frame(struct slice message, struct bytes *out) {
    const uint8_t header[FRAME_HEADER] = {0, (uint8_t)(message.length >> 24),
        (uint8_t)(message.length >> 16), (uint8_t)(message.length >> 8), (uint8_t)message.length};
    put(out, header, sizeof header);
    put(out, message.data, message.length);
}

enum failure_code grpc_read_frame(struct slice frame, struct slice *out_message) {
    if (frame.length < FRAME_HEADER) {
        return FAILURE_INCOMPLETE;
    }
    const uint8_t *header = frame.data;
    size_t length = (size_t)header[1] << 24 | (size_t)header[2] << 16 | (size_t)header[3] << 8 |
                    (size_t)header[4];
    if (header[0] != 0) {
        return FAILURE_MALFORMED;
    }
    if (length > ETCD_MESSAGE_MAXIMUM) {
        return FAILURE_LIMIT;
    }
    if (frame.length - FRAME_HEADER != length) {
        return frame.length - FRAME_HEADER < length ? FAILURE_INCOMPLETE : FAILURE_MALFORMED;
    }
    *out_message = slice_from(frame, FRAME_HEADER);
    return FAILURE_NONE;
}
