/* SPDX-License-Identifier: BSD-3-Clause */
/* Worker processes: when they start, what they work for, how they end. */
#include "whole_parts.h"

#define START_LONGEST (50 * WHOLE_MILLISECOND)
#define DEATH_LONGEST (50 * WHOLE_MILLISECOND)
#define DEATH_SLOW (4 * WHOLE_SECOND)
/* A worker that waits for others who do not come gives up after this. */
#define MEETING_SECONDS 90
#define MEETING_LOOK (100 * WHOLE_MILLISECOND)
#define SPREADING_PERCENT 30
/* A process may end otherwise than it was to: only the end counts. */
#define OTHER_STATUS_PERCENT 5

static bool is_running(const struct whole_node *node) {
    return node->is_torch ? whole_torch_is_running(node) : whole_phase(node) == AGENT_RUNNING;
}

bool whole_has_processes(const struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->workers[rank].is_alive || node->workers[rank].has_orphan) {
            return true;
        }
    }
    return false;
}

bool whole_has_workers(const struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->workers[rank].is_alive) {
            return true;
        }
    }
    return false;
}

void whole_sweep_workers(struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        node->workers[rank].is_alive = node->workers[rank].has_orphan = false;
        node->workers[rank].life = 0;
        node->spares[rank] = (struct whole_spare){0};
    }
    node->group_life = 0;
}

static void tell_if_all_gone(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->is_start_over && !node->has_told_gone && node->unheard_exits == 0 &&
        !whole_has_processes(node)) {
        node->has_told_gone = true;
        node->workers_gone_at = cluster->now;
        if (!node->is_torch) {
            whole_tell_agent(cluster, node, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE});
        }
    }
}

static struct process_exit exit_of(int python_code) {
    return (struct process_exit){
        .is_signal = python_code < 0, .value = python_code < 0 ? -python_code : python_code};
}

/* What its agent hears; a stopped one hears it later. */

static void exit_is_heard(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    int code = (int)happening->number;
    whole_hear_guardian(cluster, node);
    node->unheard_exits--;
    if (node->is_torch) {
        tell_if_all_gone(cluster, node);
        whole_torch_worker_exited(cluster, node);
        return;
    }
    whole_tell_agent(cluster, node,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {.local_rank = happening->rank,
                .exit = exit_of(code),
                .observed = whole_wall(cluster, node)}});
    tell_if_all_gone(cluster, node);
}

static void session_is_gone(struct whole_cluster *cluster, struct whole_happening *happening) {
    tell_if_all_gone(cluster, happening->node);
}

static int64_t death_length(struct whole_cluster *cluster) {
    if (cluster->settings.is_calm) {
        return WHOLE_MILLISECOND;
    }
    bool is_slow = cluster->settings.is_storm && whole_is_likely(cluster, 5);
    return whole_between(cluster, 1, is_slow ? DEATH_SLOW : DEATH_LONGEST);
}

static void note_end(struct whole_cluster *cluster, struct whole_node *node, bool is_success) {
    cluster->outcome.has_trouble = cluster->outcome.has_trouble || !is_success;
    for (int rank = 0; is_success && rank < node->worker_count; rank++) {
        is_success = node->workers[rank].is_done;
    }
    if (is_success) {
        node->ending.work_done_at = duration_seconds((struct duration){cluster->now});
    }
}

static void end_worker(
    struct whole_cluster *cluster, struct whole_node *node, int rank, struct process_exit exit) {
    struct whole_worker *worker = &node->workers[rank];
    int code = process_exit_python_code(exit);
    worker->is_alive = false;
    worker->is_done = code == 0;
    worker->life = 0;
    whole_note(cluster, node, "worker %d ends with %d", rank, code);
    note_end(cluster, node, code == 0);
    node->unheard_exits++;
    struct whole_happening *heard = whole_schedule(cluster, cluster->now, node, exit_is_heard);
    heard->rank = rank;
    heard->number = code;
}

/* A failure that the agent knows of before the kernel is done with the process. */

static void ending_is_heard(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    if (node->workers[happening->rank].life == happening->life) { /* else it has ended */
        whole_tell_agent(cluster, node,
            (struct agent_event){.kind = AGENT_EVENT_WORKER_ENDING,
                .worker_exited = {.local_rank = happening->rank,
                    .exit = exit_of((int)happening->number),
                    .observed = whole_wall(cluster, node)}});
    }
}

