/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers' own store (MASTER_ADDR, MASTER_PORT) of a dynamic rendezvous, on the node that
 * serves it: a fresh one for every round, so that no worker meets what an earlier one left behind.
 */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_WORKER_STORE_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_WORKER_STORE_H

#include <stdbool.h>

#include "base/log.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"

struct agent_worker_store;

/* `opened` is called with the port; `failed` with the reason. Perhaps from inside open. */
struct agent_worker_store_observer {
    void (*opened)(void *context, int port);
    void (*failed)(void *context, const char *reason);
    void *context;
};

/* `operations` counts what the stores of all rounds carry out; NULL: nobody counts. Log and tally
 * outlive the object. */
struct agent_worker_store *agent_worker_store_new(struct event_loop *loop, const struct log *log,
    struct tally *operations, const struct agent_worker_store_observer *observer);
/* NULL is fine. */
void agent_worker_store_free(struct agent_worker_store *store);

/* Fresh: a new server on a new port; the old one ends with all its connections. Otherwise the one
 * there is keeps its port, and forgets everything. */
void agent_worker_store_open(struct agent_worker_store *store, bool is_fresh);

#endif
