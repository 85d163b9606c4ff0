/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of a dynamic rendezvous, where this agent hosts it: opens its port, tells which agents
 * are gone or have stalled, and stays until the others have left. Who hosts is decided as in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py _create_tcp_store: is_host where
 * it is given, else the node whose machine the endpoint names, if the port is free there. */
#ifndef MUSTER_AGENT_AGENT_STORE_HOST_H
#define MUSTER_AGENT_AGENT_STORE_HOST_H

#include <stdbool.h>

#include "agent/agent_preparation.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/launch_config.h"
#include "core/node_identity.h"
#include "host/event_loop.h"
#include "host/tally.h"

struct agent_store_host;

struct agent_store_host_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const char *run_id;
    const struct log *log;
    struct tally *operations; /* that the store carries out; NULL: nobody counts */
    /* An agent is gone: its connection ended, its machine fell silent, or it has stalled. */
    void (*gone)(void *context, const struct node_identity *identity, bool has_finished);
    /* A node that tells nobody what it writes, one of torchrun's, has written the record. */
    void (*record_written)(void *context);
    void *context;
};

/* `*out_host` stays NULL where another node hosts the store, or is to. FAILURE_SYSTEM when this
 * node is to host it and cannot open the port. */
__attribute__((warn_unused_result)) enum failure_code agent_store_host_new(struct event_loop *loop,
    const struct agent_store_host_settings *settings, struct agent_store_host **out_host,
    struct failure *failure);
/* NULL is fine. */
void agent_store_host_free(struct agent_store_host *host);

/* Calls `done`, perhaps at once, when nobody is connected any more or `patience` is over. */
void agent_store_host_linger(struct agent_store_host *host, struct duration patience,
    void (*done)(void *context), void *context);

#endif
