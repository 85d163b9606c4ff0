/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record of a dynamic rendezvous, kept in a key-value store: get, compare-and-set, watch
 * and presence, over a TCPStore server (ours or PyTorch's) or a FileStore. Key, encoding and
 * compare-and-set are those of C10dRendezvousBackend in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py. Watch and presence are described
 * in docs/dynamic-rendezvous.md. It carries out what core/rendezvous_machine asks.
 * wire/rendezvous_record_store decides what is sent and what follows; this module only transports
 * it.
 *
 * There are up to three connections. One carries requests that the store answers at once, and this
 * node's presence. One waits until the record changes. One waits for keys of other nodes. Where the
 * node delegates, it waits over the first one for what the host tells it, and the others are opened
 * when they are needed. */
#ifndef MUSTER_HOST_RENDEZVOUS_RENDEZVOUS_BACKEND_H
#define MUSTER_HOST_RENDEZVOUS_RENDEZVOUS_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"
#include "host/store/store_access.h"
#include "wire/rendezvous/rendezvous_record_store.h"

struct rendezvous_backend;

/* Called on the loop, never from inside a call below. Strings and states are borrowed. */
struct rendezvous_backend_observer {
    /* What core/rendezvous/rendezvous_machine is to be told: CONNECTED (`is_host` is the caller's
     * to know), CONNECTION_LOST, RECORD, WRITTEN, CHANGED, FINISHED_COUNT, ROLL_ANSWERED or BROKEN.
     * The event has no time, and is borrowed for the call. */
    void (*told)(void *context, const struct rendezvous_event *event);
    /* The store's machine is silent, though the connection is not lost yet; or it is heard again.
     * A connection begins without doubt. NULL: nobody asks. */
    void (*doubted)(void *context, bool is_doubted);
    /* The socket by which the store knows that this node is there; -1: it is shut down, and about
     * to be closed. Also called from inside rendezvous_backend_disconnect and _free. NULL: nobody
     * asks. */
    void (*held)(void *context, int fd);
    void *context;
};

struct rendezvous_backend_settings {
    const char *path; /* path of a FileStore; NULL: a TCPStore, wherever connect says */
    const char *run_id;
    const struct store_key *key; /* of the job's token; NULL: there is none; outlives the backend */
    int minimum_nodes;           /* the other nodes compare it with theirs */
    int maximum_nodes;
    struct duration silence_timeout; /* how long the kernel of the store's host may be silent */
    struct duration answer_timeout;  /* how long the store may take to answer */
    /* After how long without a lost packet no signs of life go; zero: never. They go in any case
     * where `doubted` wants to know within half a second. */
    struct duration calm_after;
    bool delegates; /* as in rendezvous_record_store.h */
    bool follows;   /* the same */
    struct rendezvous_backend_observer observer;
};

/* Copies the settings and their strings. Does not connect yet. Never NULL. */
struct rendezvous_backend *rendezvous_backend_new(
    struct event_loop *loop, const struct rendezvous_backend_settings *settings);
/* Accepts NULL. May be called from inside a callback. */
void rendezvous_backend_free(struct rendezvous_backend *backend);

/* How to connect. */
struct rendezvous_backend_trying {
    const char *host; /* of the TCPStore, without brackets; copied; a file has none */
    int port;
    struct instant deadline;
    struct duration refusal_patience; /* see store_client_settings */
};

/* Tries to connect until the deadline, or until `refusal_patience` has passed; answered by
 * connected, lost or broken. Drops earlier connections. The store may be elsewhere each time. */
void rendezvous_backend_connect(
    struct rendezvous_backend *backend, const struct rendezvous_backend_trying *trying);

/* The TCPStore is here, it has turned out: attempts to connect go on there at once. Does nothing
 * without such attempts. Not for a connected backend. */
void rendezvous_backend_redirect(struct rendezvous_backend *backend, const char *host, int port);

/* Whether the store to which it was connected last is an agent's of Muster. */
bool rendezvous_backend_is_at_agent(const struct rendezvous_backend *backend);

/* Where the store is; false: it is a file, or there is no connection. Borrowed. */
bool rendezvous_backend_find_store(
    const struct rendezvous_backend *backend, const char **out_host, int *out_port);

/* How many connections a node keeps. */
int rendezvous_backend_connections_needed(bool delegates);
/* How many of its connections are there. */
size_t rendezvous_backend_connection_count(const struct rendezvous_backend *backend);

/* Appends the address of the store's machine, of those that it was tried at; nothing where there is
 * no connection, and for a file. */
void rendezvous_backend_write_reached(const struct rendezvous_backend *backend, struct text *out);
/* Appends this node's address as the store sees it, where it has proved itself to a store on
 * another machine. */
void rendezvous_backend_write_address(const struct rendezvous_backend *backend, struct text *out);
/* Appends the address that this node's connection to the store of another machine has here. */
void rendezvous_backend_write_own(const struct rendezvous_backend *backend, struct text *out);
/* Appends why the TCPStore is not reached, while it is tried (store_client_write_obstacle). */
void rendezvous_backend_write_obstacle(const struct rendezvous_backend *backend, struct text *out);
/* Drops every connection. No callback is called. */
void rendezvous_backend_disconnect(struct rendezvous_backend *backend);

/* The functions below need a connected backend; without a connection they do nothing. */

/* Answered by record or broken. */
void rendezvous_backend_fetch(struct rendezvous_backend *backend);
/* Writes only if the record is still the one seen last; answered by written or broken. Tells the
 * watchers, unless `is_quiet`. */
void rendezvous_backend_write(
    struct rendezvous_backend *backend, const struct rendezvous_state *state, bool is_quiet);
void rendezvous_backend_tell_watchers(struct rendezvous_backend *backend);
/* Ties this node's name to the connection. It replaces an earlier name. `effect` is PRESENT. */
void rendezvous_backend_present(
    struct rendezvous_backend *backend, const struct rendezvous_effect *effect);
/* Shows that this node is alive, checks that the store is, and checks whether a change was
 * missed. */
void rendezvous_backend_beat(struct rendezvous_backend *backend);
/* Asks how many nodes are in the round's exit barrier; answered by finished_count. */
void rendezvous_backend_count_finished(struct rendezvous_backend *backend, int64_t round);

/* Waits for the answers of the nodes ranked 0 to number - 1 in that round; then roll_answered is
 * called. Without all answers there is no call. cancel_waits ends the waiting. */
void rendezvous_backend_call_roll(struct rendezvous_backend *backend, int64_t round, int number);
void rendezvous_backend_answer_roll(struct rendezvous_backend *backend, int64_t round, int rank);

/* Does nothing in a file, where a deletion only makes the file grow. */
void rendezvous_backend_delete(struct rendezvous_backend *backend, const char *key);

/* Sends a request of the caller's own, answered as host/store_access says. A failure other than
 * FAILURE_CANCELLED is also reported as lost. Returns false and sends nothing when not
 * connected. */
bool rendezvous_backend_ask(
    struct rendezvous_backend *backend, const struct store_client_call *call);
bool rendezvous_backend_wait(
    struct rendezvous_backend *backend, const struct store_client_call *call);
/* Cancels the waits under way; they are answered with FAILURE_CANCELLED. */
void rendezvous_backend_cancel_waits(struct rendezvous_backend *backend);

#endif