static void ending_is_over(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    const struct whole_worker *worker = &node->workers[happening->rank];
    if (worker->life == happening->life && worker->is_alive) {
        end_worker(cluster, node, happening->rank, exit_of((int)happening->number));
    }
}

static void announce_end(
    struct whole_cluster *cluster, struct whole_node *node, int rank, int code) {
    struct whole_worker *worker = &node->workers[rank];
    int64_t over = cluster->now + death_length(cluster);
    struct whole_happening *heard =
        whole_schedule(cluster, whole_between(cluster, cluster->now, over), node, ending_is_heard);
    struct whole_happening *end = whole_schedule(cluster, over, NULL, ending_is_over);
    worker->is_ending = true;
    end->subject = node;
    heard->rank = end->rank = rank;
    heard->life = end->life = worker->life;
    heard->number = end->number = code;
    if (whole_is_likely(cluster, OTHER_STATUS_PERCENT)) {
        end->number = code == 7 ? 8 : 7;
    }
    cluster->outcome.has_trouble = true;
    whole_note(cluster, node, "worker %d will end with %d", rank, code);
}

/* Nothing changes how a worker ends that is about to. */
void whole_end_worker(
    struct whole_cluster *cluster, struct whole_node *node, int rank, struct process_exit exit) {
    int code = process_exit_python_code(exit);
    if (node->workers[rank].is_ending) {
        return;
    }
    if (code != 0 && !node->is_torch &&
        whole_is_likely(cluster, cluster->settings.weather.announces_end)) {
        announce_end(cluster, node, rank, code);
    } else {
        end_worker(cluster, node, rank, exit);
    }
}

/* A worker that is gone takes others with it, which were connected to it. */

static void worker_fails_too(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    struct whole_worker *worker = &node->workers[0];
    if (worker->is_alive && node->group_life == happening->life && is_running(node)) {
        whole_end_worker(cluster, node, 0, (struct process_exit){.value = 1});
    }
}

static void spread_failure(
    struct whole_cluster *cluster, const struct whole_node *origin, int64_t longest) {
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        if (node != origin && node->is_alive && node->world == origin->world &&
            whole_has_workers(node) && whole_is_likely(cluster, SPREADING_PERCENT)) {
            struct whole_happening *next = whole_schedule(
                cluster, cluster->now + whole_between(cluster, 1, longest), NULL, worker_fails_too);
            next->subject = node;
            next->life = node->group_life;
        }
    }
}

/* Before all nodes of a world have started, no worker is connected to another. */
static bool is_complete(struct whole_cluster *cluster, const struct whole_node *node) {
    if (cluster->settings.kind == MEMBERSHIP_ALONE) {
        return true;
    }
    const struct whole_world *world = whole_world_of(cluster, node->world);
    return world->is_told && world->started >= world->world_size;
}

void whole_break_workers(struct whole_cluster *cluster, const struct whole_node *lost) {
    if (cluster->settings.losses_spread && whole_has_workers(lost) && is_complete(cluster, lost)) {
        spread_failure(
            cluster, lost, whole_is_likely(cluster, 50) ? 5 * WHOLE_MILLISECOND : 2 * WHOLE_SECOND);
    }
}

void whole_fail_worker(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->workers[0].is_alive && is_running(node) && !node->is_stopped) {
        whole_end_worker(cluster, node, 0, (struct process_exit){.value = 1});
        if (is_complete(cluster, node)) {
            spread_failure(cluster, node, 20 * WHOLE_MILLISECOND);
        }
    }
}

/* Work. */

static void work_is_done(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    struct whole_worker *worker = &node->workers[happening->rank];
    const struct whole_weather *weather = &cluster->settings.weather;
    if (worker->life != happening->life || !worker->is_alive || worker->is_ending) {
        return;
    }
    if (!is_complete(cluster, node) &&
        cluster->now - node->started_at < MEETING_SECONDS * WHOLE_SECOND) {
        struct whole_happening *again =
            whole_schedule(cluster, cluster->now + MEETING_LOOK, NULL, work_is_done);
        again->subject = node;
        again->rank = happening->rank;
        again->life = happening->life;
        return;
    }
    bool has_failed =
        !is_complete(cluster, node) || whole_is_likely(cluster, weather->worker_fails);
    worker->has_orphan = whole_is_likely(cluster, weather->leaves_orphan);
    whole_end_worker(
        cluster, node, happening->rank, (struct process_exit){.value = has_failed ? 1 : 0});
}

