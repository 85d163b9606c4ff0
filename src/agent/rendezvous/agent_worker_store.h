/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers' own store (MASTER_ADDR, MASTER_PORT) of a dynamic rendezvous, on the node that
 * serves it: a fresh one for every round, so that no worker meets what an earlier one left behind.
 */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_WORKER_STORE_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_WORKER_STORE_H

#include <stdbool.h>

#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/store/store_admission.h"

struct agent_worker_store;

/* `opened` is called with the port; `failed` with the reason. Perhaps from inside open. */
struct agent_worker_store_observer {
    void (*opened)(void *context, int port);
    void (*failed)(void *context, const char *reason);
    void *context;
};

/* What it points to outlives the object. */
struct agent_worker_store_settings {
    const struct launch_config *config;
    const char *name; /* of this node, as workers get it in MASTER_ADDR */
    const struct log *log;
    struct store_admission *admission; /* of other machines; outlives it; NULL: all are served */
    struct tally *operations; /* that the stores of all rounds carry out; NULL: nobody counts */
    struct agent_worker_store_observer observer;
};

struct agent_worker_store *agent_worker_store_new(
    struct event_loop *loop, const struct agent_worker_store_settings *settings);
/* NULL is fine. */
void agent_worker_store_free(struct agent_worker_store *store);

/* Fresh: a new server on a new port; the old one ends with all its connections. Otherwise the one
 * there is keeps its port, and forgets everything. */
void agent_worker_store_open(struct agent_worker_store *store, bool is_fresh);

#endif
