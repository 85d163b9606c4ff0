/* SPDX-License-Identifier: BSD-3-Clause */
/* The store itself as a step function: keys, counters, queues, and the connections that wait for
 * keys. A decoded request goes in; replies and closings of connections come out as effects. This
 * module reads, sends and logs nothing, and has no timeouts: as in PyTorch's TCPStore it is the
 * client that gives up and cancels.
 *
 * The semantics are those of PyTorch's libuv server (c10d/store/TCPStoreLibUvBackend.cpp) without
 * three of its faults: a compare-and-set that failed wakes no connection; a connection that was
 * woken by a queue is no longer on the list of those that wait for this queue; a new WAIT of a
 * connection replaces its older one.
 *
 * - WAIT is answered once: when every key that was absent at the time of the request has been
 *   written since. Deleting a key later changes nothing. The connections that wait for one key are
 *   released in the order in which they came.
 * - SET, MULTI_SET, ADD, APPEND, a COMPARE_SET that stored and a BARRIER that completed release all
 *   connections that wait for the key. QUEUE_PUSH releases one of them: the first that waits for no
 *   other key.
 * - QUEUE_POP is answered at once, but for keys of the store's owner (store_table_own). One that
 *   waits gives way to the next request of its connection: it is answered before that, as if there
 *   was no item. So a connection that waits for an item can be used for everything else meanwhile,
 *   and its replies come in the order of its requests.
 * - A key is present for CHECK and WAIT when it has a value or a queue that is not empty.
 * - Counters are decimal text. ADD wraps at 2^63. ADD to text that is not a number closes the
 *   connection and leaves the text as it is. BARRIER counts in the same way. It never resets, and
 *   still counts a client that has given up.
 * - A request that would exceed the memory limit closes its connection and changes nothing. The
 *   reason says which keys take most of the memory. */
#ifndef MUSTER_CORE_STORE_STORE_TABLE_H
#define MUSTER_CORE_STORE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/text.h"
#include "core/store/store_request.h"

struct store_table;
struct store_wait;

/* A client as the table sees it. The host embeds one in each of its connections, and its address is
 * the identity. A zeroed struct with `owner` set is a client that waits for no key. */
struct store_connection {
    void *owner;             /* belongs to the host; the table does not use it */
    struct store_wait *wait; /* belongs to the table */
    /* LIST_KEYS does not tell this client the keys that begin so; empty: it tells all. The host's,
     * which may change it between steps. */
    struct slice hidden_prefix;
};

/* Copies the limits. The caller frees the table with store_table_free. */
struct store_table *store_table_new(const struct store_limits *limits);
/* Accepts NULL. Forgets the connections that still wait, and sets their `wait` to NULL. So each
 * connection must still exist, or have been disconnected. */
void store_table_free(struct store_table *table);

/* One step: carries out the request and appends its effects. Effects may name other connections
 * too, which a key has released. Replies borrow from the table and from the request, so the caller
 * encodes them before the next step and before it frees the bytes of the request. */
void store_table_apply(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects);

/* One step that changes nothing: the host does not let this client make the request. The reply, if
 * there is one, is that of a request that changed nothing: COMPARE_SET gets the value that is
 * there, DELETE that nothing was deleted. SET, APPEND, MULTI_SET and QUEUE_PUSH have no reply, and
 * the client learns nothing. For all others no reply would be true: their connection is closed for
 * this `reason` (fixed text). */
void store_table_refuse(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, const char *reason, struct store_effects *effects);

/* The host puts a value into the queue of this key, in place of all that is in it; an empty value
 * leaves the queue empty. The first client that waits for the key, or for an item of its queue, is
 * answered. Where there is no room for
 * the value, the queue is empty. */
void store_table_tell(
    struct store_table *table, struct slice key, struct slice value, struct store_effects *effects);

/* The client is gone: forgets its wait. The time depends only on the number of keys in this wait.
 * The host calls it before it frees the struct. */
void store_table_disconnect(struct store_table *table, struct store_connection *connection);

/* Forgets every key, counter and queue whose raw key does not start with `kept_prefix`. With an
 * empty prefix it forgets all of them. Closes each connection that waits for a forgotten key: it
 * would never get an answer, and so its client learns at once that its world is over. */
void store_table_renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects);

/* Tells the table how many bytes of the memory limit others have taken. A host whose own buffers
 * count against the same limit calls it before a step. What the table holds already stays. */
void store_table_reserve_memory(struct store_table *table, size_t taken_bytes);

/* The keys that start with `own_prefix` (raw; it outlives the table) are those of the store's
 * owner. A part of the memory limit is kept for them, so that they can be written when others have
 * filled the store. A QUEUE_POP of such a key is answered when the queue has an item, so that who
 * is to be told something needs no WAIT before it. Called once, before any step. Empty: there are
 * no such keys. */
void store_table_own(struct store_table *table, struct slice own_prefix);

/* Appends a sentence's part that says how much memory is used, and which keys take most of it. */
void store_table_describe(struct store_table *table, struct text *out);

/* The bytes held for clients: keys, values, queues and waits, with their bookkeeping. */
size_t store_table_memory(const struct store_table *table);
/* How many connections wait. */
size_t store_table_waiting(const struct store_table *table);

#endif
