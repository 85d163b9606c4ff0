/* SPDX-License-Identifier: BSD-3-Clause */
#include "whole_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

#define HAPPENINGS_MAXIMUM UINT64_C(40000000)
/* A job that cannot go on is over for everybody after this: the longest of its patiences. */
#define END_SECONDS 120
#define WALL_BASE INT64_C(1700000000)

/* Time and chance. */

int64_t whole_between(struct whole_cluster *cluster, int64_t low, int64_t high) {
    return high <= low ? low
                       : low + (int64_t)random_below(&cluster->random, (uint64_t)(high - low) + 1);
}

bool whole_is_likely(struct whole_cluster *cluster, int percent) {
    return percent > 0 && (int)random_below(&cluster->random, 100) < percent;
}

struct wall_time whole_wall(const struct whole_cluster *cluster, const struct whole_node *node) {
    return (struct wall_time){WALL_BASE * WHOLE_SECOND + cluster->now + node->wall_offset};
}

static void insert(struct whole_cluster *cluster, struct whole_happening *happening, int64_t time) {
    happening->is_planned = true;
    heap_insert(&cluster->heap, &happening->item, time > cluster->now ? time : cluster->now);
}

static void release(struct whole_cluster *cluster, struct whole_happening *happening) {
    if (!happening->is_fixed) {
        happening->next = cluster->pool;
        cluster->pool = happening;
    }
}

struct whole_happening *whole_schedule(struct whole_cluster *cluster, int64_t time,
    struct whole_node *process_or_null,
    void (*happen)(struct whole_cluster *, struct whole_happening *)) {
    struct whole_happening *happening = cluster->pool;
    if (happening != NULL) {
        cluster->pool = happening->next;
        *happening = (struct whole_happening){0};
    } else {
        happening = memory_allocate(sizeof *happening);
    }
    happening->happen = happen;
    happening->node = process_or_null;
    insert(cluster, happening, time);
    return happening;
}

void whole_call_off(struct whole_cluster *cluster, struct whole_happening *happening) {
    if (happening->is_planned) {
        happening->is_planned = false;
        heap_remove(&cluster->heap, &happening->item);
    }
}

void whole_plan(struct whole_cluster *cluster, struct whole_happening *happening, int64_t time) {
    whole_call_off(cluster, happening);
    happening->is_fixed = true;
    insert(cluster, happening, time);
}

/* Words. */

