/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record of a dynamic rendezvous in a key-value store, as one node uses it: get,
 * compare-and-set, watch and presence, as store requests. The input is what a rendezvous_machine
 * asks of its backend, and the store's replies. The output is effects: requests to send, and events
 * for the machine. This module knows no sockets and no event loop: the host sends the requests over
 * connections, a simulation plays them. It decides nothing about the job.
 *
 * Key, encoding and compare-and-set are those of C10dRendezvousBackend in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py. They work with any TCPStore
 * server and with a FileStore. Watch and presence are described in docs/dynamic-rendezvous.md.
 * Changes are counted, and each change has a key with its number, which is set when the change is
 * told. A watcher waits for the key of the number after the last one it knows.
 *
 * The contract with the performer:
 * - OPEN is answered by take_opened when all lanes are connected, or by take_unopened. A connection
 *   that ends before CONNECTED was told, for whatever reason, is one more attempt: it is opened
 *   again after a random pause, until the deadline of CONNECT.
 * - Each SEND is answered once, by take_reply or take_failure, after the call that made it has
 *   returned. For a request without a reply (store_operation_reply_kind) the performer gives a
 * reply of STORE_REPLY_NONE when the request is sent. Replies of a lane that was replaced are
 * ignored.
 * - While is_up, the performer may send requests of its own over the asker and the waiter, too.
 * - Every call appends to `effects`, in the order in which they are to be done. It appends at most
 * one TELL, which is the last effect. The machine is never called from inside a call. While the
 * store is not up, every request but CONNECT is ignored. */
#ifndef MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_RECORD_STORE_H
#define MUSTER_WIRE_RENDEZVOUS_RENDEZVOUS_RECORD_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/store/store_request.h"
#include "wire/rendezvous/record_effects.h"

/* The value of a running node's presence key. */
#define RENDEZVOUS_PRESENCE_RUNNING "running"
#define RENDEZVOUS_PRESENCE_FINISHED "finished"

struct rendezvous_record_store;

struct rendezvous_record_store_settings {
    const char *run_id;
    int minimum_nodes; /* the other nodes compare it with theirs */
    int maximum_nodes;
    struct duration answer_timeout; /* for requests that the store answers at once */
    uint64_t seed;                  /* for the random part of pauses between attempts */
    bool
        is_file; /* a file store: deleting does not free space there, because the file only grows */
    bool delegates; /* where the host of the store offers to write the record for others */
    bool follows;   /* another node may come to host the store: its host says when it leaves */
};

/* Copies the settings. The result is not connected. The caller frees it with
 * rendezvous_record_store_free, which accepts NULL. */
struct rendezvous_record_store *rendezvous_record_store_new(
    const struct rendezvous_record_store_settings *settings);
void rendezvous_record_store_free(struct rendezvous_record_store *store);

/* Whether CONNECTED has been told and no lane has been lost since. */
bool rendezvous_record_store_is_up(const struct rendezvous_record_store *store);
/* Whether the server is an agent of Muster's: it serves presence. */
bool rendezvous_record_store_is_agents(const struct rendezvous_record_store *store);

/* Requests of the machine. */

/* Takes an effect of the machine: CONNECT, PRESENT, BEAT, FETCH, WRITE, TELL_WATCHERS,
 * COUNT_FINISHED, CALL_ROLL or ANSWER_ROLL. It is answered as rendezvous_machine.h says. Other
 * effects are ignored. */
void rendezvous_record_store_ask(struct rendezvous_record_store *store,
    const struct rendezvous_effect *asked, struct record_effects *effects);
/* Deletes a key of an earlier round; `key` is complete, as it is sent. At most one deletion is
 * under way at a time, so that signs of life do not wait for thousands of them. Does nothing in a
 * file. */
void rendezvous_record_store_delete(
    struct rendezvous_record_store *store, const char *key, struct record_effects *effects);
/* Cancels the roll and everything else that the waiter lane waits for. */
void rendezvous_record_store_cancel_waits(
    struct rendezvous_record_store *store, struct record_effects *effects);
/* Drops the lanes. The machine is told nothing. */
void rendezvous_record_store_disconnect(
    struct rendezvous_record_store *store, struct record_effects *effects);

/* Answers of the performer. Replies and messages are borrowed. */

void rendezvous_record_store_take_opened(
    struct rendezvous_record_store *store, struct record_effects *effects);
/* A lane could not be opened: not until the deadline (FAILURE_TIMEOUT), or trying again would not
 * mend it. `was_heard`: another lane is open. */
void rendezvous_record_store_take_unopened(struct rendezvous_record_store *store,
    enum failure_code code, const char *message, bool was_heard, struct record_effects *effects);
/* A lane that had been opened was lost. */
void rendezvous_record_store_take_end(struct rendezvous_record_store *store, enum failure_code code,
    const char *message, struct record_effects *effects);
void rendezvous_record_store_take_reply(struct rendezvous_record_store *store, uint64_t tag,
    const struct store_reply *reply, struct record_effects *effects);
/* A request failed. All lanes are dropped, unless the performer itself cancelled the request
 * (FAILURE_CANCELLED). */
void rendezvous_record_store_take_failure(struct rendezvous_record_store *store, uint64_t tag,
    enum failure_code code, const char *message, struct record_effects *effects);

#endif
