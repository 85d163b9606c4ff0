/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between the nodes and the store: bytes in order, late, held up, or never. */
#include "whole_parts.h"

#include <stdlib.h>

#include "base/memory.h"

/* A sender that hears nothing of a lost message sends it again after this. */
#define LOSS_SHORTEST_MILLISECONDS 200
#define LOSS_LONGEST_MILLISECONDS 800
/* A buffer that grew larger for one message is given back. */
#define BYTES_KEPT 16384
#define SLOW_LONGEST_MILLISECONDS 1500

static int64_t later(int64_t left, int64_t right) {
    return left > right ? left : right;
}

/* Mostly fast, sometimes slow. */
int64_t whole_delay(struct whole_cluster *cluster) {
    if (cluster->settings.is_calm) {
        return WHOLE_MILLISECOND;
    }
    if (whole_is_likely(cluster, cluster->settings.weather.message_is_lost)) {
        return whole_between(cluster, LOSS_SHORTEST_MILLISECONDS * WHOLE_MILLISECOND,
            LOSS_LONGEST_MILLISECONDS * WHOLE_MILLISECOND);
    }
    int64_t longest = whole_is_likely(cluster, 5) ? 40 * WHOLE_MILLISECOND : WHOLE_MILLISECOND / 2;
    return whole_between(cluster, WHOLE_MILLISECOND / 20, longest);
}

/* Streams. */

static void clear_stream(struct whole_stream *stream) {
    bytes_clear(&stream->bytes);
    free(stream->segments);
    stream->segments = NULL;
    stream->first = stream->count = stream->capacity = stream->consumed = 0;
}

static bool is_held_up(const struct whole_cluster *cluster, const struct whole_stream *stream) {
    const struct whole_node *node = stream->connection->node;
    return stream->is_to_store ? node->is_cut_to_store || whole_store_is_stopped(cluster)
                               : node->is_cut_to_node || node->is_stopped;
}

static void take_end(struct whole_cluster *cluster, struct whole_stream *stream) {
    struct whole_connection *connection = stream->connection;
    if (stream->is_to_store) {
        if (connection->is_open_there) {
            connection->is_open_there = false;
            whole_store_forget(cluster, connection);
        }
    } else if (connection->is_open_here) {
        connection->is_open_here = false;
        if (connection->lane != NULL) {
            whole_lane_lose(
                cluster, connection->lane, FAILURE_DISCONNECTED, "the store has let go");
        }
    }
}

static void take_bytes(
    struct whole_cluster *cluster, struct whole_stream *stream, struct slice bytes) {
    struct whole_connection *connection = stream->connection;
    if (stream->is_to_store) {
        if (connection->is_open_there) {
            whole_store_receive(cluster, connection, bytes);
        }
    } else if (connection->is_open_here && connection->lane != NULL) {
        whole_lane_receive(cluster, connection->lane, bytes);
    }
}

static void deliver(struct whole_cluster *cluster, struct whole_stream *stream) {
    struct whole_segment segment = stream->segments[stream->first];
    struct whole_connection *connection = stream->connection;
    *(stream->is_to_store ? &connection->there.heard_at : &connection->here.heard_at) =
        cluster->now;
    stream->first++;
    stream->count--;
    if (segment.is_end) {
        take_end(cluster, stream);
        return;
    }
    struct slice bytes = {stream->bytes.data + stream->consumed, segment.length};
    stream->consumed += segment.length;
    take_bytes(cluster, stream, bytes);
    if (stream->count == 0) {
        stream->first = stream->consumed = 0;
        stream->bytes.length = 0;
        if (stream->bytes.capacity > BYTES_KEPT) {
            bytes_clear(&stream->bytes);
        }
    }
}

static void plan_arrival(struct whole_cluster *cluster, struct whole_stream *stream) {
    if (stream->count > 0 && !stream->arrival.is_planned && !is_held_up(cluster, stream)) {
        whole_plan(cluster, &stream->arrival, stream->segments[stream->first].time);
    }
}

/* Whoever is told something meanwhile takes it within its own time, at this moment. */
static void arrives(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_stream *stream = happening->subject;
    struct whole_node *node = stream->connection->node;
    bool is_for_process = !stream->is_to_store;
    while (stream->count > 0 && stream->segments[stream->first].time <= cluster->now &&
           !is_held_up(cluster, stream)) {
        deliver(cluster, stream);
        if (is_for_process && node->is_alive) {
            whole_node_run(cluster, node);
        }
    }
    plan_arrival(cluster, stream);
}

void whole_stream_wake(struct whole_cluster *cluster, struct whole_stream *stream) {
    plan_arrival(cluster, stream);
}

