/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

#define HAPPENINGS_MAXIMUM 5000000u
/* A job that cannot go on is over for everybody after this: the longest of its patiences. */
#define END_SECONDS 120

/* Time and chance. */

int64_t cluster_between(struct cluster *cluster, int64_t low, int64_t high) {
    return low + (int64_t)random_below(&cluster->random, (uint64_t)(high - low) + 1);
}

bool cluster_is_likely(struct cluster *cluster, int percent) {
    return percent > 0 && (int)random_below(&cluster->random, 100) < percent;
}

static bool comes_before(
    const struct cluster_happening *left, const struct cluster_happening *right) {
    return left->time != right->time ? left->time < right->time : left->order < right->order;
}

static void heap_push(struct cluster *cluster, struct cluster_happening *happening) {
    cluster->heap = memory_reserve(
        cluster->heap, &cluster->heap_capacity, cluster->heap_count + 1, sizeof *cluster->heap);
    size_t place = cluster->heap_count++;
    while (place > 0 && comes_before(happening, cluster->heap[(place - 1) / 2])) {
        cluster->heap[place] = cluster->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    cluster->heap[place] = happening;
}

static struct cluster_happening *heap_pop(struct cluster *cluster) {
    struct cluster_happening *first = cluster->heap[0];
    struct cluster_happening *last = cluster->heap[--cluster->heap_count];
    size_t place = 0;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child + 1 < cluster->heap_count &&
            comes_before(cluster->heap[child + 1], cluster->heap[child])) {
            child++;
        }
        if (child >= cluster->heap_count || !comes_before(cluster->heap[child], last)) {
            break;
        }
        cluster->heap[place] = cluster->heap[child];
        place = child;
    }
    cluster->heap[place] = last;
    return first;
}

static void enqueue_at(struct cluster *cluster, struct cluster_happening *happening, int64_t time) {
    happening->time = time;
    happening->order = cluster->order++;
    heap_push(cluster, happening);
}

struct cluster_happening *cluster_schedule(struct cluster *cluster, int64_t time,
    enum cluster_way way, struct cluster_node *node,
    void (*happen)(struct cluster *, struct cluster_happening *)) {
    struct cluster_happening *happening = memory_allocate(sizeof *happening);
    happening->happen = happen;
    happening->way = way;
    happening->node = node;
    enqueue_at(cluster, happening, time > cluster->now ? time : cluster->now);
    return happening;
}

static void free_happening(struct cluster_happening *happening) {
    cluster_snapshot_drop(happening->snapshot);
    free(happening);
}

static void hold(struct cluster_queue *queue, struct cluster_happening *happening) {
    happening->next = NULL;
    if (queue->last == NULL) {
        queue->first = happening;
    } else {
        queue->last->next = happening;
    }
    queue->last = happening;
}

void cluster_queue_release(struct cluster *cluster, struct cluster_queue *queue) {
    while (queue->first != NULL) {
        struct cluster_happening *happening = queue->first;
        queue->first = happening->next;
        enqueue_at(cluster, happening, cluster->now);
    }
    queue->last = NULL;
}

void cluster_queue_drop(struct cluster_queue *queue) {
    while (queue->first != NULL) {
        struct cluster_happening *happening = queue->first;
        queue->first = happening->next;
        free_happening(happening);
    }
    queue->last = NULL;
}

/* Words. */

void cluster_complain(struct cluster *cluster, const char *format, ...) {
    if (cluster->complaint != NULL) {
        return;
    }
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    cluster->complaint =
        text_format("at %.6f: %s", duration_seconds((struct duration){cluster->now}), line);
}