static void plan_work(
    struct whole_cluster *cluster, struct whole_node *node, int rank, int64_t end) {
    struct whole_happening *done = whole_schedule(cluster, end, NULL, work_is_done);
    done->subject = node;
    done->rank = rank;
    done->life = node->workers[rank].life;
}

static void worker_hangs(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    if (node->workers[happening->rank].life == happening->life) {
        cluster->outcome.has_trouble = true;
        whole_tell_agent(cluster, node,
            (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
                .worker_stuck = {.local_rank = happening->rank,
                    .stuck = duration_from_seconds(5),
                    .observed = whole_wall(cluster, node)}});
    }
}

static int64_t work_length(struct whole_cluster *cluster) {
    const struct whole_settings *settings = &cluster->settings;
    int64_t least = duration_from_seconds(settings->work_seconds).nanoseconds;
    int64_t spread = duration_from_seconds(settings->work_spread).nanoseconds;
    return least + whole_between(cluster, 0, spread);
}

static bool has_end(const struct whole_cluster *cluster) {
    return cluster->settings.work_seconds > 0 || cluster->settings.work_spread > 0;
}

void whole_plan_finish(struct whole_cluster *cluster, struct whole_node *node) {
    int64_t longest = duration_from_seconds(cluster->settings.finish_seconds).nanoseconds;
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->workers[rank].is_alive) {
            plan_work(cluster, node, rank, cluster->now + whole_between(cluster, 1, longest));
        }
    }
}

/* Starting. */

static void start_worker(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    const struct whole_weather *weather = &cluster->settings.weather;
    if (node->workers[rank].is_alive || node->workers[rank].is_started) {
        whole_complain(cluster, "%s starts worker %d twice in an attempt", node->name, rank);
    }
    node->workers[rank] = (struct whole_worker){
        .is_started = true,
        .is_alive = true,
        .is_stubborn = !node->is_torch && whole_is_likely(cluster, weather->worker_is_stubborn),
        .is_stuck = !node->is_torch && whole_is_likely(cluster, weather->worker_is_stuck),
        .life = ++cluster->lives,
    };
    if (has_end(cluster)) {
        plan_work(cluster, node, rank, cluster->now + work_length(cluster));
    }
    if (whole_is_likely(cluster, weather->worker_hangs)) {
        struct whole_happening *hang =
            whole_schedule(cluster, cluster->now + work_length(cluster), node, worker_hangs);
        hang->rank = rank;
        hang->life = node->workers[rank].life;
    }
}

static void fail_start(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    cluster->outcome.has_trouble = true;
    whole_tell_agent(cluster, node,
        (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
            .start_failed = {.local_rank = rank,
                .message = "exec failed",
                .observed = whole_wall(cluster, node)}});
}

static void note_start(struct whole_cluster *cluster, struct whole_node *node) {
    if (cluster->settings.demands.no_start_after_signal && cluster->signalled_at >= 0 &&
        cluster->now - cluster->signalled_at <= WHOLE_SETTLING_SECONDS * WHOLE_SECOND) {
        whole_complain(cluster, "%s starts workers though a node was told to end", node->name);
    }
    whole_check_beside(cluster, node);
    if (cluster->settings.kind != MEMBERSHIP_ALONE) {
        whole_world_of(cluster, node->world)->started += node->worker_count;
    }
    if (cluster->is_finishing) {
        whole_plan_finish(cluster, node);
    }
}

static bool is_any_awaited(const struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->spares[rank].is_awaited) {
            return true;
        }
    }
    return false;
}

