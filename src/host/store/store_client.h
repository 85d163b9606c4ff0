/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of PyTorch's TCPStore (our server or PyTorch's) on an event loop. It connects with
 * retries, does the handshake, sends requests one after the other, and calls back with each answer.
 * Unlike upstream's TCPStore client every reply has a deadline, so a silent server is noticed. It
 * does not reconnect: its user decides what a lost store means.
 *
 * One connection does one thing at a time: a request that is made while another waits is sent when
 * that one is done. Use a second client to work while one waits, as upstream's clone() does; only a
 * QUEUE_POP that rests (below) holds up nothing. */
#ifndef MUSTER_HOST_STORE_STORE_CLIENT_H
#define MUSTER_HOST_STORE_STORE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/store/store_request.h"
#include "host/loop/event_loop.h"
#include "host/network/network_address.h"
#include "wire/store/store_codec.h"
#include "wire/store/store_proof.h"

struct store_client;

struct store_client_settings {
    const char *host; /* name, IPv4 or IPv6 address without brackets; copied */
    int port;
    struct duration pause;           /* before the first attempt to connect */
    struct duration connect_timeout; /* until the handshake is done, retries included */
    /* How long a machine that refuses every connection is tried, from its first refusal on, and
     * until all of its addresses were tried. Another outcome of an attempt begins that time anew.
     * Zero: as long as any machine. */
    struct duration refusal_patience;
    /* How long the server's machine may be silent before the connection is given up
     * (host/tcp_stream), whether or not requests are under way. Zero: three minutes. */
    struct duration silence_timeout;
    /* The user calls store_client_look regularly and sends signs of life. It is judged by that
     * whether the server's machine is silent, and the kernel only ends the connection after three
     * times silence_timeout. */
    bool is_watched;
    /* Where is_watched: after how long without a lost packet the connection is calm, and needs no
     * signs of life (core/store/connection_silence). Zero: never. */
    struct duration calm_after;
    /* The job's token, see wire/store/store_proof; outlives the client. NULL: there is none. */
    const struct store_key *key;
    struct store_reply_limits limits; /* zeroes: the defaults */
    /* Called once: with NULL when requests can be answered from now on, else with the reason why
     * not: FAILURE_TIMEOUT and the error of the last attempt (the system's is ECONNREFUSED when it
     * was refusal_patience that ended), or at once FAILURE_INVALID when the
     * server has another job token, or only one side has one. May be NULL. */
    void (*connected)(void *context, const struct failure *failure);
    /* Called once when an established connection ends without store_client_free, after the
     * pending requests have failed. FAILURE_TIMEOUT: the machine was silent for silence_timeout,
     * or a request was not answered in time. FAILURE_DISCONNECTED: the server's process closed
     * the connection or ended. FAILURE_PROTOCOL or FAILURE_LIMIT: it broke the protocol. May be
     * NULL. */
    void (*lost)(void *context, const struct failure *failure);
    void *context;
};

/* How one request ended. Borrowed: valid during the callback. */
struct store_client_result {
    /* FAILURE_NONE: answered. FAILURE_TIMEOUT: this request's time is up. FAILURE_CANCELLED:
     * store_client_free was called. When there is no connection (see `is_over`), the code that
     * `connected` or `lost` gets. */
    enum failure_code code;
    bool is_over; /* there is no connection: this and every later request fails */
    const struct store_reply *reply; /* NULL unless the code is FAILURE_NONE */
    const char *message;             /* the reason, unless the code is FAILURE_NONE */
    int system_error;                /* errno of why there is no connection, or 0 */
};

/* One request to send. Everything is copied before store_client_send returns. */
struct store_client_call {
    struct store_request request;
    bool is_raw;      /* send keys unchanged; else '/' is put in front of each, as upstream does */
    bool waits_first; /* WAIT until the keys exist, then send: makes GET, MULTI_GET and QUEUE_POP
                         behave as upstream's get(), multi_get() and queue_pop() */
    /* A QUEUE_POP that the server keeps until there is an item (core/store/store_table.h). It holds
     * up no other request: it gives way to them, and is sent again behind each. A later one takes
     * its place, and it fails with FAILURE_CANCELLED. It has no timeout. The next one is sent
     * before this one is answered, so who has an item asks for the next before the loop turns
     * again. */
    bool rests;
    /* From now to the answer, including the time behind other requests. A WAIT or BARRIER whose
     * time is up is cancelled and the connection stays usable. Any other request that is not
     * answered in time ends the connection, because its answer could come later. */
    struct duration timeout;
    /* Called exactly once, never from inside store_client_send. For operations without a reply it
     * is called when the request has been given to the kernel. May be NULL. */
    void (*done)(void *context, const struct store_client_result *result);
    void *context;
};

