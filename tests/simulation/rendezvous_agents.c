/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents: what they ask their machines, and what they do when these tell them something. */
#include "rendezvous_parts.h"

#include "core/rendezvous_transcript.h"

#define TIMERS_A_SECOND_MAXIMUM 300
#define WALL_BASE INT64_C(1700000000)
#define EXCHANGE_SECONDS 40

static void note_step(struct cluster *cluster, const struct cluster_node *node,
    const struct rendezvous_event *event, const struct rendezvous_effects *effects) {
    struct text line = {0};
    rendezvous_event_describe(event, &line);
    for (size_t i = 0; i < effects->count; i++) {
        text_append(&line, i == 0 ? " -> " : "; ");
        rendezvous_effect_describe(&effects->items[i], &line);
    }
    cluster_note(cluster, node, "%s", text_string(&line));
    text_clear(&line);
}

/* Machines. */

bool cluster_is_live(const struct cluster_node *node) {
    return node->is_alive && node->phase != CLUSTER_OVER;
}

void cluster_set_phase(struct cluster_node *node, enum cluster_phase phase) {
    node->phase = phase;
    node->run_life++;
    node->behind_since = -1;
    node->over_since = -1;
}

struct wall_time cluster_wall(const struct cluster *cluster, const struct cluster_node *node) {
    return (struct wall_time){WALL_BASE * CLUSTER_SECOND + cluster->now + node->wall_offset};
}

static void timer_fires(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (node->timer_life != happening->life) {
        return;
    }
    if (cluster->now / CLUSTER_SECOND != node->timer_second) {
        node->timer_second = cluster->now / CLUSTER_SECOND;
        node->timers_fired = 0;
    }
    if (++node->timers_fired > TIMERS_A_SECOND_MAXIMUM) {
        cluster_complain(cluster, "%s does nothing but wake up", node->name);
    }
    cluster_tell(cluster, node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_TIMER_FIRED});
}

static void arm_timer(struct cluster *cluster, struct cluster_node *node, int64_t deadline) {
    if (deadline <= cluster->now) {
        cluster_complain(cluster, "%s arms a timer in the past", node->name);
    }
    int64_t late = cluster_between(cluster, 0, CLUSTER_MILLISECOND);
    cluster_schedule(cluster, deadline + late, CLUSTER_AT_NODE, node, timer_fires)->life =
        ++node->timer_life;
}

/* Agents. */