static void end_start(struct whole_cluster *cluster, struct whole_node *node) {
    node->is_start_over = true;
    note_start(cluster, node);
    if (!node->is_torch) {
        whole_tell_agent(cluster, node, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
    }
}

void whole_start_cold(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    start_worker(cluster, node, rank);
    if (!node->is_start_over && !is_any_awaited(node)) {
        end_start(cluster, node);
    }
}

static void workers_start(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    int count = node->worker_count;
    if (node->group_life != happening->life || node->is_start_over) {
        return;
    }
    if (whole_is_likely(cluster, cluster->settings.weather.start_fails)) {
        count = (int)whole_between(cluster, 0, count - 1);
    }
    for (int rank = 0; rank < count; rank++) {
        enum whole_passage passage = whole_pass_gate(cluster, node, rank);
        if (passage != WHOLE_PASSAGE_AWAITED) {
            start_worker(cluster, node, rank);
            node->workers[rank].is_from_standby = passage == WHOLE_PASSAGE_THROUGH;
        }
    }
    if (count < node->worker_count) {
        fail_start(cluster, node, count);
    } else if (!is_any_awaited(node)) {
        end_start(cluster, node);
    }
}

/* The caller has checked what they are told. */
void whole_start_workers(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_torch) {
        whole_check_start(cluster, node, &node_machine_knowledge(node->machine)->placement);
    }
    if (whole_has_processes(node)) {
        whole_complain(cluster, "%s starts workers beside those of before", node->name);
    }
    for (int rank = 0; rank < node->worker_count; rank++) {
        node->workers[rank] = (struct whole_worker){0};
    }
    node->ending.starts++;
    node->group_life = ++cluster->lives;
    node->started_at = cluster->now;
    node->is_start_over = false;
    node->has_told_gone = false;
    node->stop_asked_at = WHOLE_NOBODY;
    int64_t length =
        cluster->settings.is_calm ? WHOLE_MILLISECOND : whole_between(cluster, 0, START_LONGEST);
    whole_schedule(cluster, cluster->now + length, node, workers_start)->life = node->group_life;
}

/* Signals. */

static void session_ends(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    struct whole_worker *worker = &node->workers[happening->rank];
    if (node->group_life != happening->life) {
        return;
    }
    worker->has_orphan = false;
    const struct process_exit exit = {.is_signal = true, .value = (int)happening->number};
    if (worker->is_alive && happening->number == WHOLE_KILL) {
        end_worker(cluster, node, happening->rank, exit); /* it took this long */
    } else if (worker->is_alive) {
        whole_end_worker(cluster, node, happening->rank, exit);
    } else {
        whole_schedule(cluster, cluster->now, node, session_is_gone);
    }
}

static void count_signal(struct whole_cluster *cluster, const struct whole_node *node,
    struct whole_worker *worker, int signal) {
    worker->signals++;
    worker->stop_signals += signal == WHOLE_KILL ? 0 : 1;
    if (cluster->settings.demands.no_start_after_signal && worker->stop_signals > 1) {
        whole_complain(cluster, "a worker of %s is told to end twice", node->name);
    }
}

void whole_signal_workers(struct whole_cluster *cluster, struct whole_node *node, int signal) {
    node->is_start_over = true;
    whole_give_up_passages(cluster, node);
    if (node->stop_asked_at < 0) {
        node->stop_asked_at = cluster->now;
    }
    for (int rank = 0; rank < node->worker_count; rank++) {
        struct whole_worker *worker = &node->workers[rank];
        bool is_deaf = worker->is_stuck || (worker->is_stubborn && signal != WHOLE_KILL);
        if (!worker->is_alive && !worker->has_orphan) {
            continue;
        }
        if (worker->is_alive) {
            count_signal(cluster, node, worker, signal);
        }
        if (!is_deaf) {
            struct whole_happening *end =
                whole_schedule(cluster, cluster->now + death_length(cluster), NULL, session_ends);
            end->subject = node;
            end->rank = rank;
            end->life = node->group_life;
            end->number = signal;
        }
    }
    tell_if_all_gone(cluster, node);
}

void whole_kill_sessions(struct whole_cluster *cluster, struct whole_node *node) {
    whole_kill_spares(cluster, node);
    for (int rank = 0; rank < node->worker_count; rank++) {
        const struct whole_worker *worker = &node->workers[rank];
        if (!worker->is_stuck && (worker->is_alive || worker->has_orphan)) {
            struct whole_happening *end = whole_schedule(cluster,
                cluster->now + whole_between(cluster, 1, WHOLE_KILL_LONGEST), NULL, session_ends);
            end->subject = node;
            end->rank = rank;
            end->life = node->group_life;
            end->number = WHOLE_KILL;
        }
    }
}

static void look_is_over(struct whole_cluster *cluster, struct whole_happening *happening) {
    whole_tell_agent(cluster, happening->node, (struct agent_event){.kind = AGENT_EVENT_LOOK_OVER});
}

void whole_look_at_workers(struct whole_cluster *cluster, struct whole_node *node) {
    whole_schedule(
        cluster, cluster->now + whole_between(cluster, 1, WHOLE_SECOND), node, look_is_over);
}