void cluster_note(
    struct cluster *cluster, const struct cluster_node *node, const char *format, ...) {
    if (!cluster->settings.is_printed) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    printf("%12.6f %-7s ", duration_seconds((struct duration){cluster->now}),
        node == NULL ? "" : node->name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

/* Nodes. */

static void node_comes(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (cluster->is_job_over && !cluster->is_store_up) {
        return;
    }
    cluster_note(cluster, node, "comes");
    node->is_alive = true;
    cluster_set_phase(node, CLUSTER_JOINING);
    if (node->index == 0 && cluster->settings.has_presence) {
        cluster->is_store_up = true;
        cluster_watch_presence(cluster);
    }
    if (node->is_torch) {
        cluster_torch_start(cluster, node);
    } else {
        cluster_tell(cluster, node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
    }
}

struct cluster_node *cluster_add_node(struct cluster *cluster, int64_t time, bool is_torch) {
    if (cluster->node_count == CLUSTER_NODES_MAXIMUM) {
        return NULL;
    }
    struct cluster_node *node = memory_allocate(sizeof *node);
    node->index = cluster->node_count;
    node->is_torch = is_torch;

    node->last_round = -1;
    node->ended_at = -1;
    node->asked_at = -1;
    cluster_set_phase(node, CLUSTER_OVER);
    snprintf(node->name, sizeof node->name, "%s%d", is_torch ? "torch" : "node",
        (int)cluster_between(cluster, 0, 99));
    struct rendezvous_machine_settings settings = {
        .rendezvous = cluster->settings.rendezvous, .seed = random_next(&cluster->random)};
    snprintf(settings.identity.address, sizeof settings.identity.address, "%s", node->name);
    settings.identity.pid = 100 + node->index;
    settings.identity.local_id =
        is_torch ? 0 : node_identity_muster_local_id((uint32_t)random_next(&cluster->random));
    node->identity = settings.identity;
    if (is_torch) {
        node->torch = cluster_torch_new();
    } else {
        node->machine = rendezvous_machine_new(&settings);
    }
    if (cluster->settings.torch_nodes > 0) {
        node->wall_offset = cluster_between(cluster, -CLUSTER_SECOND, CLUSTER_SECOND);
    } else {
        node->wall_offset = cluster_between(cluster, -3600 * CLUSTER_SECOND, 3600 * CLUSTER_SECOND);
    }
    cluster->nodes[cluster->node_count++] = node;
    cluster_schedule(cluster, time, CLUSTER_ANYWHERE, node, node_comes);
    return node;
}

/* The whole. */

static void happen(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    struct cluster_connection *connection = happening->connection;
    bool is_for_node = happening->way == CLUSTER_AT_NODE || happening->way == CLUSTER_TO_NODE;
    bool is_on_link = happening->way == CLUSTER_TO_STORE || happening->way == CLUSTER_TO_NODE;
    if ((is_for_node && !node->is_alive) ||
        (is_for_node && connection != NULL && !connection->is_open_here) ||
        (happening->way == CLUSTER_TO_STORE && !connection->is_open_there)) {
        free_happening(happening);
    } else if (is_on_link && node->is_link_down) {
        hold(&node->held, happening);
    } else if (is_for_node && node->is_stalled) {
        hold(&node->inbox, happening);
    } else if (happening->way == CLUSTER_TO_STORE && cluster->settings.has_presence &&
               cluster->nodes[0]->is_stalled) {
        hold(&cluster->nodes[0]->inbox, happening);
    } else {
        happening->happen(cluster, happening);
        free_happening(happening);
    }
}

static bool is_everybody_gone(const struct cluster *cluster) {
    for (int i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i]->is_alive) {
            return false;
        }
    }
    return true;
}

static bool is_over(struct cluster *cluster) {
    if (cluster->complaint != NULL) {
        return true;
    }
    if (cluster->is_storm && !cluster->is_job_over) {
        return false;
    }
    bool is_empty = is_everybody_gone(cluster);
    if (is_empty && !cluster->is_job_over) {
        if (cluster->now - cluster->storm_over_at > CLUSTER_SECOND) {
            cluster_complain(cluster, "everybody has given up");
        }
        return false;
    }
    int64_t patience = END_SECONDS * CLUSTER_SECOND;
    if (!is_empty && cluster->is_job_over && cluster->now - cluster->job_over_at > patience) {
        cluster_complain(cluster, "the job is over, and somebody has not noticed");
    } else if (!is_empty && cluster->finishing_at >= 0 &&
               cluster->now - cluster->finishing_at > patience) {
        cluster_complain(cluster, "all workers are done, and the job does not end");
    }
    return is_empty;
}

static void clear(struct cluster *cluster) {
    while (cluster->heap_count > 0) {
        free_happening(heap_pop(cluster));
    }
    free(cluster->heap);
    for (int i = 0; i < cluster->node_count; i++) {
        struct cluster_node *node = cluster->nodes[i];
        rendezvous_machine_free(node->machine);
        cluster_torch_free(node->torch);
        cluster_queue_drop(&node->inbox);
        cluster_queue_drop(&node->held);
        free(node);
    }
    while (cluster->connections != NULL) {
        struct cluster_connection *connection = cluster->connections;
        cluster->connections = connection->next;
        free(connection);
    }
    for (size_t round = 0; round < cluster->world_count; round++) {
        rendezvous_state_clear(&cluster->worlds[round].state);
    }
    free(cluster->worlds);
    cluster_snapshot_drop(cluster->record);
}

struct rendezvous_cluster_outcome rendezvous_cluster_play(
    const struct rendezvous_cluster_settings *settings) {
    struct cluster *cluster = memory_allocate(sizeof *cluster);
    *cluster = (struct cluster){.settings = *settings,
        .is_store_up = !settings->has_presence,
        .is_storm = true,
        .finishing_at = -1,
        .newest_round = -1};
    random_init(&cluster->random, settings->seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    cluster_plan_storm(cluster);
    while (cluster->heap_count > 0 && !is_over(cluster)) {
        struct cluster_happening *happening = heap_pop(cluster);
        cluster->now = happening->time;
        happen(cluster, happening);
        if (++cluster->happened > HAPPENINGS_MAXIMUM) {
            cluster_complain(cluster, "this takes for ever");
        }
    }
    if (cluster->complaint == NULL && !is_everybody_gone(cluster)) {
        cluster_complain(cluster, "nothing happens any more");
    }
    cluster_note(cluster, NULL, "%s", cluster->complaint == NULL ? "end" : cluster->complaint);
    struct rendezvous_cluster_outcome outcome = cluster->outcome;
    outcome.complaint = cluster->complaint;
    outcome.events = cluster->happened;
    outcome.seconds = duration_seconds((struct duration){cluster->now});
    if (cluster->is_job_over) {
        outcome.longest_end =
            duration_seconds((struct duration){cluster->now - cluster->job_over_at});
    }
    if (cluster->record != NULL) {
        outcome.rounds = cluster->record->state.round;
        outcome.restarts = cluster->record->state.restarts;
    }
    clear(cluster);
    free(cluster);
    return outcome;
}
