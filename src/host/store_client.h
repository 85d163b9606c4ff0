/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of PyTorch's TCPStore (ours or PyTorch's own server) on an event loop: connects with
 * retries, shakes hands, sends requests one after the other and calls back with each answer. Unlike
 * upstream's TCPStore client every reply has a deadline, so a silent server is noticed. It does not
 * reconnect: what a lost store means is for its user to decide.
 *
 * One connection does one thing at a time: a request asked for while another waits is sent when
 * that one is done. Use a second client to work while one waits, as upstream's clone() does. */
#ifndef MUSTER_HOST_STORE_CLIENT_H
#define MUSTER_HOST_STORE_CLIENT_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/store_request.h"
#include "host/event_loop.h"
#include "wire/store_reply_codec.h"

struct store_client;

struct store_client_settings {
    const char *host; /* name, IPv4 or IPv6 address without brackets; copied */
    int port;
    struct duration connect_timeout; /* until the handshake is done, retries included */
    /* How long the server's machine may not answer at all before the connection is given up
     * (host/tcp_silence): about this long, whether requests are under way or not. Zero: three
     * minutes. */
    struct duration silence_timeout;
    struct store_reply_limits limits; /* zeroes: the defaults */
    /* Called once: with NULL when requests can be answered from now on, else with the reason why
     * not (FAILURE_TIMEOUT and what the last attempt ran into). May be NULL. */
    void (*connected)(void *context, const struct failure *failure);
    /* Called once when an established connection ends without store_client_free, after the
     * pending requests have failed. FAILURE_TIMEOUT: the machine was silent for silence_timeout, or
     * a request was not answered in time; FAILURE_DISCONNECTED: the server's process closed the
     * connection or ended; FAILURE_PROTOCOL or FAILURE_LIMIT: it broke the protocol. May be NULL.
     */
    void (*lost)(void *context, const struct failure *failure);
    void *context;
};

/* How one request ended. Borrowed: valid during the callback. */
struct store_client_result {
    /* FAILURE_NONE; FAILURE_TIMEOUT: this request's time is up; what `connected` or `lost` is told
     * when the connection does not come or is over (see `is_over`); FAILURE_CANCELLED by
     * store_client_free. */
    enum failure_code code;
    bool is_over; /* this and every later request fails: there is no connection */
    const struct store_reply *reply; /* NULL unless FAILURE_NONE */
    const char *message;             /* why, unless FAILURE_NONE */
};

/* One request to send. Everything is copied before store_client_send returns. */
struct store_client_call {
    struct store_request request;
    bool is_raw;      /* keys as they are; else '/' is put in front of each, as upstream does */
    bool waits_first; /* WAIT until the keys exist, then ask: GET, MULTI_GET and QUEUE_POP as
                         upstream's get(), multi_get() and queue_pop() */
    /* From now to the answer, time spent behind other requests included. A WAIT or BARRIER whose
     * time is up is cancelled and the connection stays usable; any other request that is not
     * answered in time costs the connection, as its answer could come later. */
    struct duration timeout;
    /* Called exactly once, never from inside store_client_send. For operations without a reply:
     * when the request has been handed to the kernel. NULL when nobody wants to know. */
    void (*done)(void *context, const struct store_client_result *result);
    void *context;
};

/* Starts to connect: quick retries first (a store that is coming up is found within milliseconds),
 * then upstream's back-off (c10d Backoff.cpp: 500 ms, times 1.5, half of it random). Names are
 * resolved by a blocking call, so that no resolver thread is started. Requests may be sent at once;
 * they go out when the connection stands. Never NULL. */
struct store_client *store_client_new(
    struct event_loop *loop, const struct store_client_settings *settings);

/* Closes the connection; pending requests are called back with FAILURE_CANCELLED before this
 * returns. Also from inside a callback. NULL is fine. */
void store_client_free(struct store_client *client);

void store_client_send(struct store_client *client, const struct store_client_call *call);

#endif