static void append(
    struct whole_cluster *cluster, struct whole_stream *stream, struct whole_segment segment) {
    const struct whole_node *node = stream->connection->node;
    int64_t delay = whole_delay(cluster);
    if (!stream->is_to_store && node->slow_until > cluster->now) {
        delay += whole_between(cluster, 0, SLOW_LONGEST_MILLISECONDS * WHOLE_MILLISECOND);
    }
    stream->last_time = later(stream->last_time + 1, whole_transmit(cluster, stream) + delay);
    segment.time = stream->last_time;
    stream->segments = memory_reserve(stream->segments, &stream->capacity,
        stream->first + stream->count + 1, sizeof *stream->segments);
    stream->segments[stream->first + stream->count++] = segment;
    plan_arrival(cluster, stream);
}

static void count(struct whole_cluster *cluster, size_t length) {
    double part = cluster->settings.part_seconds;
    double seconds = duration_seconds((struct duration){cluster->now});
    size_t which = part > 0 ? (size_t)(seconds / part) : 0;
    size_t last = WHOLE_PARTS_MAXIMUM - 1;
    struct whole_traffic *traffic = &cluster->outcome.traffic[which < last ? which : last];
    traffic->messages++;
    traffic->bytes += length;
}

void whole_stream_send(
    struct whole_cluster *cluster, struct whole_stream *stream, struct slice bytes) {
    count(cluster, bytes.length);
    (void)!bytes_append(&stream->bytes, bytes.data, bytes.length); /* has no ceiling */
    append(cluster, stream, (struct whole_segment){.length = bytes.length});
}

void whole_stream_end(struct whole_cluster *cluster, struct whole_stream *stream) {
    append(cluster, stream, (struct whole_segment){.is_end = true});
}

/* Connections. */

static void init_stream(
    struct whole_cluster *cluster, struct whole_connection *connection, bool is_to_store) {
    struct whole_stream *stream = is_to_store ? &connection->to_store : &connection->to_node;
    stream->connection = connection;
    stream->is_to_store = is_to_store;
    stream->last_time = cluster->now;
    stream->acknowledged_at = cluster->now;
    stream->arrival =
        (struct whole_happening){.happen = arrives, .subject = stream, .is_fixed = true};
}

struct whole_connection *whole_connect(struct whole_cluster *cluster, struct whole_lane *lane) {
    struct whole_connection *connection = memory_allocate(sizeof *connection);
    struct whole_node *node = lane->node;
    connection->next = cluster->connections;
    cluster->connections = connection;
    connection->next_of_node = node->connections;
    node->connections = connection;
    connection->node = node;
    connection->lane = lane;
    connection->is_open_here = true;
    connection->is_open_there = true;
    connection->stored.owner = connection;
    connection->holder.owner = connection;
    connection->here.heard_at = connection->there.heard_at = cluster->now;
    init_stream(cluster, connection, true);
    init_stream(cluster, connection, false);
    store_request_decoder_init(&connection->requests, &STORE_LIMITS_DEFAULT);
    store_reply_decoder_init(&connection->replies, &STORE_REPLY_LIMITS_DEFAULT);
    return connection;
}

void whole_connection_free(struct whole_connection *connection) {
    clear_stream(&connection->to_store);
    clear_stream(&connection->to_node);
    store_request_decoder_clear(&connection->requests);
    store_reply_decoder_clear(&connection->replies);
    free(connection);
}

/* What comes now is for nobody. What was sent before still arrives. */
void whole_close_here(struct whole_cluster *cluster, struct whole_connection *connection) {
    connection->lane = NULL;
    if (connection->is_open_here) {
        connection->is_open_here = false;
        whole_stream_end(cluster, &connection->to_store);
    }
}

void whole_close_there(struct whole_cluster *cluster, struct whole_connection *connection) {
    if (connection->is_open_there) {
        connection->is_open_there = false;
        whole_store_forget(cluster, connection);
        whole_stream_end(cluster, &connection->to_node);
    }
}

void whole_stream_forget(struct whole_cluster *cluster, struct whole_stream *stream) {
    whole_call_off(cluster, &stream->arrival);
    clear_stream(stream);
}

/* Somebody on the way forgets it: what was under way is gone, and both ends hear of it. */
void whole_reset_connection(struct whole_cluster *cluster, struct whole_connection *connection) {
    struct whole_stream *streams[] = {&connection->to_store, &connection->to_node};
    for (int i = 0; i < 2; i++) {
        whole_stream_forget(cluster, streams[i]);
        whole_stream_end(cluster, streams[i]);
    }
}

/* Links. */

static void notice_silence(struct whole_cluster *cluster, struct whole_connection *connection,
    bool is_of_store, int64_t time);

