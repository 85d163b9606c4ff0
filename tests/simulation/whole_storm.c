/* SPDX-License-Identifier: BSD-3-Clause */
/* What befalls a job: a story, users, or a storm with peace after it. */
#include "whole_parts.h"

#include "base/memory.h"

/* Looks, a second apart, for which all must be in one world before their workers are done. */
#define GATHERED_LOOKS 3

static bool is_host(const struct whole_node *node) {
    return node->is_host;
}

static void replace_perhaps(struct whole_cluster *cluster) {
    if (whole_is_likely(cluster, 60)) {
        whole_add_node(cluster, cluster->now + whole_between(cluster, 0, 10 * WHOLE_SECOND), false);
    }
}

/* Faults. */

static void fail_some_worker(struct whole_cluster *cluster, struct whole_node *node) {
    whole_fail_worker(cluster, node);
}

static void lose(struct whole_cluster *cluster, struct whole_node *node, enum whole_death death) {
    if (!is_host(node)) {
        whole_break_workers(cluster, node);
        whole_end_process(cluster, node, death);
        replace_perhaps(cluster);
    }
}

static void kill_agent(struct whole_cluster *cluster, struct whole_node *node) {
    lose(cluster, node, WHOLE_IS_KILLED);
}

static void power_off(struct whole_cluster *cluster, struct whole_node *node) {
    lose(cluster, node, WHOLE_GOES_OFF);
}

/* A host that is stopped stops the store with it: torchrun's nodes then take each other for dead,
 * and do not notice that they were. */
static void stop_agent(struct whole_cluster *cluster, struct whole_node *node) {
    bool is_fatal = is_host(node) && cluster->settings.torch_nodes > 0;
    if (!is_fatal && !node->is_torch && !node->is_stopped) {
        int64_t longest = (whole_is_likely(cluster, 50) ? 40 : 2) * WHOLE_SECOND;
        whole_stop_process(cluster, node, whole_between(cluster, WHOLE_MILLISECOND, longest));
    }
}

static void break_link(struct whole_cluster *cluster, struct whole_node *node) {
    if (!is_host(node) && !node->is_torch && !node->is_cut_to_store && !node->is_cut_to_node) {
        int direction = (int)whole_between(cluster, 0, 3);
        int64_t longest = (whole_is_likely(cluster, 50) ? 15 : 4) * WHOLE_SECOND;
        whole_break_link(cluster, node, direction != 1, direction != 2,
            whole_between(cluster, WHOLE_MILLISECOND, longest));
    }
}

/* Up to half of the packets; sometimes in one direction only. */
static void lose_packets(struct whole_cluster *cluster, struct whole_node *node) {
    if (!is_host(node) && !node->is_torch) {
        int most = (int)whole_between(cluster, 10, 500);
        int direction = (int)whole_between(cluster, 0, 3);
        int64_t longest = (whole_is_likely(cluster, 50) ? 20 : 5) * WHOLE_SECOND;
        whole_lose_packets(cluster, node, direction == 1 ? 0 : most, direction == 2 ? 0 : most,
            whole_between(cluster, WHOLE_MILLISECOND, longest));
    }
}

static void reset_connection(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_connection *each = node->connections;
    for (; each != NULL && !node->is_torch; each = each->next_of_node) {
        if (each->is_open_here && each->is_open_there && !is_host(node)) {
            whole_note(cluster, node, "a connection is reset");
            whole_reset_connection(cluster, each);
            return;
        }
    }
}

static void slow_down(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_torch) {
        whole_note(cluster, node, "reads slowly");
        node->slow_until = cluster->now + whole_between(cluster, 0, 10 * WHOLE_SECOND);
    }
}

static void signal_agent(struct whole_cluster *cluster, struct whole_node *node) {
    if (is_host(node) || node->is_stopped) {
        return;
    }
    if (node->is_torch) {
        kill_agent(cluster, node);
        return;
    }
    whole_break_workers(cluster, node);
    whole_signal_agent(cluster, node, WHOLE_TERMINATE);
    whole_node_run(cluster, node);
    replace_perhaps(cluster);
}

static void another_comes(struct whole_cluster *cluster, struct whole_node *node) {
    (void)node;
    bool is_torch = cluster->settings.torch_nodes > 0 && whole_is_likely(cluster, 50);
    whole_add_node(cluster, cluster->now + 1, is_torch);
}

