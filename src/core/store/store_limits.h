/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a store server. They are one value, so that options, decoder, table and host use
 * the same numbers. The defaults of the first three are those of PyTorch's libuv server
 * (TCPStoreLibUvBackend.cpp), which does not have the others. Each field names the module that
 * enforces it. */
#ifndef MUSTER_CORE_STORE_STORE_LIMITS_H
#define MUSTER_CORE_STORE_STORE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"

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
 * only; host/machine/memory_limit knows how much there is. */

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
 * what it needs to start its workers. Values only; host/loop/descriptor_limit knows how many it may
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

#endif