void whole_complain(struct whole_cluster *cluster, const char *format, ...) {
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

bool whole_notes(const struct whole_cluster *cluster, const struct whole_node *node) {
    return cluster->settings.is_printed ||
           (node != NULL && node->index == cluster->settings.transcript_of);
}

void whole_note(
    struct whole_cluster *cluster, const struct whole_node *node, const char *format, ...) {
    if (!whole_notes(cluster, node)) {
        return;
    }
    char words[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    double now = duration_seconds((struct duration){cluster->now});
    if (cluster->settings.is_printed) {
        printf("%12.6f %-7s %s\n", now, node == NULL ? "" : node->name, words);
    }
    if (node != NULL && node->index == cluster->settings.transcript_of) {
        text_append_format(&cluster->outcome.transcript, "%.3f %s\n", now, words);
    }
}

/* Nodes. */

static void node_comes(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    if (cluster->is_job_over && !cluster->store.is_up) {
        node->ending.was_killed = true; /* it never came */
        return;
    }
    whole_note(cluster, node, "comes");
    node->is_alive = true;
    node->came_at = cluster->now;
    cluster->live_count++;
    if (node->is_host) {
        whole_store_open(cluster, node);
    }
    if (cluster->settings.weather.loss > 0 && !node->is_host) {
        int loss = cluster->settings.weather.loss;
        whole_lose_packets(cluster, node, loss, loss,
            duration_from_seconds(cluster->settings.storm_seconds).nanoseconds);
    }
    if (node->is_torch) {
        whole_torch_start(cluster, node);
    } else {
        whole_node_start(cluster, node);
    }
}

struct whole_node *whole_add_node(struct whole_cluster *cluster, int64_t time, bool is_torch) {
    if (cluster->node_count == WHOLE_NODES_MAXIMUM) {
        return NULL;
    }
    struct whole_node *node = memory_allocate(sizeof *node);
    node->cluster = cluster;
    node->index = cluster->node_count;
    node->is_torch = is_torch;
    node->ending.is_torch = is_torch;
    snprintf(node->name, sizeof node->name, "%s%d", is_torch ? "torch" : "node",
        cluster->settings.is_calm ? node->index : (int)whole_between(cluster, 0, 99));
    snprintf(node->chronicle_name, sizeof node->chronicle_name, "%s.%d", node->name, node->index);
    cluster->nodes[cluster->node_count++] = node;
    whole_node_init(cluster, node);
    whole_schedule(cluster, time, NULL, node_comes)->subject = node;
    return node;
}

/* The whole. */

static void wait_in_inbox(struct whole_node *node, struct whole_happening *happening) {
    happening->next = NULL;
    if (node->inbox_last == NULL) {
        node->inbox_first = happening;
    } else {
        node->inbox_last->next = happening;
    }
    node->inbox_last = happening;
}

static void take_next(struct whole_cluster *cluster) {
    struct whole_happening *happening = (struct whole_happening *)heap_first(&cluster->heap);
    struct whole_node *node = happening->node;
    cluster->now = happening->item.key;
    heap_remove(&cluster->heap, &happening->item);
    happening->is_planned = false;
    if (node != NULL && node->is_alive && node->is_stopped) {
        wait_in_inbox(node, happening);
        return;
    }
    if (node == NULL || node->is_alive) {
        happening->happen(cluster, happening);
        if (node != NULL) {
            whole_node_run(cluster, node);
        }
    }
    release(cluster, happening);
}

static bool is_job_ending(const struct whole_cluster *cluster) {
    return cluster->is_job_over || cluster->finishing_at >= 0;
}

static void check_patience(struct whole_cluster *cluster) {
    int64_t patience = END_SECONDS * WHOLE_SECOND;
    if (cluster->is_job_over && cluster->now - cluster->job_over_at > patience &&
        (cluster->is_finishing || !cluster->settings.is_storm) &&
        cluster->settings.work_seconds <= 0 && cluster->settings.work_spread <= 0) {
        whole_complain(cluster, "the job is over, and somebody has not noticed");
    } else if (cluster->finishing_at >= 0 && cluster->now - cluster->finishing_at > patience) {
        whole_complain(cluster, "all workers are done, and the job does not end");
    }
}

static bool is_somebody_coming(const struct whole_cluster *cluster) {
    for (int i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i]->came_at < 0 && !cluster->nodes[i]->ending.was_killed) {
            return true;
        }
    }
    return false;
}

static bool is_over(struct whole_cluster *cluster) {
    if (cluster->complaint != NULL) {
        return true;
    }
    if (cluster->live_count > 0) {
        if (is_job_ending(cluster) && !cluster->is_storm) {
            check_patience(cluster);
        }
        return false;
    }
    if ((cluster->is_storm && !cluster->is_job_over) || is_somebody_coming(cluster)) {
        return false;
    }
    if (cluster->settings.is_storm && !cluster->is_job_over && !cluster->may_give_up) {
        if (cluster->now - cluster->storm_over_at > WHOLE_SECOND) {
            whole_complain(cluster, "everybody has given up");
        }
        return false;
    }
    return true;
}

