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
#include <stddef.h>

#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/store/store_request.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/store/store_server.h"
#include "wire/store/store_proof.h"

/* Opens the ports of the stores that an agent serves: on every address, or where the whole job is
 * on this machine only for processes of this machine. */

/* `name` is the one by which the store is found; `port` 0 is any free one. Completes `settings`:
 * where the job is local, and the name is this machine's alone, with what makes the store local,
 * and this user's unless the job's stores are for every user. Also with how many clients may be
 * there without a proof.
 * Failures as tcp_listener_open. */
__attribute__((warn_unused_result)) enum failure_code agent_listener_open(
    const struct launch_config *config, const char *name, int port,
    struct store_server_settings *settings, int *out_fd, struct failure *failure);

/* Warns when the job's store that was opened with these settings is open to everybody. Not where
 * the user said --auth none: that was said at the start. */
void agent_listener_warn(const struct launch_config *config,
    const struct store_server_settings *settings, int port, const struct log *log);

/* Warns when this process may not have enough files open to serve the job's store to all nodes that
 * may come, with so many connections each. The soft limit was raised before. */
void agent_listener_warn_of_limit(
    const struct launch_config *config, int connections_of_node, const struct log *log);

/* How much memory a store of this agent may use, from --store-memory and from what there is. */

/* The limits for one store. Warns when more was asked for than there is. */
struct store_limits agent_store_memory_limits(
    const struct launch_config *config, const struct log *log);

/* The store of a dynamic rendezvous as an agent serves it: opens its port, tells which agents are
 * gone or have stalled, and stays until the others have left. It may stand by first, and again:
 * then its port is open, nobody is served, and who asks is told who hosts. Which agent hosts and
 * when is decided elsewhere (agent_store_host below, agent_succession). */

struct agent_hosted_store;

struct agent_hosted_store_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const char *run_id;
    const struct log *log;
    const struct store_key *key; /* of the job's token; NULL: there is none */
    struct tally *operations;    /* that the store carries out; NULL: nobody counts */
    bool stands_by;              /* at first, with nothing to tell; else it serves at once */
    /* Says where the agents of this machine announce themselves (host/telling/job_directory.h): one
     * that is awaited and has died there is `gone` at once. NULL: nobody looks. */
    const struct text_list *environment;
    /* An agent is gone: its connection ended, its machine fell silent, or it has stalled. Of a
     * store that is served no longer nothing is told. */
    void (*gone)(void *context, const struct node_identity *identity, bool has_finished);
    /* `gone` of this agent follows, whose process may be there: its machine fell silent, or it has
     * stalled. NULL: nobody asks. */
    void (*silent)(void *context, const struct node_identity *identity);
    /* A node of Muster stands in the record, and has not come to this store in time. `is_done`: by
     * the record its workers are done, so it may be gone. */
    void (*missed)(void *context, const struct node_identity *identity, bool is_done);
    /* A node that tells nobody what it writes, one of torchrun's, has written the record. */
    void (*record_written)(void *context);
    /* A node is there, and what it wishes that delegates, or that it wishes nothing; again with
     * each sign of life. */
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
/* The record is this, or is about to be: those of Muster's nodes in it that are not connected to
 * the store that is served are awaited from now on, and others no longer. */
void agent_hosted_store_see(
    struct agent_hosted_store *store, const struct rendezvous_state *record);

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
    /* As in agent_hosted_store_settings. */
    void (*missed)(void *context, const struct node_identity *identity, bool is_done);
    /* A node that tells nobody what it writes, one of torchrun's, has written the record. */
    void (*record_written)(void *context);
    /* As in agent_hosted_store_settings. */
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

/* The record is this. Nothing happens where the store is not hosted here. */
void agent_store_host_see(struct agent_store_host *host, const struct rendezvous_state *record);
/* This node is about to write it. What it writes it has read, or others have told it on their
 * connections. */
void agent_store_host_see_draft(
    struct agent_store_host *host, const struct rendezvous_state *draft);

/* Tells nodes that delegate how they stand: TELL_STANDINGS. */
void agent_store_host_tell(struct agent_store_host *host, const struct rendezvous_effect *effect);

/* Calls `done`, perhaps at once, when there are no more than this node's `own` connections or
 * `patience` is over. At once where the store is not hosted. */
void agent_store_host_linger(struct agent_store_host *host, size_t own, struct duration patience,
    void (*done)(void *context), void *context);

#endif
