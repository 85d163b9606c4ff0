/* SPDX-License-Identifier: BSD-3-Clause */
/* The store itself: keys, counters, queues, and the connections that wait for keys, as a step
 * function. A decoded request goes in, replies and closings come out as effects; nothing is read,
 * sent, timed or logged here, and there are no timeouts: as in PyTorch's TCPStore it is the client
 * that gives up and cancels.
 *
 * Semantics are those of PyTorch's libuv server (c10d/store/TCPStoreLibUvBackend.cpp) with its
 * faults mended: a compare-and-set that failed releases nobody, a waiter woken by a queue is no
 * longer on the list of that queue's waiters, a newer WAIT of a connection replaces the older one.
 *
 * - WAIT is answered once, when every key that was absent when it was asked has been written since;
 *   deleting a key later changes nothing. Waiters of one key are released first come, first served.
 * - SET, MULTI_SET, ADD, APPEND, a COMPARE_SET that stored and a BARRIER that completed release all
 *   waiters of the key; QUEUE_PUSH releases one, the first in line that misses nothing else.
 * - A key is present for CHECK and WAIT when it has a value or a queue that is not empty.
 * - Counters are decimal text. ADD wraps at 2^63; text that is no number closes the connection and
 *   stays as it is. BARRIER counts in the same way, never resets, and keeps a participant counted
 *   who gave up.
 * - A request that would pass the memory limit closes its connection and changes nothing. */
#ifndef MUSTER_CORE_STORE_TABLE_H
#define MUSTER_CORE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "core/store_effects.h"
#include "core/store_limits.h"
#include "core/store_request.h"

struct store_table;
struct store_wait;

/* A client as the table sees it. The host embeds one in each of its connections; the address is
 * the identity. A zeroed struct (with `owner` set) is a client that waits for nothing. */
struct store_connection {
    void *owner;             /* the host's own; the table never looks at it */
    struct store_wait *wait; /* the table's */
};

/* Copies the limits. The caller frees the table with store_table_free. */
struct store_table *store_table_new(const struct store_limits *limits);
/* Connections that still wait are forgotten (their `wait` is NULL afterwards); so they must still
 * exist, or have been disconnected. NULL is fine. */
void store_table_free(struct store_table *table);

/* One step: carries out the request and appends what is to be done. Effects may name other
 * connections than this one (waiters released). Replies borrow from the table and from the request:
 * encode them before the next step and before the request's bytes go away. */
void store_table_apply(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects);

/* The client is gone: forgets what it waits for, in time proportional to that alone. The host calls
 * this before the struct goes away. */
void store_table_disconnect(struct store_table *table, struct store_connection *connection);

/* Forgets every key, counter and queue whose raw key does not start with `kept_prefix`; an empty
 * prefix forgets all. A connection that waits for a forgotten key would never be answered: it is
 * closed, so that its client learns at once that its world is over. */
void store_table_renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects);

/* So much of the memory limit is taken by others: a host whose own buffers count against the same
 * ceiling says so before a step. What is held already stays. */
void store_table_reserve_memory(struct store_table *table, size_t taken_bytes);

/* Bytes held for clients: keys, values, queues and waits, bookkeeping included. */
size_t store_table_memory(const struct store_table *table);
/* Keys that have a value, as GETNUMKEYS counts them. */
size_t store_table_count(const struct store_table *table);
/* Connections that wait. */
size_t store_table_waiting(const struct store_table *table);

#endif
