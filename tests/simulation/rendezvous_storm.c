/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous_parts.h"

#include "base/memory.h"

/* Looks, a second apart, for which all must be in one world before their workers are done. */
#define GATHERED_LOOKS 3

static void fail_some_worker(struct cluster *cluster, struct cluster_node *node) {
    cluster_fail_worker(cluster, node, false);
}

static void give_up(struct cluster *cluster, struct cluster_node *node) {
    cluster_fail_worker(cluster, node, true);
}

static bool is_host(const struct cluster *cluster, const struct cluster_node *node) {
    return node->index == 0 && cluster->settings.has_presence;
}

static void replace_perhaps(struct cluster *cluster) {
    if (cluster_is_likely(cluster, 60)) {
        cluster_add_node(
            cluster, cluster->now + cluster_between(cluster, 1, 10 * CLUSTER_SECOND), false);
    }
}

static void kill_node(struct cluster *cluster, struct cluster_node *node) {
    if (!is_host(cluster, node)) {
        cluster_break_connections(cluster, node);
        cluster_end_node(cluster, node, false);
        replace_perhaps(cluster);
    }
}

static void power_off(struct cluster *cluster, struct cluster_node *node) {
    if (!is_host(cluster, node)) {
        cluster_break_connections(cluster, node);
        cluster_end_node(cluster, node, true);
        replace_perhaps(cluster);
    }
}

/* A host that is stopped stops the store with it: torchrun's nodes then take each other for dead,
 * and do not notice that they were. */
static void stall(struct cluster *cluster, struct cluster_node *node) {
    bool is_fatal = is_host(cluster, node) && cluster->settings.torch_nodes > 0;
    if (!is_fatal && !node->is_torch && !node->is_stalled) {
        cluster_stall(cluster, node,
            cluster_between(cluster, CLUSTER_MILLISECOND,
                (cluster_is_likely(cluster, 50) ? 40 : 2) * CLUSTER_SECOND));
    }
}

static void break_link(struct cluster *cluster, struct cluster_node *node) {
    if (!is_host(cluster, node) && !node->is_torch && !node->is_link_down) {
        cluster_break_link(cluster, node,
            cluster_between(cluster, CLUSTER_MILLISECOND,
                (cluster_is_likely(cluster, 50) ? 15 : 4) * CLUSTER_SECOND));
    }
}

static void leave(struct cluster *cluster, struct cluster_node *node) {
    if (!is_host(cluster, node)) {
        cluster_break_connections(cluster, node);
        cluster_leave(cluster, node);
        replace_perhaps(cluster);
    }
}

static void another_comes(struct cluster *cluster, struct cluster_node *node) {
    (void)node;
    bool is_torch = cluster->settings.torch_nodes > 0 && cluster_is_likely(cluster, 50);
    cluster_add_node(cluster, cluster->now + 1, is_torch);
}

static void one_flaps(struct cluster *cluster, struct cluster_node *node) {
    (void)node;
    struct cluster_node *flapper = cluster_add_node(cluster, cluster->now + 1, false);
    if (flapper != NULL) {
        flapper->is_flapping = true;
    }
}

static void jump_clock(struct cluster *cluster, struct cluster_node *node) {
    if (cluster->settings.torch_nodes == 0) {
        node->wall_offset +=
            cluster_between(cluster, -3600 * CLUSTER_SECOND, 3600 * CLUSTER_SECOND);
        cluster_note(cluster, node, "wall clock jumps");
    }
}

static struct cluster_node *some_node(struct cluster *cluster) {
    struct cluster_node *live[CLUSTER_NODES_MAXIMUM];
    size_t count = 0;
    for (int i = 0; i < cluster->node_count; i++) {
        if (cluster_is_live(cluster->nodes[i])) {
            live[count++] = cluster->nodes[i];
        }
    }
    return count == 0 ? NULL : live[random_below(&cluster->random, count)];
}

static void fault(struct cluster *cluster, struct cluster_happening *happening) {
    (void)happening;
    const struct rendezvous_weather *weather = &cluster->settings.weather;
    const struct {
        int weight;
        void (*befall)(struct cluster *cluster, struct cluster_node *node);
    } faults[] = {
        {weather->worker_fails, fail_some_worker},
        {weather->is_killed, kill_node},
        {weather->is_powered_off, power_off},
        {weather->is_stalled, stall},
        {weather->link_breaks, break_link},
        {weather->leaves, leave},
        {weather->another_comes, another_comes},
        {weather->one_flaps, one_flaps},
        {weather->clock_jumps, jump_clock},
        {weather->job_gives_up, give_up},
    };
    int sum = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sum += faults[i].weight;
    }
    struct cluster_node *node = some_node(cluster);
    if (node == NULL || sum == 0 || cluster->is_job_over || !cluster->is_storm) {
        return;
    }
    int chosen = (int)random_below(&cluster->random, (uint64_t)sum);
    size_t i = 0;
    while (chosen >= faults[i].weight) {
        chosen -= faults[i++].weight;
    }
    faults[i].befall(cluster, node);
}

