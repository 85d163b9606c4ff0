/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies of the key-value store as values, independent of their bytes on the wire.
 * Everything here is borrowed: a request borrows from the buffer from which it was decoded, a reply
 * from the table or the request. The operations and their numbers are those of PyTorch's TCPStore
 * (QueryType in c10d/store/TCPStoreBackend.hpp). */
#ifndef MUSTER_CORE_STORE_STORE_REQUEST_H
#define MUSTER_CORE_STORE_STORE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum store_operation {
    STORE_VALIDATE = 0,      /* the handshake; no reply */
    STORE_SET = 1,           /* key, value; no reply */
    STORE_COMPARE_SET = 2,   /* key, expected, value (the new one); blob */
    STORE_GET = 3,           /* key; blob */
    STORE_ADD = 4,           /* key, number; integer */
    STORE_CHECK = 5,         /* keys; byte: STORE_READY or STORE_NOT_READY */
    STORE_WAIT = 6,          /* keys; byte, perhaps later: STORE_STOP_WAITING */
    STORE_COUNT_KEYS = 7,    /* nothing; integer */
    STORE_DELETE = 8,        /* key; integer: 1 when the key had a value */
    STORE_APPEND = 9,        /* key, value; no reply */
    STORE_MULTI_GET = 10,    /* keys; as many blobs */
    STORE_MULTI_SET = 11,    /* keys, values; no reply */
    STORE_CANCEL_WAIT = 12,  /* nothing; byte: STORE_WAIT_CANCELLED */
    STORE_PING = 13,         /* nonce; nonce */
    STORE_QUEUE_PUSH = 14,   /* key, value; no reply */
    STORE_QUEUE_POP = 15,    /* key; pop */
    STORE_QUEUE_LENGTH = 16, /* key; integer */
    STORE_LIST_KEYS = 17,    /* nothing; key list */
    STORE_BARRIER = 18,      /* key, number: the world size; byte, perhaps later */
};

#define STORE_OPERATION_COUNT 19

/* Values of byte replies. CHECK answers READY or NOT_READY; WAIT, BARRIER and CANCEL_WAIT answer
 * STOP_WAITING or WAIT_CANCELLED. */
#define STORE_READY 0
#define STORE_NOT_READY 1
#define STORE_STOP_WAITING 0
#define STORE_WAIT_CANCELLED 1

/* The number in a PING that only shows that its sender is there. Nobody waits for the answer, so it
 * may come a second later, and wakes neither side. */
#define STORE_SIGN_OF_LIFE 0x6c696665U
#define STORE_SIGN_BYTES 5        /* with its operation */
#define STORE_SIGN_ANSWER_BYTES 4 /* the same number */
#define STORE_NO_ITEM_BYTES 8     /* the reply to a QUEUE_POP of an empty queue */

/* The fields that an operation does not use are zero. */
struct store_request {
    enum store_operation operation;
    uint32_t nonce;
    int64_t number;
    struct slice key;
    struct slice value;
    struct slice expected;
    const struct slice *keys;   /* `count` of them */
    const struct slice *values; /* `count` of them, for MULTI_SET */
    size_t count;
};

enum store_reply_kind {
    STORE_REPLY_NONE,    /* the operation has no reply */
    STORE_REPLY_BYTE,    /* byte */
    STORE_REPLY_INTEGER, /* integer */
    STORE_REPLY_NONCE,   /* nonce */
    STORE_REPLY_BLOB,    /* blob */
    STORE_REPLY_BLOBS,   /* list: one per requested key; their number is not sent */
    STORE_REPLY_KEYS,    /* list: their number is sent first */
    /* Pop: the length of the queue before the pop, then its front if it had one. */
    STORE_REPLY_POP,
};

struct store_reply {
    enum store_reply_kind kind;
    union {
        uint8_t byte;
        int64_t integer;
        uint32_t nonce;
        struct slice blob;
        struct {
            const struct slice *items;
            size_t count;
        } list;
        struct {
            int64_t length;
            struct slice front;
        } pop;
    };
};

/* Whether one of the request's keys (raw, with its leading '/') starts with the prefix. */
bool store_request_touches(const struct store_request *request, struct slice prefix);

/* The name of the operation in PyTorch ("COMPARE_SET"), for logs; "unknown" for other numbers. */
const char *store_operation_name(enum store_operation operation);

/* The kind of reply that the operation gets, now or later. */
enum store_reply_kind store_operation_reply_kind(enum store_operation operation);

#endif
