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
#include "base/duration.h"
#include "base/failure.h"

/* The limits of a store server. They are one value, so that options, decoder, table and host use
 * the same numbers. The defaults of the first three are those of PyTorch's libuv server
 * (TCPStoreLibUvBackend.cpp), which does not have the others. Each field names the module that
 * enforces it. */

struct store_limits {
    size_t key_bytes;          /* decoder: one key, with its leading '/' */
    size_t value_bytes;        /* decoder: one value of one request */
    size_t keys_per_request;   /* decoder: keys of one CHECK, WAIT, MULTI_GET or MULTI_SET */
    size_t request_bytes;      /* decoder: the whole of such a request */
    size_t memory_bytes;       /* table and host: all memory held for clients */
    size_t queued_reply_bytes; /* host: one reply, with those before it that were not read yet */
    size_t unread_bytes;       /* host: a client with more unread bytes is served no request */
    size_t connections;        /* host: clients at the same time */
};

#define STORE_LIMITS_DEFAULT                                                                       \
    ((struct store_limits){                                                                        \
        .key_bytes = 8192,                                                                         \
        .value_bytes = 8388608,                                                                    \
        .keys_per_request = 131072,                                                                \
        .request_bytes = (size_t)256 << 20,                                                        \
        .memory_bytes = (size_t)4 << 30,                                                           \
        .queued_reply_bytes = (size_t)256 << 20,                                                   \
        .unread_bytes = (size_t)1 << 20,                                                           \
        .connections = 131072,                                                                     \
    })

/* How much memory a store may take: what the user has asked for, or a part of what there is. Values
 * only; host/machine/machine knows how much there is. */

/* The smallest store that one may wish. */
#define STORE_MEMORY_LEAST ((uint64_t)1 << 20)

/* What the user has asked for. A zeroed struct: nothing. */
struct store_memory {
    uint64_t bytes;
    int percent; /* of the memory that there is; when `bytes` is 0 */
};

/* The default limits, for the memory that was asked for. `available_bytes` is the memory that this
 * process may use. The limits of one request and of one reply are lowered where the memory is
 * small, since each client may have one. */
struct store_limits store_memory_limits(const struct store_memory *asked, uint64_t available_bytes);

/* The part of the limit that only the agents' own keys may use (store_table_own). */
size_t store_memory_reserve(size_t memory_bytes);

/* How many files an agent must be able to have open in order to serve its job's store to so many
 * nodes, and how many it keeps from the clients of its stores, so that whoever connects leaves it
 * what it needs to start its workers. Values only; host/loop/descriptors knows how many it may
 * have. TorchElastic has nothing like it: there nodes that find no descriptor left fail one by one,
 * without saying why. */

/* What the agent has open before its first worker: its own ends of the connections, event loops. */
#define STORE_DESCRIPTORS_OWN UINT64_C(48)
/* The connections of a node to the job's store. */
#define STORE_DESCRIPTORS_OF_NODE UINT64_C(3)

/* What an agent needs to start so many workers: their log files, pipes and pidfds, those of as many
 * that stand by, and some for itself. */
uint64_t store_descriptors_for_workers(uint64_t workers);

/* How much of this is kept from clients under a limit: not so much that none are served. */
uint64_t store_descriptors_kept(uint64_t wanted, uint64_t limit);

/* How many clients of a store of so many nodes may be there at once, under a limit, that have not
 * proved themselves yet. All nodes may come at the same moment. */
uint64_t store_descriptors_unproven(uint64_t nodes, uint64_t limit);

/* For so many nodes with so many connections each, beside what is kept. */
uint64_t store_descriptors_needed(uint64_t nodes, uint64_t connections_of_node, uint64_t kept);

/* How many nodes can be served under a limit. `connections_of_node` is not 0. */
uint64_t store_descriptors_nodes(uint64_t limit, uint64_t connections_of_node, uint64_t kept);

/* Whether the machine at the other end of a connection is gone, judged by how long its kernel has
 * not been heard: no new data came from it, and nothing sent was acknowledged. This is a matter of
 * evidence, because a network loses packets. So somebody has to send data over the connection all
 * the time (a sign of life, at each look), which TCP sends again and again until it is
 * acknowledged. A silence of more than the limit only raises doubt. The machine is gone when it is
 * still silent at a second look. So a process or a machine that itself was stopped for a while
 * doubts everybody when it goes on, and takes nobody for gone.
 *
 * From its last sign of life until it is taken for gone, it takes `limit` and half a second, and up
 * to a second more where the limit is below two seconds.
 *
 * This module decides. Who has the connection measures the silence, and looks again when
 * connection_silence_pause says. TorchElastic has nothing like it. */

/* The longest time between two looks at a connection. */
#define CONNECTION_SILENCE_LOOK_MILLISECONDS 1000
/* How long after the first look that raised doubt the second one follows. */
#define CONNECTION_SILENCE_DOUBT_MILLISECONDS 500

/* Whether a silence is longer than usual where something is heard in each second: a packet was
 * lost, at least. */
bool connection_silence_is_unusual(struct duration silent_for);

/* A zeroed struct is valid: there is no doubt. */
struct connection_silence {
    bool is_doubted;
    struct instant doubted_at;
    struct instant heard_until; /* before then it cannot have been silent for the limit */
};

/* Whether the silence need not be measured now: it cannot pass the limit before the next look. */
bool connection_silence_rests(const struct connection_silence *silence, struct instant now);

/* One look. `silent_for` is the measured silence. Whether the other machine is gone: it has been
 * silent for more than `limit`, now and at every look since the doubt began. */
bool connection_silence_look(struct connection_silence *silence, struct duration silent_for,
    struct duration limit, struct instant now);

/* After how long to look again; call it after a look, with the same values. */
struct duration connection_silence_pause(const struct connection_silence *silence,
    struct duration silent_for, struct duration limit, struct instant now);

/* How much earlier than after `pause` the look may come: not at all when it is at the moment at
 * which doubt begins or ends. */
struct duration connection_silence_earliest(struct duration pause);

/* Whether signs of life have to be sent over a connection. A network that loses packets needs them:
 * of the kernel's own probes the first ones that are lost count, while a sign is sent again and
 * again until it is acknowledged (core/store/connection_silence). Where no packet was lost for
 * long, the connection is calm: the probes of both kernels tell as much as signs would, and they
 * wake no process. A host with thousands of nodes does nothing then. The first packet that is lost
 * ends the calm.
 *
 * This module decides. Who has the connection measures, at each of its looks. TorchElastic has
 * nothing like it. */

/* A zeroed struct is valid: nothing is known of the connection. */
struct connection_calm {
    struct instant since; /* no packet was lost after this */
    uint32_t resent;      /* packets that were sent again until then */
    bool has_begun;
};

/* What was heard of the connection: since when nothing, and how many packets were sent again. */
struct connection_hearing {
    struct duration silent_for;
    uint32_t resent;
};

/* One look. Whether the connection is calm: no packet was lost for `after`. */
bool connection_calm_look(struct connection_calm *calm, struct connection_hearing hearing,
    struct duration after, struct instant now);

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
