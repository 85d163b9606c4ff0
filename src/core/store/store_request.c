/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_request.h"

static const struct {
    const char *name;
    enum store_reply_kind reply;
} operations[STORE_OPERATION_COUNT] = {
    [STORE_VALIDATE] = {"VALIDATE", STORE_REPLY_NONE},
    [STORE_SET] = {"SET", STORE_REPLY_NONE},
    [STORE_COMPARE_SET] = {"COMPARE_SET", STORE_REPLY_BLOB},
    [STORE_GET] = {"GET", STORE_REPLY_BLOB},
    [STORE_ADD] = {"ADD", STORE_REPLY_INTEGER},
    [STORE_CHECK] = {"CHECK", STORE_REPLY_BYTE},
    [STORE_WAIT] = {"WAIT", STORE_REPLY_BYTE},
    [STORE_COUNT_KEYS] = {"GETNUMKEYS", STORE_REPLY_INTEGER},
    [STORE_DELETE] = {"DELETE_KEY", STORE_REPLY_INTEGER},
    [STORE_APPEND] = {"APPEND", STORE_REPLY_NONE},
    [STORE_MULTI_GET] = {"MULTI_GET", STORE_REPLY_BLOBS},
    [STORE_MULTI_SET] = {"MULTI_SET", STORE_REPLY_NONE},
    [STORE_CANCEL_WAIT] = {"CANCEL_WAIT", STORE_REPLY_BYTE},
    [STORE_PING] = {"PING", STORE_REPLY_NONCE},
    [STORE_QUEUE_PUSH] = {"QUEUE_PUSH", STORE_REPLY_NONE},
    [STORE_QUEUE_POP] = {"QUEUE_POP", STORE_REPLY_POP},
    [STORE_QUEUE_LENGTH] = {"QUEUE_LEN", STORE_REPLY_INTEGER},
    [STORE_LIST_KEYS] = {"LIST_KEYS", STORE_REPLY_KEYS},
    [STORE_BARRIER] = {"BARRIER", STORE_REPLY_BYTE},
};

bool store_request_touches(const struct store_request *request, struct slice prefix) {
    bool touches = slice_starts_with(request->key, prefix);
    for (size_t i = 0; i < request->count; i++) {
        touches |= slice_starts_with(request->keys[i], prefix);
    }
    return touches;
}

const char *store_operation_name(enum store_operation operation) {
    return (unsigned)operation < STORE_OPERATION_COUNT ? operations[operation].name : "unknown";
}

enum store_reply_kind store_operation_reply_kind(enum store_operation operation) {
    return (unsigned)operation < STORE_OPERATION_COUNT ? operations[operation].reply
                                                       : STORE_REPLY_NONE;
}
