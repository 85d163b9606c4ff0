/* SPDX-License-Identifier: BSD-3-Clause */
/* How a store is served, and what its host wants to hear about the clients: one value for the
 * server, its peers and its thread. Values only. */
#ifndef MUSTER_HOST_STORE_SERVER_SETTINGS_H
#define MUSTER_HOST_STORE_SERVER_SETTINGS_H

#include <stddef.h>

#include "base/duration.h"
#include "base/log.h"
#include "core/store_limits.h"
#include "host/tally.h"

/* What the host of a store is told; each may be NULL. Strings are borrowed for the call. From a
 * store_server the calls come out of its work, and must not use that server; from a store_thread
 * they come on the caller's loop and may do anything, stop the thread included. Ending the server
 * or the thread reports nothing. */
struct store_server_observer {
    /* The presence key `name` (without the prefix) was SET to `value`. Of several that nobody has
     * been told of yet a thread may report the last one alone. */
    void (*beat)(void *context, const char *name, const char *value);
    /* The connection that held the presence key is gone, with the last value it was SET to. Every
     * `beat` of it was before this. */
    void (*gone)(void *context, const char *name, const char *value);
    /* A client that holds no presence key has written, or tried to write, the watched key. */
    void (*watched_written)(void *context);
    /* So many connections are open now; told when the number has changed (it is 0 at first), by a
     * thread after all other news. */
    void (*connections)(void *context, size_t count);
    void *context;
};

/* A zeroed struct serves a plain store with the default limits and no log. */
struct store_server_settings {
    const struct store_limits *limits; /* copied; NULL: STORE_LIMITS_DEFAULT */
    const struct log *log;             /* outlives the server; NULL: none */
    /* Keys below this raw prefix (its leading '/' included) tell who is there, see
     * core/store_presence. Copied; NULL: none do. */
    const char *presence_prefix;
    /* A raw key whose writing by strangers the observer is told of. Copied; NULL: none. */
    const char *watched_key;
    /* A client whose machine does not answer for about so long is let go (host/tcp_silence). Zero:
     * three minutes. Upstream would keep it for ever. */
    struct duration silence_timeout;
    struct tally *operations; /* clients' requests that were carried out; outlives the server; NULL:
                                 nobody counts */
    struct store_server_observer observer;
};

#endif