static void flapper_dies(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    if (!node->is_alive || !cluster->is_storm) {
        return;
    }
    whole_end_process(cluster, node, WHOLE_IS_KILLED);
    struct whole_node *next =
        whole_add_node(cluster, cluster->now + whole_between(cluster, 1, WHOLE_SECOND), false);
    if (next != NULL) {
        whole_schedule(
            cluster, cluster->now + whole_between(cluster, 1, 4 * WHOLE_SECOND), NULL, flapper_dies)
            ->subject = next;
    }
}

static void one_flaps(struct whole_cluster *cluster, struct whole_node *node) {
    (void)node;
    struct whole_node *flapper = whole_add_node(cluster, cluster->now + 1, false);
    if (flapper != NULL) {
        whole_schedule(
            cluster, cluster->now + whole_between(cluster, 1, 4 * WHOLE_SECOND), NULL, flapper_dies)
            ->subject = flapper;
    }
}

static void jump_clock(struct whole_cluster *cluster, struct whole_node *node) {
    if (cluster->settings.torch_nodes == 0) {
        int64_t hour = 3600 * WHOLE_SECOND;
        node->wall_offset += whole_between(cluster, -hour, hour);
        whole_note(cluster, node, "wall clock jumps");
    }
}

static void hang_worker(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_torch && !node->is_stopped && whole_phase(node) == AGENT_RUNNING &&
        node->workers[0].is_alive) {
        cluster->outcome.has_trouble = true;
        whole_tell_agent(cluster, node,
            (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
                .worker_stuck = {.local_rank = 0,
                    .stuck = duration_from_seconds(5),
                    .observed = whole_wall(cluster, node)}});
        whole_node_run(cluster, node);
    }
}

static void lose_record(struct whole_cluster *cluster, struct whole_node *node) {
    (void)node;
    if (cluster->store.is_up) {
        whole_store_lose_record(cluster, (int)whole_between(cluster, 0, 2));
    }
}

static void begin_store_anew(struct whole_cluster *cluster, struct whole_node *node) {
    (void)node;
    if (cluster->store.host == NULL) {
        whole_store_begin_anew(cluster);
    }
}

static struct whole_node *some_node(struct whole_cluster *cluster) {
    size_t live = 0;
    struct whole_node *chosen = NULL;
    for (int i = 0; i < cluster->node_count; i++) {
        if (whole_is_live(cluster->nodes[i]) && random_below(&cluster->random, ++live) == 0) {
            chosen = cluster->nodes[i];
        }
    }
    return chosen;
}

static void fault(struct whole_cluster *cluster, struct whole_happening *happening) {
    (void)happening;
    const struct whole_faults *weights = &cluster->settings.weather.faults;
    const struct {
        int weight;
        void (*befall)(struct whole_cluster *cluster, struct whole_node *node);
    } faults[] = {
        {weights->worker_fails, fail_some_worker},
        {weights->agent_is_killed, kill_agent},
        {weights->machine_goes_off, power_off},
        {weights->agent_is_stopped, stop_agent},
        {weights->link_breaks, break_link},
        {weights->link_loses, lose_packets},
        {weights->connection_resets, reset_connection},
        {weights->reads_slowly, slow_down},
        {weights->is_signalled, signal_agent},
        {weights->another_comes, another_comes},
        {weights->one_flaps, one_flaps},
        {weights->clock_jumps, jump_clock},
        {weights->worker_hangs, hang_worker},
        {weights->record_is_lost, lose_record},
        {weights->store_begins_anew, begin_store_anew},
    };
    int sum = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sum += faults[i].weight;
    }
    struct whole_node *node = some_node(cluster);
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

/* The end of a storm, and of a job. */

static void host_dies(struct whole_cluster *cluster, struct whole_happening *happening) {
    (void)happening;
    bool is_silent = cluster->settings.host_falls_silent;
    whole_end_process(cluster, cluster->nodes[0], is_silent ? WHOLE_GOES_OFF : WHOLE_IS_KILLED);
}

static void begin_finishing(struct whole_cluster *cluster) {
    cluster->is_finishing = true;
    cluster->finishing_at = cluster->now;
    whole_note(cluster, NULL, "all workers will be done soon");
    for (int i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i]->is_alive) {
            whole_plan_finish(cluster, cluster->nodes[i]);
        }
    }
    if (cluster->settings.torch_nodes == 0 && cluster->settings.weather.faults.another_comes > 0) {
        whole_add_node(cluster, cluster->now + WHOLE_SECOND / 2, false); /* too late */
    }
}

