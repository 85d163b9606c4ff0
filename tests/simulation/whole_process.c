/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's process: how it comes, what it is made with, how it is stopped and goes. */
#include "whole_parts.h"

#define FIRST_PID 100
#define STANDBY_AFTER_SECONDS 2.5

static void close_connections(struct whole_cluster *cluster, struct whole_node *node) {
    for (struct whole_connection *each = node->connections; each != NULL;
         each = each->next_of_node) {
        whole_close_here(cluster, each);
    }
}

/* Nobody hears of it but by silence. */
static void silence_machine(struct whole_cluster *cluster, struct whole_node *node) {
    node->is_off = true;
    for (struct whole_connection *each = node->connections; each != NULL;
         each = each->next_of_node) {
        each->lane = NULL;
    }
    whole_break_link(cluster, node, true, true, -1);
    for (int i = 0; node->is_host && i < cluster->node_count; i++) {
        if (cluster->nodes[i] != node) {
            whole_break_link(cluster, cluster->nodes[i], true, true, -1);
        }
    }
}

static int status_of(const struct whole_node *node) {
    return node->is_finished && node->outcome.kind == AGENT_OUTCOME_SUCCEEDED ? 0 : 1;
}

void whole_end_process(
    struct whole_cluster *cluster, struct whole_node *node, enum whole_death death) {
    static const char *const words[] = {"exits", "is killed", "goes off"};
    if (!node->is_alive) {
        return;
    }
    node->ending.was_killed = death != WHOLE_EXITS;
    node->ending.is_settled = death == WHOLE_EXITS;
    if (!node->is_torch) {
        node->ending.status = death == WHOLE_EXITS ? status_of(node) : 1;
        node->ending.outcome = node->outcome.kind;
    }
    node->ending.ended_at = duration_seconds((struct duration){cluster->now});
    whole_note(cluster, node, "%s with %d", words[death], node->ending.status);
    whole_check_gone(cluster, node);
    whole_sweep_workers(node);
    if (death == WHOLE_GOES_OFF) {
        silence_machine(cluster, node);
    } else {
        close_connections(cluster, node);
    }
    node->is_alive = false;
    node->gone_at = cluster->now;
    cluster->live_count--;
    if (node->is_host) {
        whole_store_drop(cluster, death == WHOLE_GOES_OFF);
    }
}

static void stop_ends(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    if (node->stops == happening->life) {
        whole_resume_process(cluster, node);
    }
}

void whole_stop_process(struct whole_cluster *cluster, struct whole_node *node, int64_t duration) {
    node->is_stopped = node->was_stopped = true;
    node->stops++;
    whole_note(cluster, node, "is stopped");
    whole_guardian_misses(cluster, node);
    struct whole_happening *end = whole_schedule(cluster, cluster->now + duration, NULL, stop_ends);
    end->subject = node;
    end->life = node->stops;
}

/* What has come meanwhile is taken in the order in which it came. */
void whole_resume_process(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_stopped || !node->is_alive) {
        return;
    }
    int64_t time = cluster->now;
    node->is_stopped = false;
    node->stops++;
    whole_note(cluster, node, "goes on");
    while (node->inbox_first != NULL) {
        struct whole_happening *happening = node->inbox_first;
        node->inbox_first = happening->next;
        happening->is_planned = true;
        heap_insert(&cluster->heap, &happening->item, ++time);
    }
    node->inbox_last = NULL;
    whole_guardian_speaks(cluster, node);
    whole_wake_streams(cluster, node);
}

/* Life. */

/* In some jobs, nodes make standby workers ready before they join. */
static struct duration warming_patience(const struct whole_settings *settings) {
    bool warms = !settings->is_calm && settings->seed % 4 == 1;
    return duration_from_seconds(warms ? WHOLE_WARMING_SECONDS : 0);
}

