/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether this agent hosts the store of a c10d rendezvous (agent_hosted_store), which one agent
 * does from its start to its end. Who hosts is decided as in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py _create_tcp_store: is_host where
 * it is given, else the node whose machine the endpoint names, if the port is free there. But there
 * the question is asked once; here as often as a connection is tried, as the name of a machine that
 * has just started may not be known yet, and an agent that has the port may be about to end. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_STORE_HOST_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_STORE_HOST_H

#include <stdbool.h>

#include "agent/workers/agent_preparation.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "wire/store/store_proof.h"

struct agent_store_host;

struct agent_store_host_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const char *run_id;
    const struct log *log;
    const struct store_key *key; /* of the job's token; NULL: there is none */
    struct tally *operations;    /* that the store carries out; NULL: nobody counts */
    /* The endpoint has turned out to be this node's after agent_store_host_new: the store is hosted
     * from now on, and others' connections to it, this node's too, lead here. */
    void (*now_hosting)(void *context);
    /* An agent is gone: its connection ended, its machine fell silent, or it has stalled. */
    void (*gone)(void *context, const struct node_identity *identity, bool has_finished);
    /* A node that tells nobody what it writes, one of torchrun's, has written the record. */
    void (*record_written)(void *context);
    /* As in agent_hosted_store.h, where this job's nodes may delegate. */
    void (*wished)(
        void *context, const struct node_identity *identity, const struct rendezvous_wish *wish);
    /* Appends why no store is reached at the endpoint, while this node tries. */
    void (*write_obstacle)(void *context, struct text *out);
    void *context;
};

/* Hosts the store at once where this node is told to or the endpoint is plainly its own; else asks
 * again and again whether it is, unless it is told that it is not. FAILURE_SYSTEM when this node is
 * told to host the store and cannot open the port. */
__attribute__((warn_unused_result)) enum failure_code agent_store_host_new(struct event_loop *loop,
    const struct agent_store_host_settings *settings, struct agent_store_host **out_host,
    struct failure *failure);
/* NULL is fine. */
void agent_store_host_free(struct agent_store_host *host);

/* A store was found, or will not be looked for any longer: what is not hosted now never will be. */
void agent_store_host_stop_asking(struct agent_store_host *host);

/* Appends what else there is to say where no store is reached at the endpoint: it is this
 * machine's, and another program is there; or it is no node's, as far as this one can know. */
void agent_store_host_write_hint(const struct agent_store_host *host, struct text *out);

/* The name by which the others reach this machine, as they have reached the store: that of the
 * endpoint, where this node hosts the store and the name is this machine's alone. Borrowed. NULL:
 * it is not known. */
const char *agent_store_host_reached_name(const struct agent_store_host *host);
/* As agent_hosted_store_reached; empty where no store is hosted. */
const char *agent_store_host_reached_address(const struct agent_store_host *host);

bool agent_store_host_is_hosting(const struct agent_store_host *host);
/* Where this node finds the store: here, or at the endpoint. Borrowed. */
const char *agent_store_host_address(const struct agent_store_host *host);
int agent_store_host_port(const struct agent_store_host *host);

/* Tells nodes that delegate how they stand: TELL_STANDINGS. */
void agent_store_host_tell(struct agent_store_host *host, const struct rendezvous_effect *effect);

/* Calls `done`, perhaps at once, when there are no more than this node's `own` connections or
 * `patience` is over. At once where the store is not hosted. */
void agent_store_host_linger(struct agent_store_host *host, size_t own, struct duration patience,
    void (*done)(void *context), void *context);

#endif