/* In the midst of all else. */
static void workers_begin_to_finish(
    struct whole_cluster *cluster, struct whole_happening *happening) {
    (void)happening;
    if (!cluster->is_job_over) {
        begin_finishing(cluster);
        cluster->finishing_at = -1;
    }
}

static void look(struct whole_cluster *cluster, struct whole_happening *happening) {
    whole_check_progress(cluster);
    whole_chronicle_look(cluster);
    whole_schedule(cluster, cluster->now + WHOLE_SECOND, NULL, happening->happen);
    bool is_waiting = cluster->settings.is_storm && !cluster->is_storm && !cluster->is_finishing &&
                      !cluster->is_job_over;
    if (!is_waiting) {
        return;
    }
    cluster->gathered_for = whole_is_gathered(cluster) ? cluster->gathered_for + 1 : 0;
    double calm = duration_seconds((struct duration){cluster->now - cluster->storm_over_at});
    if (cluster->gathered_for == GATHERED_LOOKS) {
        cluster->outcome.gathered_after = calm;
        whole_chronicle_check(cluster, true);
        begin_finishing(cluster);
    } else if (calm > cluster->settings.gather_seconds) {
        whole_complain(cluster, "nothing befalls them any more, and they do not get together");
    }
}

static void fail_some_running_worker(struct whole_cluster *cluster) {
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        if (whole_is_live(node) && !node->is_torch && whole_phase(node) == AGENT_RUNNING &&
            !node->is_stopped) {
            whole_fail_worker(cluster, node);
            return;
        }
    }
}

static bool will_stay(const struct whole_node *node) {
    if (!whole_is_live(node) || node->is_torch) {
        return whole_is_live(node);
    }
    const struct agent_machine *agent = node_machine_agent(node->machine);
    return agent->phase < AGENT_LEAVING && agent->received_signal == 0 &&
           node->ending.user_signals == 0 && agent->stop_reason != AGENT_STOP_FAILURE &&
           agent->stop_reason != AGENT_STOP_PEER_FAILURE;
}

/* Whoever is stopped or cut off returns, and enough come to go on. */
static void storm_ends(struct whole_cluster *cluster, struct whole_happening *happening) {
    (void)happening;
    int live = 0;
    cluster->is_storm = false;
    cluster->storm_over_at = cluster->now;
    whole_note(cluster, NULL, "the storm is over");
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        whole_mend_link(cluster, node);
        node->slow_until = cluster->now;
        whole_resume_process(cluster, node);
        live += will_stay(node) ? 1 : 0;
    }
    if (cluster->is_job_over) {
        return;
    }
    if (cluster->is_finishing) {
        cluster->finishing_at = cluster->now;
    }
    for (; live < cluster->settings.rendezvous.minimum_nodes; live++) {
        whole_add_node(cluster, cluster->now + 1, false);
    }
    if (cluster->settings.rendezvous.on_node_loss == RENDEZVOUS_ON_NODE_LOSS_TORCHRUN) {
        fail_some_running_worker(cluster); /* which they wait for before they look around */
    }
}

static void plan_storm(struct whole_cluster *cluster) {
    const struct whole_settings *settings = &cluster->settings;
    int64_t storm = duration_from_seconds(settings->storm_seconds).nanoseconds;
    cluster->is_storm = true;
    for (int i = 0; i < settings->fault_count; i++) {
        whole_schedule(cluster, whole_between(cluster, 0, storm), NULL, fault);
    }
    if (settings->host_dies) {
        whole_schedule(cluster, whole_between(cluster, storm / 2, storm), NULL, host_dies);
    }
    if (settings->finishes_in_storm) {
        whole_schedule(
            cluster, whole_between(cluster, storm / 2, storm), NULL, workers_begin_to_finish);
    }
    whole_schedule(cluster, storm, NULL, storm_ends);
}

/* Users. */

static void user_signals(struct whole_cluster *cluster, struct whole_happening *happening) {
    whole_signal_agent(cluster, happening->node, (int)happening->number);
}

