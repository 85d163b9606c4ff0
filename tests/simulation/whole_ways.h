/* SPDX-License-Identifier: BSD-3-Clause */
/* How the nodes of the whole cluster reach the store: what is to happen at which time
 * (whole_cluster.c), a node's clients of the store (whole_lane.c), the ways between them and the
 * store (whole_network.c), and what is lost there (whole_loss.c). */
#ifndef MUSTER_TESTS_WHOLE_WAYS_H
#define MUSTER_TESTS_WHOLE_WAYS_H

#include "base/bytes.h"
#include "base/duration.h"
#include "base/heap.h"
#include "core/round/round_exchange.h"
#include "core/store/store_presence.h"
#include "core/store/store_request.h"
#include "core/store/store_table.h"
#include "resting_order.h"
#include "wire/round/round_exchange_store.h"
#include "wire/store/store_codec.h"

struct whole_cluster;
struct whole_node;
struct whole_connection;

/* Something that is to happen. Those of the pool are gone afterwards. */
struct whole_happening {
    struct heap_item item; /* first */
    void (*happen)(struct whole_cluster *cluster, struct whole_happening *happening);
    struct whole_node *node; /* whose process it is for: it waits while that is stopped; or NULL */
    struct whole_happening *next; /* of the pool, or of what waits */
    bool is_planned;              /* it is in the heap */
    bool is_fixed;                /* it is part of something else */
    int rank;
    uint64_t life; /* of whom it is about */
    int64_t number;
    void *subject;
};

/* One direction of a connection: bytes on their way, in order. */
struct whole_segment {
    int64_t time; /* of its arrival */
    size_t length;
    bool is_end; /* nothing follows */
};

struct whole_stream {
    struct whole_happening arrival; /* of the first segment */
    struct whole_connection *connection;
    bool is_to_store;
    struct bytes bytes;
    size_t consumed;
    struct whole_segment *segments;
    size_t first;
    size_t count;
    size_t capacity;
    int64_t last_time;       /* nothing sent later arrives earlier */
    int64_t acknowledged_at; /* what was sent last will be; what follows waits for it */
};

/* What one end of a connection knows of the other end's kernel, while the link is bad. */
struct whole_end {
    int64_t heard_at;
    int64_t probed_at;
    struct connection_silence silence;
};

struct whole_lane;

struct whole_connection {
    struct whole_connection *next; /* all of the cluster's */
    struct whole_connection *next_of_node;
    struct whole_node *node;
    struct whole_lane *lane; /* NULL: the node has let go of it */
    bool is_open_here;       /* at the node's end */
    bool is_open_there;      /* at the store's end */
    bool is_accepted;        /* by the store's process */
    struct whole_end here;
    struct whole_end there;
    struct whole_stream to_store;
    struct whole_stream to_node;
    struct store_request_decoder requests; /* at the store */
    struct store_connection stored;
    struct store_presence_holder holder;
    struct store_reply_decoder replies; /* at the node */
};

/* A request that a node's machines want carried out. */
enum whole_call_kind {
    WHOLE_CALL_RECORD,
    WHOLE_CALL_ROUND,
    WHOLE_CALL_CAUSE_PUBLISHED,
    WHOLE_CALL_CAUSE_CHECKED,
    WHOLE_CALL_CAUSE_READ,
    WHOLE_CALL_TORCH,
    WHOLE_CALL_SIGN, /* of life */
};

struct whole_call {
    enum whole_call_kind kind;
    int64_t deadline;
    enum store_operation operation;
    size_t key_count;
    size_t length; /* of its bytes */
    bool rests;
    union {
        uint64_t tag;
        struct round_question question;
        struct {
            uint64_t life; /* of what torchrun's node was about */
            int question;
        } torch;
    };
};

enum whole_lane_phase { WHOLE_LANE_NONE, WHOLE_LANE_DIALLING, WHOLE_LANE_READY };

/* One client of the store, as host/store/store_client is: it connects with retries and carries out
 * one call after the other. */
