/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends: of processes, links, connections and the store; and stops. */
#include "rendezvous_parts.h"

#define SILENCE_MILLISECONDS 3000

static void closed_there(struct cluster *cluster, struct cluster_happening *message) {
    cluster_close_there(cluster, message->connection);
}

static void silence_noticed(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    struct cluster_connection *connection = happening->connection;
    if (!node->is_link_down || node->breaks != happening->life) {
        return;
    }
    if (happening->flag) {
        cluster_close_there(cluster, connection);
    } else if (connection->is_open_here && node->is_alive) {
        cluster_lose(cluster, connection, true);
    }
}

static void link_mends(struct cluster *cluster, struct cluster_happening *happening) {
    if (happening->node->breaks == happening->life) {
        cluster_mend_link(cluster, happening->node);
    }
}

/* Both ends notice, each in its own time, whether they hear of each other. */
void cluster_break_link(struct cluster *cluster, struct cluster_node *node, int64_t duration) {
    node->is_link_down = true;
    node->breaks++;
    cluster_note(cluster, node, "link down");
    for (int end = 0; end < 2 && node->connection != NULL; end++) {
        int64_t silence = SILENCE_MILLISECONDS * CLUSTER_MILLISECOND;
        struct cluster_happening *noticed = cluster_schedule(cluster,
            cluster->now + cluster_between(cluster, silence, silence + CLUSTER_SECOND),
            CLUSTER_ANYWHERE, node, silence_noticed);
        noticed->connection = node->connection;
        noticed->life = node->breaks;
        noticed->flag = end == 0;
    }
    if (duration >= 0) {
        cluster_schedule(cluster, cluster->now + duration, CLUSTER_ANYWHERE, node, link_mends)
            ->life = node->breaks;
    }
}

void cluster_mend_link(struct cluster *cluster, struct cluster_node *node) {
    if (!node->is_link_down || !node->is_alive) {
        return;
    }
    node->is_link_down = false;
    node->breaks++;
    cluster_note(cluster, node, "link up");
    cluster_queue_release(cluster, &node->held);
    struct cluster_connection *connection = cluster->connections;
    for (; connection != NULL; connection = connection->next) {
        if (connection->node == node && connection->is_open_here != connection->is_open_there) {
            if (connection->is_open_here) {
                cluster_lose(cluster, connection, false);
            } else {
                cluster_close_there(cluster, connection);
            }
        }
    }
}

/* Closes the connections of a process that has ended, once what it sent before has arrived. */
static void close_connections_of(
    struct cluster *cluster, const struct cluster_node *node, bool is_silent) {
    struct cluster_connection *connection = cluster->connections;
    for (; connection != NULL; connection = connection->next) {
        if (connection->node == node && connection->is_open_there && !is_silent) {
            cluster_send(cluster, connection, closed_there);
        }
    }
}

void cluster_end_node(struct cluster *cluster, struct cluster_node *node, bool is_silent) {
    if (!node->is_alive) {
        return;
    }
    cluster_note(cluster, node, is_silent ? "power off" : "process ends");
    if (is_silent && !node->is_link_down) {
        cluster_break_link(cluster, node, -1);
    }
    close_connections_of(cluster, node, is_silent);
    node->is_alive = false;
    node->ended_at = cluster->now;
    node->asked_at = -1;
    cluster_set_phase(node, CLUSTER_OVER);
    cluster_queue_drop(&node->inbox);
    if (cluster->settings.has_presence && node->index == 0 && !cluster->is_job_over) {
        cluster_drop_store(cluster, is_silent);
    }
}

/* With the store everything ends that needs it. */
void cluster_drop_store(struct cluster *cluster, bool is_silent) {
    cluster->is_store_up = false;
    cluster->is_job_over = true;
    cluster->job_over_at = cluster->now;
    struct cluster_connection *connection = cluster->connections;
    for (; connection != NULL; connection = connection->next) {
        if (connection->is_open_there) {
            connection->is_open_there = false;
            connection->to_node =
                cluster->now + (is_silent ? SILENCE_MILLISECONDS * CLUSTER_MILLISECOND : 0);
            cluster_lose(cluster, connection, is_silent);
        }
    }
}

static void stall_ends(struct cluster *cluster, struct cluster_happening *happening) {
    if (happening->node->stalls == happening->life) {
        cluster_resume(cluster, happening->node);
    }
}

void cluster_stall(struct cluster *cluster, struct cluster_node *node, int64_t duration) {
    node->is_stalled = true;
    node->stalls++;
    cluster_note(cluster, node, "stalled");
    cluster_schedule(cluster, cluster->now + duration, CLUSTER_ANYWHERE, node, stall_ends)->life =
        node->stalls;
}

void cluster_resume(struct cluster *cluster, struct cluster_node *node) {
    if (node->is_stalled && node->is_alive) {
        node->is_stalled = false;
        node->stalls++;
        cluster_note(cluster, node, "resumed");
        cluster_queue_release(cluster, &node->inbox);
    }
}
