/* SPDX-License-Identifier: BSD-3-Clause */
/* One client of a store server, and the server's clients together, as the parts of
 * host/store/store_peers share them; no other module may read or write them. store_peers has the
 * beginning and the life of the clients, store_service carries out their requests, store_debtors
 * says whose buffers are given up, store_lookout looks whose machine is gone, store_probation has
 * those that have not proved themselves. This module has the
 * end of a client, whoever ends it. */
#ifndef MUSTER_HOST_STORE_STORE_PEER_H
#define MUSTER_HOST_STORE_STORE_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store/connection_silence.h"
#include "core/store/store_effects.h"
#include "core/store/store_presence.h"
#include "core/store/store_table.h"
#include "host/loop/errands.h"
#include "host/loop/event_loop.h"
#include "host/network/tcp_address.h"
#include "host/network/tcp_stream.h"
#include "host/store/client_log.h"
#include "host/store/store_room.h"
#include "host/store/store_server_settings.h"
#include "wire/store/store_reader.h"

/* Replies to requests that arrived together are collected up to about this size. A buffer that grew
 * larger for one reply is freed. */
#define STORE_PEER_COLLECTED_BYTES ((size_t)65536)

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
    struct errands *errands; /* what munge is asked; NULL until it is */
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
    struct errand *errand; /* munge is being asked about it; else NULL */
    union tcp_address address;
};

/* The client that has this stream. */
struct store_peer *store_peer_of(struct tcp_stream *stream);

/* Closes a client for a reason, which is logged. Its replies to earlier requests are sent first. */
void store_peer_dismiss(struct store_peer *peer, const char *reason);
/* The same; `say` logs the reason. */
void store_peer_dismiss_and_say(struct store_peer *peer, const char *reason,
    void (*say)(struct client_log *log, const union tcp_address *address, const char *what));
/* Closes a client without a word. */
void store_peer_close(struct store_peer *peer);
/* Removes a client whose stream has closed from the table and from presence. */
void store_peer_forget(struct store_peer *peer);

/* Removes the presence keys of closed clients from the table, and calls the observer's `gone`. Does
 * so later while effects are carried out. */
void store_peers_remove_ended(struct store_peers *peers);
/* Applies a request of the host itself; its reply is not used. */
void store_peers_apply_own(struct store_peers *peers, const struct store_request *request);
/* Calls the observer's `connections`. */
void store_peers_report_connections(struct store_peers *peers);
/* Sends the collected replies to the client that is being served. Where it waits for none of them,
 * they go with what is sent next, or a moment later. */
void store_peers_send_collected(struct store_peers *peers);
/* Empties a buffer of replies; frees it when it has grown large. */
void store_peers_reset_buffer(struct bytes *buffer);

#endif