/* Starts to connect. The first retries are quick, so that a store that is coming up is found within
 * milliseconds; then upstream's back-off applies (c10d Backoff.cpp: 500 ms, times 1.5, half of it
 * random). Names are resolved by a blocking call, so that no resolver thread is started. Requests
 * may be sent at once; they go out when the client is connected. Never NULL. */
struct store_client *store_client_new(
    struct event_loop *loop, const struct store_client_settings *settings);

/* Closes the connection. Pending requests are called back with FAILURE_CANCELLED before this
 * returns. May be called from inside a callback. Accepts NULL. */
void store_client_free(struct store_client *client);

void store_client_send(struct store_client *client, const struct store_client_call *call);

/* Looks whether the server's machine is still there (core/store/connection_silence), and sends a
 * sign of life where no other request is under way and the connection is not calm. If the machine
 * is gone, the connection ends: `lost` is called with FAILURE_TIMEOUT before this returns. Returns
 * after how long to look again (connection_silence_pause); for ever when there is no connection, or
 * when it has ended. */
struct duration store_client_look(struct store_client *client);

/* How long the kernel of the server's machine has not been heard; zero without a connection. */
struct duration store_client_silence(const struct store_client *client);

/* The socket; -1 without a connection. */
int store_client_descriptor(const struct store_client *client);

/* As store_link_write_server, of the connection that there is. */
void store_client_write_server(const struct store_client *client, struct text *out);

/* As store_link_write_address, of the connection that there is. */
void store_client_write_address(const struct store_client *client, struct text *out);

/* While it tries to connect, and has tried: appends where, how often, and what came of it. */
void store_client_write_obstacle(const struct store_client *client, struct text *out);

/* A request given to a store client, with everything needed to send it later, and the queue of such
 * requests. host/store_client sends it and takes the answer. */

enum store_call_stage {
    STORE_CALL_QUEUED,
    STORE_CALL_WAITING_FIRST, /* its WAIT has been sent */
    STORE_CALL_SENT,          /* the request itself has been sent */
    STORE_CALL_CANCELLING,    /* its time is up; CANCEL_WAIT has been sent */
};

struct store_call {
    struct store_call *next;
    enum store_call_stage stage;
    enum store_call_stage cancelled_stage; /* the stage before STORE_CALL_CANCELLING */
    bool is_released;                      /* the wait was answered while we were cancelling it */
    bool waits_first;
    bool rests;
    struct store_request request; /* operation and count only; the operands are in `bytes` */
    struct bytes wait_bytes;      /* the encoded WAIT, when `waits_first` */
    struct bytes bytes;           /* the encoded request */
    struct instant deadline;
    void (*done)(void *context, const struct store_client_result *result);
    void *context;
};

/* Copies the call. Never NULL. */
struct store_call *store_call_new(const struct store_client_call *call, struct instant now);

/* Calls `done` and frees the call. */
void store_call_finish(struct store_call *call_taken, const struct store_client_result *result);

/* First in, first out. A zeroed struct is empty. */
struct store_call_queue {
    struct store_call *first;
    struct store_call *last;
};

void store_call_queue_push(struct store_call_queue *queue, struct store_call *call_taken);
/* Removes and returns the first call; NULL when the queue is empty. The caller owns it. */
struct store_call *store_call_queue_pop(struct store_call_queue *queue);
/* Removes and returns the first call whose deadline has passed, or NULL. */
struct store_call *store_call_queue_pop_expired(struct store_call_queue *queue, struct instant now);
/* The earliest deadline; an instant that never comes when the queue is empty. */
struct instant store_call_queue_deadline(const struct store_call_queue *queue);

#endif
