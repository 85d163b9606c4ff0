/* SPDX-License-Identifier: BSD-3-Clause */
/* What a store server, the connections below it and the thread around it are told: how the store is
 * served, and with which keys it begins. */
#ifndef MUSTER_HOST_STORE_STORE_SERVER_SETTINGS_H
#define MUSTER_HOST_STORE_STORE_SERVER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/log.h"
#include "core/store/store_request.h"
#include "host/loop/tally.h"
#include "host/network/tcp_listener.h"
#include "host/store/store_admission.h"
#include "wire/store/store_proof.h"

/* Keys with which a store begins to serve, so that its first client finds what an earlier store of
 * the same job held. Values only; they are copied, so that they can go to the store's thread. */

struct store_seed {
    char *key; /* raw, with its leading '/' */
    struct bytes value;
};

/* A zeroed struct is a valid empty list. */
struct store_seeds {
    struct store_seed *items;
    size_t count;
    size_t capacity;
};

/* How a store is served, and which events of its clients are reported. The server, its peers and
 * its thread share these values. Values only. */

/* Callbacks to the host of the store; each may be NULL. Strings are borrowed for the call. A
 * store_server calls them in the middle of its work, so they must not use that server. A
 * store_thread calls them on the caller's loop; they may do anything, even stop the thread. Ending
 * the server or the thread causes no call. */
struct store_server_observer {
    /* The presence key `name` (without the prefix) was SET to `value`. A thread may report only the
     * last of several values that have not been reported yet. */
    void (*beat)(void *context, const char *name, const char *value);
    /* The connection that held the presence key is gone. `value` is the value it was SET to last.
     * Every `beat` of that connection was called before. */
    void (*gone)(void *context, const char *name, const char *value);
    /* `gone` of this presence key follows: not since its process has ended or left, for all that is
     * known, but since its machine is silent, or it has stalled. */
    void (*silent)(void *context, const char *name);
    /* A client of another machine holds a presence key, and has reached this one at `address`. */
    void (*reached)(void *context, const char *address);
    /* A client that holds no presence key has written the watched key. */
    void (*watched_written)(void *context);
    /* The number of open connections has changed (it is 0 at first). Where everything needs a
     * proof, those that have not proved themselves do not count. A thread reports it after all
     * other events. */
    void (*connections)(void *context, size_t count);
    void *context;
};

/* A zeroed struct serves a plain store with the default limits and no log. */
struct store_server_settings {
    const struct store_limits *limits; /* copied; NULL: STORE_LIMITS_DEFAULT */
    const struct log *log;             /* outlives the server; NULL: none */
    /* More listening sockets on the same port; taken with the first. */
    int further_fds[LOCAL_LISTENER_MOST];
    size_t further_count;
    /* Serves only processes of this machine; other clients are closed with a log line. */
    bool is_local;
    /* Of this machine's processes only those of this user and of root are served. */
    bool is_for_this_user;
    /* Of other machines only those that it admits are served. Outlives the server; NULL: all. */
    struct store_admission *admission;
    /* With a key clients have to prove that they have the job's token (wire/store/store_proof), and
     * may do nothing but PING before. Outlives the server; NULL: anybody may do everything. */
    const struct store_key *key;
    /* With a key: how many clients may be there that have not proved themselves (0: some). */
    size_t unproven_maximum;
    /* Descriptors that its clients do not get, beside those that the process keeps for itself. */
    uint64_t kept_descriptors;
    /* With a key: only the agents' own keys (own_prefix) need a proof; else everything does. */
    bool guards_only_own_keys;
    /* Keys below this raw prefix (its leading '/' included) are presence keys, see
     * core/store_presence. Copied; NULL: there are none. */
    const char *presence_prefix;
    /* Clients with presence keys give no signs of life: a presence key ends only with its
     * connection, and silence is judged as where there are none. */
    bool ends_presence_with_connection_only;
    /* Keys that start with this raw prefix are the agents' own: they have room when others have
     * filled the store, and a client of PyTorch 2.0 or older that asks for one is closed. Copied;
     * NULL: there are none. */
    const char *own_prefix;
    /* A raw key: `watched_written` is called when a client without a presence key writes it.
     * Copied; NULL: none. */
    const char *watched_key;
    /* A raw key. With it the store stands by at first: it serves nobody, and answers only PING and
     * GET of this key, which has no value until store_server_stand_by. A client that asks for more
     * is closed. store_server_serve begins to serve. Copied; NULL: the store serves at once. */
    const char *standby_key;
    /* A raw key of a queue that has one item, "1", whenever the store is served: from before its
     * first client on. Copied; NULL: none. */
    const char *offered_key;
    /* What a client that is no agent of Muster's is told when it asks for the watched key, whatever
     * that holds; it is logged. Agents say that they are by PING (STORE_PROOF_OFFERED). Copied;
     * NULL: all are served alike. */
    const char *stranger_answer;
    /* A client whose machine does not answer for about this long is closed (host/tcp_stream). With
     * a presence prefix only a client that holds a presence key is, and only at a second look
     * (core/store/connection_silence): it has to give signs of life. Every other client is then
     * closed after three times as long. Zero: three minutes. Upstream would keep it forever. */
    struct duration silence_timeout;
    struct tally *operations; /* counts clients' requests that were carried out; outlives the
                                 server; may be NULL */
    struct store_server_observer observer;
};

#endif