static void host_dies(struct cluster *cluster, struct cluster_happening *happening) {
    (void)happening;
    cluster_end_node(cluster, cluster->nodes[0], cluster->settings.host_falls_silent);
}

static void begin_finishing(struct cluster *cluster) {
    cluster->is_finishing = true;
    cluster->finishing_at = cluster->now;

    cluster_note(cluster, NULL, "all workers will be done soon");
    for (int i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i]->is_alive && cluster->nodes[i]->phase == CLUSTER_RUNNING) {
            cluster_schedule_finish(cluster, cluster->nodes[i]);
        }
    }
}

/* In the midst of all else. */
static void workers_begin_to_finish(struct cluster *cluster, struct cluster_happening *happening) {
    (void)happening;
    if (!cluster->is_job_over) {
        begin_finishing(cluster);
        cluster->finishing_at = -1;
    }
}

static void look(struct cluster *cluster, struct cluster_happening *happening) {
    cluster_check_progress(cluster);
    if (cluster->is_job_over && !cluster->is_storm) {
        return;
    }
    cluster_schedule(
        cluster, cluster->now + CLUSTER_SECOND, CLUSTER_ANYWHERE, NULL, happening->happen);
    if (cluster->is_storm || cluster->is_finishing) {
        return;
    }
    cluster->gathered_for = cluster_is_gathered(cluster) ? cluster->gathered_for + 1 : 0;
    double calm = duration_seconds((struct duration){cluster->now - cluster->storm_over_at});
    if (cluster->gathered_for == GATHERED_LOOKS) {
        cluster->outcome.gathered_after = calm;
        begin_finishing(cluster);
    } else if (calm > cluster->settings.gather_seconds) {
        cluster_complain(cluster, "nothing befalls them any more, and they do not get together");
    }
}

static void fail_some_running_worker(struct cluster *cluster) {
    for (int i = 0; i < cluster->node_count; i++) {
        struct cluster_node *node = cluster->nodes[i];
        if (cluster_is_live(node) && node->phase == CLUSTER_RUNNING && !node->is_stalled) {
            cluster_fail_worker(cluster, node, false);
            return;
        }
    }
}

/* Whoever is stopped or cut off returns, and enough come to go on. */
static void storm_ends(struct cluster *cluster, struct cluster_happening *happening) {
    (void)happening;
    int live = 0;
    cluster->is_storm = false;
    cluster->storm_over_at = cluster->now;
    cluster_note(cluster, NULL, "the storm is over");
    for (int i = 0; i < cluster->node_count; i++) {
        struct cluster_node *node = cluster->nodes[i];
        node->is_flapping = false;
        cluster_mend_link(cluster, node);
        cluster_resume(cluster, node);
        live += cluster_is_live(node) && node->phase < CLUSTER_CLOSING ? 1 : 0;
    }
    if (cluster->is_job_over) {
        return;
    }
    if (cluster->is_finishing) {
        cluster->finishing_at = cluster->now;
    }
    for (; live < cluster->settings.rendezvous.minimum_nodes; live++) {
        cluster_add_node(cluster, cluster->now + 1, false);
    }
    if (cluster->settings.rendezvous.on_node_loss == RENDEZVOUS_ON_NODE_LOSS_TORCHRUN) {
        fail_some_running_worker(cluster); /* which they wait for before they look around */
    }
}

void cluster_plan_storm(struct cluster *cluster) {
    const struct rendezvous_cluster_settings *settings = &cluster->settings;
    int64_t storm = duration_from_seconds(settings->storm_seconds).nanoseconds;
    for (int i = 0; i < settings->nodes; i++) {
        bool is_torch = i >= settings->nodes - settings->torch_nodes;
        int64_t longest = cluster_is_likely(cluster, 70) ? CLUSTER_SECOND / 10 : storm / 2;
        cluster_add_node(cluster, cluster_between(cluster, 0, longest), is_torch);
    }
    for (int i = 0; i < settings->faults; i++) {
        cluster_schedule(
            cluster, cluster_between(cluster, 0, storm), CLUSTER_ANYWHERE, NULL, fault);
    }
    if (settings->host_dies) {
        cluster_schedule(
            cluster, cluster_between(cluster, storm / 2, storm), CLUSTER_ANYWHERE, NULL, host_dies);
    }
    if (settings->finishes_in_storm) {
        cluster_schedule(cluster, cluster_between(cluster, storm / 2, storm), CLUSTER_ANYWHERE,
            NULL, workers_begin_to_finish);
    }
    cluster_schedule(cluster, storm, CLUSTER_ANYWHERE, NULL, storm_ends);
    cluster_schedule(cluster, CLUSTER_SECOND, CLUSTER_ANYWHERE, NULL, look);
}
