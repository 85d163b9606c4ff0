/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that lose packets, as TCP makes up for it. What is sent is sent again every 0.2 s for the
 * first seven times (host/network/tcp_silence), then after 0.4 s, 0.8 s and so on until it is
 * acknowledged, and what follows waits. An idle connection is probed once a second. Both ends look
 * at the connection of a node's presence as host/store/store_peers and
 * host/rendezvous/rendezvous_backend do, with the same judgement. On a good link every probe is
 * answered, so signs of life and looks are played only while it is cut or loses packets. */
#include "whole_parts.h"

#define FIRST_PAUSE (200 * WHOLE_MILLISECOND)
#define EVEN_PAUSES 7
#define LONGEST_PAUSE (120 * WHOLE_SECOND)
#define LOOK_INTERVAL (CONNECTION_SILENCE_LOOK_MILLISECONDS * WHOLE_MILLISECOND)
#define PROBE_INTERVAL WHOLE_SECOND
/* The kernel ends a connection after so many timeouts without an answer. */
#define KERNEL_TIMEOUTS 3

static bool is_cut(const struct whole_node *node) {
    return node->is_cut_to_store || node->is_cut_to_node;
}

static bool loses(const struct whole_node *node, int64_t time) {
    return time < node->loses_until;
}

static bool is_good(const struct whole_cluster *cluster, const struct whole_node *node) {
    return !is_cut(node) && !loses(node, cluster->now);
}

static bool is_lost(
    struct whole_cluster *cluster, const struct whole_node *node, bool is_to_store, int64_t time) {
    int permille = is_to_store ? node->loss_to_store : node->loss_to_node;
    return loses(node, time) && (int)random_below(&cluster->random, 1000) < permille;
}

bool whole_is_lost(struct whole_cluster *cluster, const struct whole_node *node) {
    return is_lost(cluster, node, true, cluster->now) ||
           is_lost(cluster, node, false, cluster->now);
}

int64_t whole_kernel_timeout(const struct whole_cluster *cluster) {
    bool is_changing = cluster->settings.kind == MEMBERSHIP_CHANGING;
    return is_changing ? KERNEL_TIMEOUTS * cluster->settings.rendezvous.silence_timeout.nanoseconds
                       : 180 * WHOLE_SECOND;
}

static struct whole_end *end_of(struct whole_connection *connection, bool is_of_store) {
    return is_of_store ? &connection->there : &connection->here;
}

static bool is_open(const struct whole_connection *connection, bool is_of_store) {
    return is_of_store ? connection->is_open_there : connection->is_open_here;
}

/* Ends of connections. */

/* The end that is left sends a probe, and is told that there is no connection. */
static void left_end_is_told(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_connection *connection = happening->subject;
    bool is_of_store = happening->number != 0;
    if (is_open(connection, is_of_store)) {
        whole_stream_end(cluster, is_of_store ? &connection->to_store : &connection->to_node);
    }
}

/* The kernel gives up: what was not acknowledged is gone, and the other end hears nothing. */
static void gives_up(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_connection *connection = happening->subject;
    bool is_of_store = happening->number != 0;
    if (!is_open(connection, is_of_store)) {
        return;
    }
    whole_stream_forget(cluster, is_of_store ? &connection->to_node : &connection->to_store);
    whole_lose_end(cluster, connection, is_of_store);
    struct whole_happening *told =
        whole_schedule(cluster, cluster->now + PROBE_INTERVAL, NULL, left_end_is_told);
    told->subject = connection;
    told->number = is_of_store ? 0 : 1;
}

/* Sending. */

static void is_acknowledged(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_connection *connection = happening->subject;
    if (!is_cut(connection->node)) {
        end_of(connection, happening->number != 0)->heard_at = cluster->now;
    }
}

static void plan_for_sender(struct whole_cluster *cluster, struct whole_stream *stream,
    int64_t time, void (*happen)(struct whole_cluster *, struct whole_happening *)) {
    struct whole_happening *planned = whole_schedule(cluster, time, NULL, happen);
    planned->subject = stream->connection;
    planned->number = stream->is_to_store ? 0 : 1;
}

int64_t whole_transmit(struct whole_cluster *cluster, struct whole_stream *stream) {
    const struct whole_node *node = stream->connection->node;
    int64_t began = cluster->now > stream->acknowledged_at ? cluster->now : stream->acknowledged_at;
    int64_t arrival = -1;
    int64_t time = began;
    int64_t pause = FIRST_PAUSE;
    for (int sendings = 1;; sendings++) {
        bool arrives = !is_lost(cluster, node, stream->is_to_store, time);
        arrival = arrives && arrival < 0 ? time : arrival;
        if (arrives && !is_lost(cluster, node, !stream->is_to_store, time)) {
            break;
        }
        time += pause;
        pause = sendings < EVEN_PAUSES      ? FIRST_PAUSE
                : 2 * pause < LONGEST_PAUSE ? 2 * pause
                                            : LONGEST_PAUSE;
    }
    stream->acknowledged_at = time;
    if (loses(node, began)) {
        plan_for_sender(cluster, stream, time, is_acknowledged);
    }
    if (time - began > whole_kernel_timeout(cluster)) {
        plan_for_sender(cluster, stream, began + whole_kernel_timeout(cluster), gives_up);
    }
    return arrival;
}

