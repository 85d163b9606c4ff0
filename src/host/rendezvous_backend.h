/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record of a dynamic rendezvous, kept in a key-value store: get, compare-and-set, watch
 * and presence, over a TCPStore server (ours or PyTorch's) or a FileStore. Key, encoding and
 * compare-and-set are those of C10dRendezvousBackend in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py; watch and presence are described
 * in docs/dynamic-rendezvous.md. Carries out what core/rendezvous_machine asks; decides nothing.
 *
 * There are three connections: one for requests answered at once, which carries this node's
 * presence, one that waits for the record to change, and one that waits for others' keys. */
#ifndef MUSTER_HOST_RENDEZVOUS_BACKEND_H
#define MUSTER_HOST_RENDEZVOUS_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/node_identity.h"
#include "core/rendezvous_state.h"
#include "host/event_loop.h"
#include "host/store_access.h"

/* A server that serves presence has this key below the presences'. */
#define RENDEZVOUS_PRESENCE_SERVED "served"
/* What a node says of itself. */
#define RENDEZVOUS_PRESENCE_RUNNING "running"
#define RENDEZVOUS_PRESENCE_FINISHED "finished"

struct rendezvous_backend;

/* Called on the loop, never from inside a call below. Strings and states are borrowed. */
struct rendezvous_backend_observer {
    void (*connected)(void *context, bool has_presence);
    /* No connection by the deadline, or one that stood is gone. `is_silent`: no answer, as opposed
     * to an end or a refusal. */
    void (*lost)(void *context, const char *reason, bool is_silent);
    void (*record)(void *context, const struct rendezvous_state *state); /* NULL: none yet */
    /* `state`: the record as it is, when not won; NULL: there is none. */
    void (*written)(void *context, bool has_won, const struct rendezvous_state *state);
    void (*changed)(void *context);
    void (*finished_count)(void *context, int64_t count);
    void (*roll_answered)(void *context);
    /* The record makes no sense, or belongs to a job with other settings. Nothing was written. */
    void (*broken)(void *context, const char *reason);
    void *context;
};

struct rendezvous_backend_settings {
    const char *path; /* of a FileStore; NULL: a TCPStore at … */
    const char *host; /* without brackets */
    int port;
    const char *run_id;
    int minimum_nodes; /* for other nodes to compare */
    int maximum_nodes;
    struct duration silence_timeout; /* the other host's kernel does not answer */
    struct duration answer_timeout;  /* the store does not answer */
    struct rendezvous_backend_observer observer;
};

/* Copies the settings, strings included. Connects nothing yet. Never NULL. */
struct rendezvous_backend *rendezvous_backend_new(
    struct event_loop *loop, const struct rendezvous_backend_settings *settings);
/* NULL is fine. Also from inside a callback. */
void rendezvous_backend_free(struct rendezvous_backend *backend);

/* Tries until the deadline; answered by connected, lost or broken. Drops what was there before. */
void rendezvous_backend_connect(struct rendezvous_backend *backend, struct instant deadline);

/* Drops every connection; nothing is told. */
void rendezvous_backend_disconnect(struct rendezvous_backend *backend);

/* The rest is for a connected backend; without a connection it does nothing. */

/* Answered by record or broken. */
void rendezvous_backend_fetch(struct rendezvous_backend *backend);
/* Only if the record is the one seen last; answered by written or broken. Tells the watchers,
 * unless it is quiet. */
void rendezvous_backend_write(
    struct rendezvous_backend *backend, const struct rendezvous_state *state, bool is_quiet);
void rendezvous_backend_tell_watchers(struct rendezvous_backend *backend);
/* Ties this name to the connection, in place of an earlier one. */
void rendezvous_backend_present(
    struct rendezvous_backend *backend, const struct node_identity *identity, bool has_finished);
/* Shows that this node is alive, and finds out whether the store is, and whether a change was
 * missed. */
void rendezvous_backend_beat(struct rendezvous_backend *backend);
/* How many nodes have come to the round's exit barrier; answered by finished_count. */
void rendezvous_backend_count_finished(struct rendezvous_backend *backend, int64_t round);

/* Waits for the answers of the nodes ranked 0 to number - 1 in that round; answered by
 * roll_answered, if ever. cancel_waits calls it off. */
void rendezvous_backend_call_roll(struct rendezvous_backend *backend, int64_t round, int number);
void rendezvous_backend_answer_roll(struct rendezvous_backend *backend, int64_t round, int rank);

void rendezvous_backend_delete(struct rendezvous_backend *backend, const char *key);

/* Requests of the user's own, answered as host/store_access says; a failure other than
 * FAILURE_CANCELLED is also reported as lost. False, and nothing is sent, without a connection. */
bool rendezvous_backend_ask(
    struct rendezvous_backend *backend, const struct store_client_call *call);
bool rendezvous_backend_wait(
    struct rendezvous_backend *backend, const struct store_client_call *call);
/* Calls off the waits under way; they are answered with FAILURE_CANCELLED. */
void rendezvous_backend_cancel_waits(struct rendezvous_backend *backend);

#endif