static struct node_settings settings_of(
    struct whole_cluster *cluster, const struct whole_node *node) {
    const struct whole_settings *settings = &cluster->settings;
    bool is_changing = settings->kind == MEMBERSHIP_CHANGING;
    bool has_peers = is_changing ? settings->rendezvous.maximum_nodes > 1 : settings->nodes > 1;
    struct node_settings made = {
        .agent = {.worker_count = node->worker_count,
            .max_restarts = settings->max_restarts,
            .shutdown_timeout = duration_from_seconds(settings->shutdown_timeout),
            .has_peers = has_peers,
            .may_lose_peers = has_peers && is_changing,
            .looks_before_killing = !settings->is_calm && settings->seed % 3 == 0},
        .membership = {.kind = settings->kind,
            .run_id = WHOLE_RUN_ID,
            .role = "default",
            .local_world_size = node->worker_count,
            .address = node->name,
            .where = "the store",
            .master_address = "master",
            .master_port = WHOLE_STORE_PORT,
            .node_rank = node->index,
            .node_count = settings->nodes,
            .settling_time = duration_from_seconds(WHOLE_SETTLING_SECONDS),
            .ignores_losses = !rendezvous_settings_heed_losses(&settings->rendezvous)},
        .rendezvous = {.rendezvous = settings->rendezvous,
            .identity = node->identity,
            .warming_patience = warming_patience(settings),
            .seed = random_next(&cluster->random)},
        .standby = {.is_wanted = settings->has_standby,
            .is_auto = settings->seed % 2 == 0,
            .worker_count = node->worker_count,
            .after = duration_from_seconds(STANDBY_AFTER_SECONDS)},
        .round = {.role = "default",
            .local_world_size = node->worker_count,
            .is_uniform = settings->is_uniform,
            .timeout = is_changing ? settings->rendezvous.join_timeout
                                   : duration_from_seconds(WHOLE_STORE_TIMEOUT_SECONDS),
            .where = "the store",
            .exit_barrier_timeout = settings->rendezvous.exit_barrier_timeout},
    };
    made.rendezvous.role = round_settings_role(&made.round);
    return made;
}

static void init_record(struct whole_cluster *cluster, struct whole_node *node) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    struct rendezvous_record_store_settings record = {
        .run_id = WHOLE_RUN_ID,
        .minimum_nodes = settings->minimum_nodes,
        .maximum_nodes = settings->maximum_nodes,
        .answer_timeout = {settings->keep_alive_interval.nanoseconds *
                           settings->keep_alive_max_attempt},
        .seed = cluster->settings.seed + (uint64_t)node->index,
        .delegates = settings->delegates,
    };
    node->record = rendezvous_record_store_new(&record);
}

static void init_happenings(struct whole_node *node) {
    for (int part = 0; part < NODE_PART_COUNT; part++) {
        node->timers[part] = (struct whole_happening){
            .happen = whole_timer_fires, .node = node, .rank = part, .is_fixed = true};
    }
    node->patience =
        (struct whole_happening){.happen = whole_patience_ends, .node = node, .is_fixed = true};
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        node->lanes[lane].node = node;
    }
}

void whole_node_init(struct whole_cluster *cluster, struct whole_node *node) {
    const struct whole_settings *settings = &cluster->settings;
    int64_t hour = 3600 * WHOLE_SECOND;
    bool has_torch = settings->torch_nodes > 0;
    node->worker_count = settings->workers > 0 || settings->is_uniform
                             ? settings->workers
                             : (int)whole_between(cluster, 1, 3);
    node->is_host = node->index == 0 && settings->is_hosted;
    node->came_at = node->world = node->stop_asked_at = node->behind_since = node->over_since =
        node->asked_at = node->doubts_since = node->gone_at = WHOLE_NOBODY;
    node->begun_round = node->told_over = WHOLE_NOBODY;
    if (!settings->is_calm) {
        int64_t most = has_torch ? WHOLE_SECOND : hour;
        node->wall_offset = whole_between(cluster, -most, most);
    }
    node_identity_init(&node->identity, node->name, FIRST_PID + node->index,
        node->is_torch ? 0
                       : node_identity_muster_local_id((uint32_t)random_next(&cluster->random)));
    init_happenings(node);
    if (node->is_torch) {
        node->torch = whole_torch_new();
        return;
    }
    struct node_settings made = settings_of(cluster, node);
    node->machine = node_machine_new(&made);
    if (settings->kind == MEMBERSHIP_CHANGING) {
        init_record(cluster, node);
    }
}

void whole_node_start(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->is_host) {
        whole_node_post(cluster, node,
            &(struct node_event){.part = NODE_MEMBERSHIP,
                .membership = {.kind = MEMBERSHIP_EVENT_HOSTING, .port = WHOLE_STORE_PORT}});
    }
    whole_tell_agent(cluster, node, (struct agent_event){.kind = AGENT_EVENT_START});
    whole_node_run(cluster, node);
}

void whole_node_clear(struct whole_node *node) {
    chronicle_free(node->chronicle);
    chronicle_status_clear(&node->told);
    chronicle_status_clear(&node->retold);
    node_machine_free(node->machine);
    rendezvous_record_store_free(node->record);
    whole_torch_free(node->torch);
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        whole_lane_clear(&node->lanes[lane]);
    }
    text_clear(&node->cause_key);
    text_clear(&node->cause_written);
}