struct whole_lane {
    struct whole_node *node;
    enum whole_lane_phase phase;
    bool is_late; /* the others stood before: nobody is told when it stands */
    struct whole_connection *connection;
    struct whole_call *calls;
    size_t first;
    size_t count;
    size_t capacity;
    struct bytes bytes; /* of the calls that are not sent */
    size_t sent;        /* of these bytes, those taken already */
    bool is_busy;       /* the first call is at the store */
    struct whole_call resting;
    struct bytes resting_bytes;
    struct resting_order order;
    struct bytes packet; /* what is sent together */
    int64_t connect_deadline;
    int64_t attempt_deadline;
    int64_t pause;                    /* until the next SYN */
    struct duration refusal_patience; /* zero: as long as the deadline */
    int64_t refused_since;            /* or WHOLE_NOBODY */
    struct backoff backoff;
    struct whole_happening dialling;
    struct whole_happening expiry;
};

/* whole_lane.c */
void whole_lane_open(struct whole_cluster *cluster, struct whole_lane *lane, int64_t deadline,
    struct duration refusal_patience, struct duration pause, bool is_late);
void whole_lane_drop(struct whole_cluster *cluster, struct whole_lane *lane);
void whole_lane_send(struct whole_cluster *cluster, struct whole_lane *lane,
    const struct store_request *request, struct duration timeout, struct whole_call call);
void whole_lane_pump(struct whole_cluster *cluster, struct whole_lane *lane);
void whole_lane_receive(struct whole_cluster *cluster, struct whole_lane *lane, struct slice input);
void whole_lane_lose(struct whole_cluster *cluster, struct whole_lane *lane, enum failure_code code,
    const char *message);
void whole_lane_clear(struct whole_lane *lane);

/* whole_network.c */
struct whole_connection *whole_connect(struct whole_cluster *cluster, struct whole_lane *lane);
void whole_connection_free(struct whole_connection *connection);
int64_t whole_delay(struct whole_cluster *cluster);
void whole_stream_send(
    struct whole_cluster *cluster, struct whole_stream *stream, struct slice bytes);
void whole_stream_end(struct whole_cluster *cluster, struct whole_stream *stream);
/* What was held up goes on. */
void whole_stream_wake(struct whole_cluster *cluster, struct whole_stream *stream);
/* One end lets go; the other hears of it. */
void whole_close_here(struct whole_cluster *cluster, struct whole_connection *connection);
void whole_close_there(struct whole_cluster *cluster, struct whole_connection *connection);
/* One end finds the other silent; the other does not hear of it. */
void whole_lose_end(
    struct whole_cluster *cluster, struct whole_connection *connection, bool is_of_store);
/* What is on its way does not arrive. */
void whole_stream_forget(struct whole_cluster *cluster, struct whole_stream *stream);
void whole_reset_connection(struct whole_cluster *cluster, struct whole_connection *connection);
void whole_break_link(struct whole_cluster *cluster, struct whole_node *node, bool is_cut_to_store,
    bool is_cut_to_node, int64_t duration);
void whole_mend_link(struct whole_cluster *cluster, struct whole_node *node);
void whole_wake_streams(struct whole_cluster *cluster, struct whole_node *node);
bool whole_is_reachable(const struct whole_cluster *cluster, const struct whole_node *node);

/* whole_loss.c */
/* Sends a message again and again. Returns when it arrives, at the earliest. */
int64_t whole_transmit(struct whole_cluster *cluster, struct whole_stream *stream);
/* A packet there, or the one back. */
bool whole_is_lost(struct whole_cluster *cluster, const struct whole_node *node);
/* How long a kernel tries. */
int64_t whole_kernel_timeout(const struct whole_cluster *cluster);
/* Of each thousand packets so many are lost from now on, until the end of the storm at most. */
void whole_lose_packets(struct whole_cluster *cluster, struct whole_node *node, int to_store,
    int to_node, int64_t duration);
/* Its link is about to be cut, or to lose packets. */
void whole_link_turns_bad(struct whole_cluster *cluster, struct whole_node *node);

#endif
