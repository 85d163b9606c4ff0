/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of one store server: their sockets, the bytes of incomplete requests, and the replies
 * they have not read yet. Requests go through the table one by one, in order of arrival. Replies to
 * several requests that arrived together are sent together. host/store_server listens and decides
 * what a renewal means. */
#ifndef MUSTER_HOST_STORE_STORE_PEERS_H
#define MUSTER_HOST_STORE_STORE_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/log.h"
#include "core/store/store_presence.h"
#include "core/store/store_request.h"
#include "core/store/store_table.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/event_loop.h"
#include "host/network/network_address.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_server_settings.h"
#include "wire/store/store_codec.h"

/* What a server says about its clients in the log: one line that names the client. Lines are left
 * out when there are too many, since a hostile client can cause as many as it likes. */

struct client_log {
    struct event_loop *loop;
    const struct log *log;
    struct log_throttle throttle;
    struct log_throttle full; /* of its own: other lines must not keep these out */
};

/* A warning. */
void client_log_say(
    struct client_log *client_log, const union tcp_address *address, const char *what);

/* Gives memory back to the system after much of it was freed. The C library keeps what lies between
 * pieces that are still in use, so a process would stay as large as it once was. The call walks
 * over all free memory, so it is made rarely: only when a good part was freed, and some time later.
 */

struct memory_return;

/* The memory that a store's table and the buffers of its clients share. Each may use what the other
 * leaves of the limit. But buffers always have a little, so that values can be read from a full
 * store; and the table always finds a little, or buffers are given up for it. This module knows the
 * numbers; host/store_peers knows whose buffers to give up. */

struct store_room {
    size_t memory_bytes; /* the limit */
    struct store_table *table;
    struct tcp_stream_pool *pool;
    struct memory_return *memory_return;
};

/* One client of a store server, and the server's clients together, as the sections of
 * host/store/store_peers share them; no other module may read or write them. */

struct store_peers {
    struct event_loop *loop;
    struct client_log client_log;
    struct store_limits limits;
    struct store_table *table;
    struct store_effects effects;
    bool is_carrying_out; /* while true the table must not change, because the replies in `effects`
                             borrow from it */
    struct store_presence *presence;
    struct store_effects presence_effects; /* effects of the host's own requests */
    struct tally *operations;              /* or NULL */
    struct store_server_observer observer;
    char *watched_key;     /* or NULL */
    char *standby_key;     /* or NULL */
    char *stranger_answer; /* or NULL */
    bool is_standing_by;   /* only that key may be asked for */
    char *own_prefix;      /* of the agents' own keys; the table and the gate borrow it; or empty */
    struct store_gate gate;
    struct blocking_pool *blocking; /* what munge is asked; NULL until it is */
    struct duration silence_timeout;
    struct tcp_stream_pool pool;
    struct store_peer *first;
    struct store_peer *looked_at; /* the first of store_lookout's */
    struct {
        struct event_timer *timer; /* NULL: no proof is wanted */
        struct store_peer *oldest;
        struct store_peer *newest;
        size_t count;
        size_t maximum;
    } unproven; /* store_probation's */
    size_t open_count;
    size_t peer_count;          /* open ones, and closed ones that the loop still holds */
    struct store_peer *current; /* the peer whose requests are being carried out; may be NULL */
    struct bytes replies;       /* collected replies to `current` */
    size_t unhurried_bytes;     /* of these, those that nobody waits for */
    size_t turn_reply_bytes;    /* sent to `current` in this turn */
    struct bytes single;        /* one reply to another client */
    struct store_room room;
    bool is_freed;
};

/* One client. It stays in the list until the loop has let go of its stream. */
struct store_peer {
    struct tcp_stream stream; /* first, so that a stream is its peer */
    struct store_peers *peers;
    struct store_peer *next;
    struct store_peer *previous;
    struct store_connection connection;
    struct store_presence_holder holder;
    struct store_peer *looked_at_next; /* these are store_lookout's, until is_calm */
    struct store_peer *looked_at_before;
    bool is_looked_at;
    bool is_on_probation; /* these are store_probation's */
    struct store_peer *unproven_next;
    struct store_peer *unproven_before;
    struct instant came_at;
    struct connection_silence silence; /* while it holds a presence key */
    bool is_agent;                     /* of Muster's, as it has said */
    bool is_reached_told;              /* at which address it has reached this machine */
    bool is_turned_away;               /* a stranger: it has got the answer for strangers */
    bool gives_signs;                  /* of life, as STORE_SIGN_OF_LIFE says */
    struct instant sign_given;         /* the last one */
    bool leaves_signs;                 /* a single one stays in the kernel until the next look */
    bool is_calm;                      /* it gives none any more */
    struct store_reader reader;
    struct blocking_call *call; /* munge is being asked about it; else NULL */
    union tcp_address address;
};

/* The clients of a store server that have not proved themselves yet, where a proof is wanted for
 * everything. Each has ten seconds. They are not many: when there is no room, the one that came
 * first makes way for the next, and none of one address' may take more than half of the room. So
 * whoever only connects, however often, keeps no node from coming in, and costs few descriptors. */

#define STORE_PROBATION_SECONDS 10

/* The clients of a store server whose machines it looks at every second: those that hold a presence
 * key. It judges their silence (core/store/connection_silence), and answers the signs of life that
 * they have left in its kernel. Of a client whose connection is calm no signs come any more
 * (core/store/connection_silence); its silence is left to the kernel until one comes again, and
 * nothing is done for it meanwhile. */

/* Closes the clients whose machines are gone. Returns after how long to look again. */
struct duration store_lookout_look(struct store_peers *peers);

struct client_log;
struct store_peers;

/* Creates a new, empty store without clients. The sockets that are added must already have the
 * settings' silence timeout; here it is only named in log lines. Never NULL. */
struct store_peers *store_peers_new(
    struct event_loop *loop, const struct store_server_settings *settings);

/* Closes all connections and drops the store. The memory is freed when the loop no longer uses the
 * sockets. Accepts NULL. */
void store_peers_free(struct store_peers *peers);

/* Takes a connected, non-blocking socket. Closes it when there are too many. */
void store_peers_add(struct store_peers *peers, int fd_taken, const union tcp_address *address);

/* The lines about clients. */
struct client_log *store_peers_log(struct store_peers *peers);

/* Closes the connection that holds the presence key `name`, if there is one. */
void store_peers_drop(struct store_peers *peers, const char *name);

/* Closes every connection. */
void store_peers_close_all(struct store_peers *peers);

/* Carries out the requests that have arrived on every connection so far. */
void store_peers_catch_up(struct store_peers *peers);

/* Drops all keys and queues that do not start with the prefix; see store_table_renew. Presence is
 * not dropped. The key that says that presence is served is set again. */
void store_peers_renew_table(struct store_peers *peers, const char *kept_prefix);

/* Begins to serve, with these keys. */
void store_peers_serve(struct store_peers *peers, const struct store_seeds *seeds);

/* From now on only PING and GET of the standby key are answered, the latter with this. */
void store_peers_stand_by(struct store_peers *peers, struct slice answer);

bool store_peers_are_standing_by(const struct store_peers *peers);

/* See store_server_tell. */
void store_peers_tell(struct store_peers *peers, const char *raw_key, const char *value_or_null);

#endif
