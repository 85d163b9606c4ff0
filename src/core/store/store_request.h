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
#include "base/failure.h"

/* Counters are stored as decimal text, so that GET of a counter gives the text that a client
 * expects. Reading a counter follows C's strtoll, because PyTorch's server reads counters with
 * std::stoll (addHandler in c10d/store/TCPStoreBackend.cpp). */

#define STORE_COUNTER_SIZE 20 /* the longest counter: a sign and 19 digits */

/* Reads leading blanks, a sign and digits, and ignores what follows. FAILURE_MALFORMED without a
 * digit. FAILURE_LIMIT outside int64_t. */
__attribute__((warn_unused_result)) enum failure_code store_counter_parse(
    struct slice text, int64_t *out_value);

/* Writes the decimal text without a NUL to `buffer`, and returns it. */
struct slice store_counter_format(int64_t value, uint8_t buffer[STORE_COUNTER_SIZE]);

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

/* What the host of a store table does after a step: it sends replies and closes connections, in the
 * order of this list. The list owns its arrays and keeps them from step to step. The values inside
 * replies are borrowed (see store_table.h). The list does not know how replies are spelled or sent.
 */

#define STORE_REASON_SIZE 384

struct store_connection;

enum store_effect_kind {
    STORE_EFFECT_REPLY, /* send `reply` */
    STORE_EFFECT_CLOSE, /* close the connection and log `reason` */
};

struct store_effect {
    enum store_effect_kind kind;
    bool may_wait; /* nobody waits for the reply: it may go with the next of its connection */
    struct store_connection *connection;
    union {
        struct store_reply reply;
        const char *reason; /* fixed text, or text in the list that is valid until the reset */
    };
};

/* A zeroed struct is a valid empty list. */
struct store_effects {
    struct store_effect *items;
    size_t count;
    size_t capacity;
    struct slice *blobs; /* the items of the list reply; a step has at most one */
    size_t blob_capacity;
    char reason[STORE_REASON_SIZE];
    bool is_full; /* the step closes its connection because the store has no room */
};

/* Empties the list. The host calls it before each step. */
void store_effects_reset(struct store_effects *effects);
void store_effects_clear(struct store_effects *effects);

void store_effects_reply(struct store_effects *effects, struct store_connection *connection,
    const struct store_reply *reply);
/* The reply to a QUEUE_POP that gives way: there is no item. */
void store_effects_give_way(struct store_effects *effects, struct store_connection *connection);
/* Whether there is memory for so many effects more. A step asks before it wakes many clients. */
bool store_effects_have_room(struct store_effects *effects, size_t count);
/* `reason` is fixed text. */
void store_effects_close(
    struct store_effects *effects, struct store_connection *connection, const char *reason);
/* Whether the step, which has carried out the request, has set the key of the request to its
 * value. */
bool store_effects_have_written(
    const struct store_effects *effects, const struct store_request *request);
/* Returns room for the items of a list reply, valid until the reset. */
struct slice *store_effects_blobs(struct store_effects *effects, size_t count);

#endif