static void join_again(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (node->phase == CLUSTER_STOPPING && node->run_life == happening->life) {
        cluster_set_phase(node, CLUSTER_JOINING);
        cluster_tell(cluster, node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
    }
}

/* Workers stop mostly at once, sometimes not. */
static void stop_workers(struct cluster *cluster, struct cluster_node *node) {
    cluster_set_phase(node, CLUSTER_STOPPING);
    int64_t longest = cluster_is_likely(cluster, 10) ? 4 * CLUSTER_SECOND : CLUSTER_SECOND / 20;
    cluster_schedule(cluster, cluster->now + cluster_between(cluster, 1, longest), CLUSTER_AT_NODE,
        node, join_again)
        ->life = node->run_life;
}

static void worker_fails_too(struct cluster *cluster, struct cluster_happening *happening) {
    if (happening->node->phase == CLUSTER_RUNNING && happening->node->round == happening->number) {
        cluster_fail_worker(cluster, happening->node, happening->flag);
    }
}

/* A worker that is gone takes others with it, which were connected to it. */
static void spread_failure(
    struct cluster *cluster, const struct cluster_node *origin, int64_t longest, bool gives_up) {
    for (int i = 0; i < cluster->node_count; i++) {
        struct cluster_node *node = cluster->nodes[i];
        if (node != origin && node->phase == CLUSTER_RUNNING && node->round == origin->round &&
            cluster_is_likely(cluster, 30)) {
            struct cluster_happening *next =
                cluster_schedule(cluster, cluster->now + cluster_between(cluster, 1, longest),
                    CLUSTER_AT_NODE, node, worker_fails_too);
            next->number = origin->round;
            next->flag = gives_up;
        }
    }
}

/* Before all nodes of a world are told of it, there are no workers. */
void cluster_break_connections(struct cluster *cluster, const struct cluster_node *lost) {
    const struct cluster_world *world = cluster_world_of(cluster, lost->round);
    if (cluster->settings.losses_spread && lost->phase == CLUSTER_RUNNING &&
        world->told >= world->size) {
        spread_failure(cluster, lost,
            cluster_is_likely(cluster, 50) ? 5 * CLUSTER_MILLISECOND : 2 * CLUSTER_SECOND,
            cluster->settings.has_no_restarts);
    }
}

void cluster_fail_worker(struct cluster *cluster, struct cluster_node *node, bool gives_up) {
    if (node->phase != CLUSTER_RUNNING || node->is_stalled) {
        return;
    }
    spread_failure(cluster, node, 20 * CLUSTER_MILLISECOND, cluster->settings.has_no_restarts);
    if (node->is_torch) {
        cluster_torch_restart(cluster, node);
    } else if (gives_up) {
        cluster_set_phase(node, CLUSTER_DOUBTING);
        node->doubts_since = cluster->now;
        cluster_tell(cluster, node,
            (struct rendezvous_event){
                .kind = RENDEZVOUS_EVENT_FAILURE_ASKED, .reason = "too many failures"});
    } else {
        bool is_first = cluster->record->state.round == node->round;
        node->asked_at = is_first ? cluster->now : -1;
        stop_workers(cluster, node);
        cluster_tell(cluster, node,
            (struct rendezvous_event){
                .kind = RENDEZVOUS_EVENT_RESTART_ASKED, .reason = "a worker failed"});
    }
}

void cluster_leave(struct cluster *cluster, struct cluster_node *node) {
    if (node->is_torch) {
        cluster_end_node(cluster, node, false);
    } else if (node->phase < CLUSTER_CLOSING && !node->is_stalled) {
        cluster_set_phase(node, CLUSTER_LEAVING);
        cluster_tell(
            cluster, node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_LEAVE_ASKED});
    }
}

/* Workers can only be done when they have run: when all nodes of the world have told each other
 * what the workers must know. */
static void workers_are_done(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (node->phase != CLUSTER_RUNNING || node->run_life != happening->life) {
        return;
    }

    const struct cluster_world *world = cluster_world_of(cluster, node->round);
    if (world->told < world->size) {
        cluster_note(cluster, node, "told %d of %d", (int)world->told, (int)world->size);
        cluster_schedule_finish(cluster, node);
        return;
    }
    cluster_finish_node(cluster, node);
    if (!cluster->has_newcomer && cluster->settings.torch_nodes == 0) {
        cluster->has_newcomer = true;
        cluster_add_node(cluster, cluster->now + CLUSTER_SECOND / 5, false);
    }
}

void cluster_finish_node(struct cluster *cluster, struct cluster_node *node) {
    cluster_set_phase(node, CLUSTER_DONE);
    if (!node->is_torch) {
        cluster_tell(cluster, node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_DONE_ASKED});
    }
    cluster_enter_barrier(cluster, node);
}

/* Some node never came to exchange with the others: its agent would find out when it has waited
 * long enough, and torchrun's gives up then. */
static void exchange_times_out(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    const struct cluster_world *world = cluster_world_of(cluster, node->round);
    if (node->phase != CLUSTER_RUNNING || node->run_life != happening->life ||
        world->told >= world->size) {
        return;
    }
    if (node->is_torch) {
        cluster_end_node(cluster, node, false);
    } else {
        cluster_fail_worker(cluster, node, false);
    }
}

void cluster_schedule_finish(struct cluster *cluster, struct cluster_node *node) {
    int64_t longest = duration_from_seconds(cluster->settings.finish_seconds).nanoseconds;
    cluster_schedule(cluster, cluster->now + cluster_between(cluster, 1, longest), CLUSTER_AT_NODE,
        node, workers_are_done)
        ->life = node->run_life;
}

static void flapper_dies(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (!node->is_alive || !cluster->is_storm) {
        return;
    }
    cluster_end_node(cluster, node, false);
    struct cluster_node *next = cluster_add_node(
        cluster, cluster->now + cluster_between(cluster, 1, CLUSTER_SECOND), false);
    if (next != NULL) {
        next->is_flapping = true;
    }
}