void whole_lose_end(
    struct whole_cluster *cluster, struct whole_connection *connection, bool is_of_store) {
    struct whole_node *node = connection->node;
    if (is_of_store) {
        connection->is_open_there = false;
        whole_store_forget(cluster, connection);
        return;
    }
    connection->is_open_here = false;
    if (connection->lane != NULL && node->is_alive) {
        whole_lane_lose(cluster, connection->lane, FAILURE_TIMEOUT, "the store is silent");
        whole_node_run(cluster, node);
    }
}

/* Both ends notice silence, each in its own time, whichever direction is cut: no end hears that
 * what it sent has arrived. */
static void silence_noticed(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_connection *connection = happening->subject;
    struct whole_node *node = connection->node;
    bool is_of_store = happening->number != 0;
    bool is_open =
        is_of_store ? connection->is_open_there : connection->is_open_here && node->is_alive;
    bool is_stopped = is_of_store ? whole_store_is_stopped(cluster) : node->is_stopped;
    if (node->cuts != happening->life || !is_open) {
        return;
    }
    if (is_stopped) { /* its kernel notices, and it hears of it when it goes on */
        notice_silence(cluster, connection, is_of_store, cluster->now + WHOLE_SECOND);
    } else {
        whole_lose_end(cluster, connection, is_of_store);
    }
}

static void notice_silence(struct whole_cluster *cluster, struct whole_connection *connection,
    bool is_of_store, int64_t time) {
    struct whole_happening *noticed = whole_schedule(cluster, time, NULL, silence_noticed);
    noticed->subject = connection;
    noticed->life = connection->node->cuts;
    noticed->number = is_of_store ? 1 : 0;
}

static void link_mends(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    if (node->cuts == happening->life) {
        whole_mend_link(cluster, node);
    }
}

void whole_break_link(struct whole_cluster *cluster, struct whole_node *node, bool is_cut_to_store,
    bool is_cut_to_node, int64_t duration) {
    int64_t silence = whole_kernel_timeout(cluster);
    whole_link_turns_bad(cluster, node);
    node->is_cut_to_store = is_cut_to_store;
    node->is_cut_to_node = is_cut_to_node;
    node->cuts++;
    whole_note(cluster, node, "link broken%s%s", is_cut_to_store ? " to the store" : "",
        is_cut_to_node ? " from the store" : "");
    for (struct whole_connection *each = node->connections; each != NULL;
         each = each->next_of_node) {
        for (int end = 0; end < 2 && (each->is_open_here || each->is_open_there); end++) {
            notice_silence(cluster, each, end != 0,
                cluster->now + whole_between(cluster, silence, silence + WHOLE_SECOND));
        }
    }
    if (duration >= 0) {
        struct whole_happening *mended =
            whole_schedule(cluster, cluster->now + duration, NULL, link_mends);
        mended->subject = node;
        mended->life = node->cuts;
    }
}

/* Whoever still believes in a connection that the other end has given up is told otherwise. */
static void mend_connection(struct whole_cluster *cluster, struct whole_connection *connection) {
    if (connection->is_open_here && !connection->is_open_there) {
        whole_stream_end(cluster, &connection->to_node);
    } else if (!connection->is_open_here && connection->is_open_there) {
        whole_stream_end(cluster, &connection->to_store);
    }
    whole_stream_wake(cluster, &connection->to_store);
    whole_stream_wake(cluster, &connection->to_node);
}

void whole_mend_link(struct whole_cluster *cluster, struct whole_node *node) {
    const struct whole_node *host = cluster->store.host;
    bool is_for_ever = node->is_off || (host != NULL && host->is_off);
    if ((!node->is_cut_to_store && !node->is_cut_to_node) || is_for_ever) {
        return;
    }
    node->is_cut_to_store = node->is_cut_to_node = false;
    node->cuts++;
    whole_note(cluster, node, "link mended");
    for (struct whole_connection *each = node->connections; each != NULL;
         each = each->next_of_node) {
        mend_connection(cluster, each);
    }
}

void whole_wake_streams(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_connection *each = node->connections;
    for (; each != NULL; each = each->next_of_node) {
        whole_stream_wake(cluster, &each->to_node);
    }
    each = node->is_host ? cluster->connections : NULL;
    for (; each != NULL; each = each->next) {
        whole_stream_wake(cluster, &each->to_store);
    }
}

bool whole_is_reachable(const struct whole_cluster *cluster, const struct whole_node *node) {
    bool is_host_off = cluster->store.host != NULL && cluster->store.host->is_off;
    return !node->is_cut_to_store && !node->is_cut_to_node && !is_host_off;
}
