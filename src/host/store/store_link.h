/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection to a TCPStore server: connects to one address, does the handshake, then sends
 * bytes and receives decoded replies, one expected reply at a time. A QUEUE_POP may rest at the
 * server meanwhile (core/store/store_table.h), which answers it before the next request.
 * host/store_client retries, keeps deadlines and orders the requests. */
#ifndef MUSTER_HOST_STORE_STORE_LINK_H
#define MUSTER_HOST_STORE_STORE_LINK_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/store/store_request.h"
#include "host/loop/event_loop.h"
#include "host/network/network_address.h"
#include "wire/store/store_codec.h"
#include "wire/store/store_proof.h"

struct store_link;

/* Callbacks to the owner. Each of them may free the link. */
struct store_link_owner {
    /* The server answered the handshake, and with a key both sides have proved themselves. */
    void (*ready)(void *context);
    /* The expected reply, borrowed for the call. The same kind is expected again until the next
     * store_link_expect or store_link_expect_nothing. */
    void (*replied)(void *context, const struct store_reply *reply);
    /* The QUEUE_POP that rests has an item, or was answered without one although it gave way to no
     * request; or one that gave way had an item just then. May be NULL where none rests. */
    void (*rested)(void *context, const struct store_reply *reply);
    /* Everything sent has been given to the kernel. Called only after store_link_send returned
     * false. */
    void (*drained)(void *context);
    /* The connection has ended, or could not be made. For an established connection the message
     * names the server: FAILURE_TIMEOUT when its machine was silent, FAILURE_DISCONNECTED when its
     * process ended it, FAILURE_PROTOCOL or FAILURE_LIMIT when it broke the protocol.
     * FAILURE_INVALID with the server's name when the two sides do not have the same job token, or
     * only one has one: then no attempt will succeed. */
    void (*ended)(void *context, const struct failure *failure);
};

/* Where and how to connect. */
struct store_link_settings {
    const union tcp_address *address;        /* copied */
    const struct store_reply_limits *limits; /* copied */
    const struct store_key *key;             /* NULL: no job token; outlives the link */
    struct duration silence_timeout;         /* see host/tcp_stream; more than zero */
    bool is_watched;                         /* its user looks for silence: tcp_silence_watch */
    const struct store_link_owner *owner;    /* outlives the link */
    void *context;                           /* the owner's */
};

/* Starts to connect. FAILURE_SYSTEM when that fails at once; then no callback follows. */
__attribute__((warn_unused_result)) enum failure_code store_link_open(struct event_loop *loop,
    const struct store_link_settings *settings, struct store_link **out_link,
    struct failure *failure);

/* Closes without a callback. Accepts NULL. */
void store_link_free(struct store_link *link);

/* Whether the connection is established. The handshake may not be answered yet. */
bool store_link_is_connected(const struct store_link *link);

/* Appends the server's address, in numbers and without the port, where that is enough to find it
 * again. */
void store_link_write_server(const struct store_link *link, struct text *out);

/* Appends this side's address as the server sees it, unless that is a loopback address. Nothing
 * where the two sides have not proved themselves. */
void store_link_write_address(const struct store_link *link, struct text *out);

/* The socket; -1 once it is closed. */
int store_link_descriptor(const struct store_link *link);

/* How long nothing was heard of the server's machine (host/network/tcp_stream). */
struct duration store_link_silence(const struct store_link *link);

/* Looks whether the server's machine is still there (core/store/connection_silence). If it is gone,
 * the connection ends as if the kernel had found that: `ended` is called with FAILURE_TIMEOUT, and
 * this returns for ever. Else returns after how long to look again, and says whether the connection
 * has been calm for `calm_after` (core/store/connection_silence; zero: it never is). */
struct duration store_link_look(
    struct store_link *link, struct duration calm_after, bool *out_is_calm);

/* Sends a sign of life (STORE_SIGN_OF_LIFE), unless many are not answered. No reply may be
 * expected. Its answers stay in the kernel, so that they do not wake this process, until something
 * else comes or store_link_collect takes them. The end of the connection is told at once all the
 * same. `is_followed` as for store_link_send. */
void store_link_sign(struct store_link *link, bool is_followed);
void store_link_collect(struct store_link *link);

/* Sends the bytes. `is_followed`: others are sent at once, and both arrive together. True when all
 * of them were given to the kernel; else `drained` (or `ended`) follows. */
bool store_link_send(struct store_link *link, struct slice request, bool is_followed);

/* Says which request the next reply answers; of its keys only the number matters. Before the first
 * call, and for a request without a reply, any data from the server is a protocol error. */
void store_link_expect(struct store_link *link, const struct store_request *request);
void store_link_expect_nothing(struct store_link *link);

/* Whether a QUEUE_POP rests at the server; it does no more once something else is sent. */
bool store_link_is_resting(const struct store_link *link);
/* Whether one may: not while too many answers are under way. */
bool store_link_may_rest(const struct store_link *link);
/* This QUEUE_POP is to rest. Where it is of another key than the one before, an item of that one,
 * which rests still or has given way, is nobody's. */
void store_link_prepare_rest(struct store_link *link, struct slice queue_pop);
/* Sends the bytes of a QUEUE_POP of a key for which the server keeps it until there is an item. It
 * comes behind the reply that is expected, if one is, which must be no wait. */
void store_link_rest(struct store_link *link, struct slice queue_pop);
/* The request that rests, or rested last; borrowed. */
struct slice store_link_rested(const struct store_link *link);

#endif
