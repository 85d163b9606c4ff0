/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of a dynamic rendezvous as an agent serves it: opens its port, tells which agents are
 * gone or have stalled, and stays until the others have left. It may stand by first, and again:
 * then its port is open, nobody is served, and who asks is told who hosts. Which agent hosts and
 * when is decided elsewhere (agent_store_host, agent_term_store). */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_HOSTED_STORE_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_HOSTED_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/store/store_server.h"
#include "wire/store/store_proof.h"

struct agent_hosted_store;

struct agent_hosted_store_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const char *run_id;
    const struct log *log;
    const struct store_key *key; /* of the job's token; NULL: there is none */
    struct tally *operations;    /* that the store carries out; NULL: nobody counts */
    bool stands_by;              /* at first, with nothing to tell; else it serves at once */
    /* An agent is gone: its connection ended, its machine fell silent, or it has stalled. Of a
     * store that is served no longer nothing is told. */
    void (*gone)(void *context, const struct node_identity *identity, bool has_finished);
    /* `gone` of this agent follows, whose process may be there: its machine fell silent, or it has
     * stalled. NULL: nobody asks. */
    void (*silent)(void *context, const struct node_identity *identity);
    /* A node that tells nobody what it writes, one of torchrun's, has written the record. */
    void (*record_written)(void *context);
    /* What a node wishes that delegates, or that it wishes nothing; again with each sign of life.
     * NULL: no node may delegate. */
    void (*wished)(
        void *context, const struct node_identity *identity, const struct rendezvous_wish *wish);
    void *context;
};

/* `name` and `port` as in agent_listener_open, whose failures these are. */
__attribute__((warn_unused_result)) enum failure_code agent_hosted_store_open(
    struct event_loop *loop, const struct agent_hosted_store_settings *settings, const char *name,
    int port, struct agent_hosted_store **out_store, struct failure *failure);
/* NULL is fine. */
void agent_hosted_store_free(struct agent_hosted_store *store);

int agent_hosted_store_port(const struct agent_hosted_store *store);
/* Whether clients are served, as far as this side knows. */
bool agent_hosted_store_is_serving(const struct agent_hosted_store *store);

/* The address at which all nodes of other machines have reached this one. Empty where they have not
 * reached it at one, or none has come. Good until the next event. */
const char *agent_hosted_store_reached(const struct agent_hosted_store *store);

/* For a store that stands by at first. Both return at once. `done` is called on the loop when it is
 * so, unless one of the two was called again meanwhile; NULL: nobody waits. */

/* Serves clients from now on, with these keys, which are taken. */
void agent_hosted_store_serve(struct agent_hosted_store *store, struct store_seeds *seeds_taken,
    void (*done)(void *context), void *context);
/* Serves nobody: every connection ends, what the store held is freed, and who asks is told this. */
void agent_hosted_store_stand_by(struct agent_hosted_store *store, const char *answer,
    void (*done)(void *context), void *context);

/* Whether this node is connected to the store that is served. */
bool agent_hosted_store_knows(
    const struct agent_hosted_store *store, const struct node_identity *identity);

/* Tells nodes that delegate how they stand: TELL_STANDINGS. */
void agent_hosted_store_tell(
    struct agent_hosted_store *store, const struct rendezvous_effect *effect);
/* For a host that leaves. Tells this node that it is to follow; false: it is not connected. */
bool agent_hosted_store_name(
    struct agent_hosted_store *store, const struct node_identity *successor);
/* Tells all who are connected that another node hosts the store. */
void agent_hosted_store_tell_moved(struct agent_hosted_store *store);
/* Ends the connection on which this node is present: CUT_OFF. */
void agent_hosted_store_cut_off(
    struct agent_hosted_store *store, const struct node_identity *identity);

/* Calls `done`, perhaps at once, when there are no more than this node's `own` connections or
 * `patience` is over. */
void agent_hosted_store_linger(struct agent_hosted_store *store, size_t own,
    struct duration patience, void (*done)(void *context), void *context);

#endif