/* Looking. */

/* Only a connection with nothing on its way is probed. */
static void probe(struct whole_cluster *cluster, struct whole_connection *connection,
    bool is_of_store, struct whole_end *end) {
    const struct whole_stream *stream = is_of_store ? &connection->to_node : &connection->to_store;
    bool is_idle = stream->acknowledged_at <= cluster->now &&
                   cluster->now - end->heard_at >= PROBE_INTERVAL &&
                   cluster->now - end->probed_at >= PROBE_INTERVAL;
    if (is_idle && !is_cut(connection->node)) {
        end->probed_at = cluster->now;
        if (!whole_is_lost(cluster, connection->node)) {
            end->heard_at = cluster->now;
        }
    }
}

/* `next`: when to look again, unless another connection has to be looked at before. */
static bool is_gone(struct whole_cluster *cluster, struct whole_connection *connection,
    bool is_of_store, int64_t *next) {
    struct whole_end *end = end_of(connection, is_of_store);
    probe(cluster, connection, is_of_store, end);
    struct duration silent_for = {cluster->now - end->heard_at};
    struct duration limit = cluster->settings.rendezvous.silence_timeout;
    struct instant now = {cluster->now};
    bool is_gone_now = connection_silence_look(&end->silence, silent_for, limit, now);
    struct duration pause = connection_silence_pause(&end->silence, silent_for, limit, now);
    if (cluster->now + pause.nanoseconds < *next) {
        *next = cluster->now + pause.nanoseconds;
    }
    return is_gone_now;
}

/* Nobody has done anything to the node or its link but lose packets. */
static void count_false_loss(
    struct whole_cluster *cluster, const struct whole_node *node, const char *who) {
    if (node->is_alive && !is_cut(node)) {
        cluster->outcome.false_losses++;
    }
    whole_note(cluster, node, "%s", who);
}

static void look_from_store(struct whole_cluster *cluster, struct whole_node *node, int64_t *next) {
    for (struct whole_connection *each = node->connections; each != NULL;
         each = each->next_of_node) {
        if (each->is_open_there && each->holder.first != NULL &&
            is_gone(cluster, each, true, next)) {
            count_false_loss(cluster, node, "is silent for the store");
            whole_close_there(cluster, each);
        }
    }
}

static void give_sign(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_sign_under_way) {
        node->is_sign_under_way = true;
        whole_lane_send(cluster, &node->lanes[RENDEZVOUS_LANE_ASKER],
            &(struct store_request){.operation = STORE_PING}, DURATION_FOREVER,
            (struct whole_call){.kind = WHOLE_CALL_SIGN});
    }
}

static void look_from_node(struct whole_cluster *cluster, struct whole_node *node, int64_t *next) {
    struct whole_lane *asker = &node->lanes[RENDEZVOUS_LANE_ASKER];
    bool is_up = asker->phase == WHOLE_LANE_READY && asker->connection != NULL &&
                 node->ready_lanes == whole_lanes_kept(cluster);
    if (!is_up) {
        return;
    }
    if (is_gone(cluster, asker->connection, false, next)) {
        count_false_loss(cluster, node, "finds the store silent");
        whole_lane_lose(cluster, asker, FAILURE_TIMEOUT, "the store is silent");
    } else {
        give_sign(cluster, node);
    }
    whole_node_run(cluster, node);
}

static void looks(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    if (is_good(cluster, node)) {
        return;
    }
    int64_t next = cluster->now + LOOK_INTERVAL;
    if (!whole_store_is_stopped(cluster)) {
        look_from_store(cluster, node, &next);
    }
    if (node->is_alive && !node->is_stopped) {
        look_from_node(cluster, node, &next);
    }
    whole_plan(cluster, happening, next);
}

static void begins_anew(struct whole_cluster *cluster, struct whole_end *end) {
    *end = (struct whole_end){.heard_at = cluster->now, .probed_at = cluster->now};
}

void whole_link_turns_bad(struct whole_cluster *cluster, struct whole_node *node) {
    bool is_looked_at = !node->is_torch && cluster->settings.kind == MEMBERSHIP_CHANGING;
    if (!is_good(cluster, node) || !is_looked_at) {
        return;
    }
    for (struct whole_connection *each = node->connections; each != NULL;
         each = each->next_of_node) {
        begins_anew(cluster, &each->here);
        begins_anew(cluster, &each->there);
    }
    node->look.happen = looks;
    node->look.subject = node;
    whole_plan(cluster, &node->look, cluster->now + whole_between(cluster, 0, LOOK_INTERVAL));
}

void whole_lose_packets(struct whole_cluster *cluster, struct whole_node *node, int to_store,
    int to_node, int64_t duration) {
    int64_t storm_end = duration_from_seconds(cluster->settings.storm_seconds).nanoseconds;
    int64_t end = cluster->now + duration;
    whole_link_turns_bad(cluster, node);
    node->loss_to_store = to_store;
    node->loss_to_node = to_node;
    node->loses_until = end < storm_end ? end : storm_end;
    whole_note(cluster, node, "link loses %d ‰ to the store, %d ‰ from it, for %.3f s", to_store,
        to_node, duration_seconds((struct duration){duration}));
}