static void clear(struct whole_cluster *cluster) {
    while (cluster->heap.count > 0) {
        struct whole_happening *happening = (struct whole_happening *)heap_first(&cluster->heap);
        heap_remove(&cluster->heap, &happening->item);
        release(cluster, happening);
    }
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        while (node->inbox_first != NULL) {
            struct whole_happening *happening = node->inbox_first;
            node->inbox_first = happening->next;
            release(cluster, happening);
        }
        whole_node_clear(node);
    }
    whole_store_clear(cluster);
    job_chronicle_free(cluster->host);
    job_chronicle_free(cluster->next_host);
    while (cluster->connections != NULL) {
        struct whole_connection *connection = cluster->connections;
        cluster->connections = connection->next;
        whole_connection_free(connection);
    }
    for (int i = 0; i < cluster->node_count; i++) {
        free(cluster->nodes[i]);
    }
    free(cluster->nodes);
    for (size_t i = 0; i < cluster->world_count; i++) {
        free(cluster->worlds[i].seats);
    }
    free(cluster->worlds);
    free(cluster->ports);
    while (cluster->pool != NULL) {
        struct whole_happening *happening = cluster->pool;
        cluster->pool = happening->next;
        free(happening);
    }
    heap_clear(&cluster->heap);
}

static void tell_outcome(struct whole_cluster *cluster) {
    struct whole_outcome *outcome = &cluster->outcome;
    outcome->complaint = cluster->complaint;
    outcome->events = cluster->happened;
    outcome->seconds = duration_seconds((struct duration){cluster->now});
    for (int i = 0; cluster->is_job_over && i < cluster->node_count; i++) {
        const struct whole_node *node = cluster->nodes[i];
        double after =
            node->ending.ended_at - duration_seconds((struct duration){cluster->job_over_at});
        if (node->was_connected && after > outcome->longest_end) {
            outcome->longest_end = after;
        }
    }
    outcome->failed_at = cluster->failure_announced_at < 0
                             ? -1
                             : duration_seconds((struct duration){cluster->failure_announced_at});
    outcome->rounds = rendezvous_state_ordinal(&cluster->store.record);
    outcome->restarts = cluster->store.record.restarts;
    outcome->node_count = cluster->node_count;
    outcome->endings = memory_allocate((size_t)cluster->node_count * sizeof *outcome->endings);
    for (int i = 0; i < cluster->node_count; i++) {
        outcome->endings[i] = cluster->nodes[i]->ending;
    }
}

/* The generator counts on by a number of its own: seeds that are multiples of it would play one
 * stream, each shifted by one. */
static void init_random(struct whole_cluster *cluster) {
    random_init(&cluster->random, cluster->settings.seed);
    random_init(&cluster->random, random_next(&cluster->random));
}

struct whole_outcome whole_cluster_play(const struct whole_settings *settings) {
    struct whole_cluster *cluster = memory_allocate(sizeof *cluster);
    *cluster = (struct whole_cluster){.settings = *settings,
        .finishing_at = -1,
        .newest_world = -1,
        .signalled_at = -1,
        .failure_announced_at = -1};
    init_random(cluster);
    cluster->nodes = memory_allocate(WHOLE_NODES_MAXIMUM * sizeof *cluster->nodes);
    whole_store_init(cluster);
    cluster->host = job_chronicle_new();
    whole_plan_job(cluster);
    while (cluster->heap.count > 0 && !is_over(cluster)) {
        take_next(cluster);
        if (++cluster->happened > HAPPENINGS_MAXIMUM) {
            whole_complain(cluster, "this takes for ever");
        }
    }
    if (cluster->complaint == NULL && cluster->live_count > 0) {
        whole_complain(cluster, "nothing happens any more");
    }
    whole_check_end(cluster);
    whole_chronicle_check(cluster, false);
    whole_note(cluster, NULL, "%s", cluster->complaint == NULL ? "end" : cluster->complaint);
    tell_outcome(cluster);
    struct whole_outcome outcome = cluster->outcome;
    clear(cluster);
    free(cluster);
    return outcome;
}

void whole_outcome_clear(struct whole_outcome *outcome) {
    free(outcome->complaint);
    free(outcome->endings);
    text_clear(&outcome->transcript);
}