static void plan_user(struct whole_cluster *cluster, struct whole_node *node) {
    static const int signals[] = {WHOLE_TERMINATE, 2, 1};
    int64_t time = 0;
    for (int percent = cluster->settings.weather.user_signals; whole_is_likely(cluster, percent);
         percent = 50) {
        time += whole_between(cluster, 0, 10 * WHOLE_SECOND);
        whole_schedule(cluster, time, node, user_signals)->number =
            signals[random_below(&cluster->random, 3)];
    }
}

/* Stories. */

static struct process_exit exit_with(int code) {
    return (struct process_exit){.is_signal = code < 0, .value = code < 0 ? -code : code};
}

static void end_workers(struct whole_cluster *cluster, struct whole_node *node, int code) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->workers[rank].is_alive) {
            whole_end_worker(cluster, node, rank, exit_with(code));
        }
    }
}

static void do_deed(
    struct whole_cluster *cluster, const struct whole_happens *what, struct whole_node *node) {
    switch (what->deed) {
    case WHOLE_WORKER_ENDS:
        if (node->workers[0].is_alive) {
            whole_end_worker(cluster, node, 0, exit_with(what->number));
        }
        break;
    case WHOLE_WORKERS_END:
        end_workers(cluster, node, what->number);
        break;
    case WHOLE_SIGNAL: /* a stopped agent takes it when it goes on */
        whole_schedule(cluster, cluster->now, node, user_signals)->number = what->number;
        break;
    case WHOLE_AGENT_KILLED:
        whole_end_process(cluster, node, WHOLE_IS_KILLED);
        break;
    case WHOLE_MACHINE_OFF:
        whole_end_process(cluster, node, WHOLE_GOES_OFF);
        break;
    case WHOLE_AGENT_STOPPED:
        whole_stop_process(cluster, node, what->number * WHOLE_MILLISECOND);
        break;
    case WHOLE_LINK_BROKEN:
        whole_break_link(cluster, node, true, true, what->number * WHOLE_MILLISECOND);
        break;
    case WHOLE_RECORD_LOST:
        whole_store_lose_record(cluster, what->number);
        break;
    case WHOLE_STORE_ANEW:
        whole_store_begin_anew(cluster);
        break;
    case WHOLE_CLOSE_RECORD:
        whole_store_close_record(cluster);
        break;
    case WHOLE_GHOST_WRITTEN:
        whole_store_write_ghost(cluster);
        break;
    case WHOLE_NODE_COMES:
    case WHOLE_TORCH_NODE_COMES:
        break;
    }
}

static void story_goes_on(struct whole_cluster *cluster, struct whole_happening *happening) {
    const struct whole_happens *what = &cluster->settings.story[happening->number];
    if (what->deed == WHOLE_NODE_COMES || what->deed == WHOLE_TORCH_NODE_COMES) {
        whole_add_node(cluster, cluster->now, what->deed == WHOLE_TORCH_NODE_COMES);
        return;
    }
    struct whole_node *node = cluster->nodes[what->node];
    if (node->is_alive) {
        do_deed(cluster, what, node);
        whole_node_run(cluster, node);
    }
}

/* The whole. */

static void add_nodes(struct whole_cluster *cluster) {
    const struct whole_settings *settings = &cluster->settings;
    int64_t spread = duration_from_seconds(settings->start_spread).nanoseconds;
    for (int i = 0; i < settings->nodes; i++) {
        bool is_torch = i >= settings->nodes - settings->torch_nodes;
        bool is_early = !settings->comes_evenly && whole_is_likely(cluster, 70);
        int64_t longest = is_early ? WHOLE_SECOND / 10 : spread;
        int64_t time = settings->is_calm ? 0 : whole_between(cluster, 0, longest);
        struct whole_node *node = whole_add_node(cluster, time, is_torch);
        plan_user(cluster, node);
    }
}

void whole_plan_job(struct whole_cluster *cluster) {
    const struct whole_settings *settings = &cluster->settings;
    add_nodes(cluster);
    for (size_t i = 0; i < settings->story_length; i++) {
        int64_t time = duration_from_seconds(settings->story[i].at).nanoseconds;
        whole_schedule(cluster, time, NULL, story_goes_on)->number = (int64_t)i;
    }
    if (settings->is_storm) {
        plan_storm(cluster);
    }
    whole_schedule(cluster, WHOLE_SECOND, NULL, look);
}
