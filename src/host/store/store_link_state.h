/* SPDX-License-Identifier: BSD-3-Clause */
/* A store_link, as its parts share it: store_link has the connection and what is answered over it,
 * store_link_proof what comes before. No other module may read or write it. */
#ifndef MUSTER_HOST_STORE_STORE_LINK_STATE_H
#define MUSTER_HOST_STORE_STORE_LINK_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store/connection_silence.h"
#include "host/loop/errands.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_link.h"
#include "wire/store/store_proof.h"
#include "wire/store/store_reply_codec.h"

#define STORE_LINK_AHEAD_MAXIMUM 16

/* What is answered before the expected reply. */
enum store_link_ahead {
    STORE_LINK_AHEAD_SIGN,
    STORE_LINK_AHEAD_ITEM,
    STORE_LINK_AHEAD_UNWANTED, /* an item that nobody waits for any more */
};

struct store_link {
    struct tcp_stream stream; /* first, so that a stream is its link */
    struct tcp_stream_pool pool;
    struct store_reply_decoder decoder;
    struct store_reply_decoder items;
    const struct store_link_owner *owner;
    void *context;
    union tcp_address address;
    struct duration silence_timeout;
    const struct store_key *key; /* or NULL */
    struct store_proof proof;
    struct event_loop *loop;
    struct errands *errands; /* NULL until munge is asked */
    struct errand *errand;   /* munge is being asked; else NULL */
    bool is_proving;         /* what comes is a part of the proof */
    bool is_ready;
    bool expects_reply;
    struct connection_silence silence;
    struct connection_calm calm;
    enum store_link_ahead
        ahead[STORE_LINK_AHEAD_MAXIMUM]; /* in the order in which they are answered */
    size_t ahead_count;
    int signs;           /* of life among them */
    bool is_resting;     /* a QUEUE_POP waits at the server, behind all else */
    struct bytes rested; /* the bytes of that one, or of the last one */
    bool is_all_taken;   /* of what has come */
    size_t left;         /* so many bytes may stay in the kernel */
    bool is_freed;       /* the owner has freed it */
    bool is_released;    /* the loop has released it; the memory is freed when both are true */
};

/* Ends the connection, and tells the owner. */
void store_link_end(struct store_link *link, enum failure_code code, const char *reason);
/* The server answered the greeting, and both sides have proved themselves. */
void store_link_become_ready(struct store_link *link);

#endif