void cluster_enter_world(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_state *state) {
    node->round = state->round;
    cluster_check_world(cluster, node, state);
    cluster_world_of(cluster, state->round)->told++;
    node->last_round = state->round;
    cluster->outcome.worlds_told++;
    cluster_set_phase(node, CLUSTER_RUNNING);
    if (node->is_flapping) {
        cluster_schedule(cluster, cluster->now + cluster_between(cluster, 1, CLUSTER_SECOND),
            CLUSTER_ANYWHERE, node, flapper_dies);
    }
    if (cluster->is_finishing) {
        cluster_schedule_finish(cluster, node);
    }
    cluster_schedule(cluster, cluster->now + EXCHANGE_SECONDS * CLUSTER_SECOND, CLUSTER_AT_NODE,
        node, exchange_times_out)
        ->life = node->run_life;
}

static void agent_ends(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_effect *effect) {
    if (effect->kind == RENDEZVOUS_EFFECT_SETTLED && node->phase != CLUSTER_CLOSING &&
        node->phase != CLUSTER_LEAVING) {
        cluster_complain(cluster, "%s is told that it has settled", node->name);
    }
    if (effect->kind == RENDEZVOUS_EFFECT_CLOSED) {
        cluster->outcome.ended_closed++;
        cluster->outcome.ended_as_spares += effect->told.is_spare ? 1 : 0;
        if (!cluster->is_job_over) {
            cluster_complain(cluster, "%s is told that the record is closed", node->name);
        }
    }
    if (effect->kind == RENDEZVOUS_EFFECT_FAILED) {
        cluster->outcome.ended_failed++;
        cluster_check_failure(cluster, node);
    }
    cluster_end_node(cluster, node, false);
}

static void tell_agent(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_effect *effect) {
    if (node->phase == CLUSTER_OVER) {
        cluster_complain(cluster, "%s is told more after its end", node->name);
    } else if (effect->kind == RENDEZVOUS_EFFECT_WORLD) {
        if (node->phase != CLUSTER_JOINING) {
            cluster_complain(cluster, "%s is told of a world unasked", node->name);
        }
        cluster_enter_world(cluster, node, effect->world.state);
    } else if (effect->kind == RENDEZVOUS_EFFECT_ROUND_OVER) {
        if (node->phase != CLUSTER_RUNNING && node->phase != CLUSTER_DONE &&
            node->phase != CLUSTER_DOUBTING) {
            cluster_complain(cluster, "%s is told that no round is over", node->name);
        }
        cluster_check_news(cluster, node);
        stop_workers(cluster, node);
    } else if (effect->kind == RENDEZVOUS_EFFECT_FAILURE_STANDS) {
        cluster_check_doubt(cluster, node);
        cluster->closes_asked++;
        cluster_set_phase(node, CLUSTER_CLOSING);
    } else {
        agent_ends(cluster, node, effect);
    }
}

static void perform(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_effect *effect) {
    if (effect->kind >= RENDEZVOUS_EFFECT_WORLD) {
        tell_agent(cluster, node, effect);
    } else if (effect->kind == RENDEZVOUS_EFFECT_ARM_TIMER) {
        arm_timer(cluster, node, effect->deadline.nanoseconds);
    } else if (effect->kind == RENDEZVOUS_EFFECT_CONNECT) {
        cluster_connect(cluster, node, effect->deadline.nanoseconds);
    } else {
        cluster_perform(cluster, node, effect);
    }
}

void cluster_tell(
    struct cluster *cluster, struct cluster_node *node, struct rendezvous_event event) {
    struct rendezvous_effects effects;
    event.now = (struct instant){cluster->now};
    event.wall_now = cluster_wall(cluster, node);
    rendezvous_machine_step(node->machine, &event, &effects);
    if (cluster->settings.is_printed) {
        note_step(cluster, node, &event, &effects);
    }
    for (size_t i = 0; i < effects.count && node->is_alive; i++) {
        perform(cluster, node, &effects.items[i]);
    }
}
