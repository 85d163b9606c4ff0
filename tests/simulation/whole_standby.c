/* SPDX-License-Identifier: BSD-3-Clause */
/* Standby workers, as agent/standby performs them: made-up processes that get ready, are dirty,
 * end, are killed, or hang, while they warm, while they wait, and at the gate. And the rules for
 * them: a rank has one process at most that warms or waits, only after a worker of that rank has
 * said hello, and one at a time warms; each rank is started once in an attempt, from standby or
 * cold; who has gone through the gate is that attempt's worker; and none is left when the node
 * ends. */
#include "whole_parts.h"

#define WARMING_SHORTEST (50 * WHOLE_MILLISECOND)
#define WARMING_LONGEST (6 * WHOLE_SECOND)
#define WAITING_LONGEST (60 * WHOLE_SECOND)
#define IMPORTS_LONGEST_SECONDS 4
#define SPARE_BYTES (UINT64_C(300) << 20)
#define MEMORY_PLENTY (UINT64_C(64) << 30)
#define MEMORY_SCARCE (UINT64_C(1) << 30)
/* A standby worker that does not answer at the gate is given up after this. */
#define PASSAGE WHOLE_SECOND

enum fate {
    GETS_READY,
    IS_DIRTY,
    IS_UNSUITED,
    ENDS,
    IS_KILLED,
};

static bool are_wanted(const struct whole_node *node) {
    return node->machine != NULL && node_machine_standby(node->machine) != NULL;
}

static void post(
    struct whole_cluster *cluster, struct whole_node *node, struct standby_event event) {
    whole_node_post(cluster, node, &(struct node_event){.part = NODE_STANDBY, .standby = event});
}

static void post_rank(struct whole_cluster *cluster, struct whole_node *node,
    enum standby_event_kind kind, int rank) {
    post(cluster, node, (struct standby_event){.kind = kind, .local_rank = rank});
}

static void forget(struct whole_node *node, int rank) {
    node->spares[rank] = (struct whole_spare){0};
}

/* What the agent hears, as soon as it runs. Of a spare that it has ended it hears nothing. */

static void spare_is_heard(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    int rank = happening->rank;
    struct whole_spare *spare = &node->spares[rank];
    if (spare->life != happening->life || spare->is_awaited) {
        return;
    }
    switch ((enum fate)happening->number) {
    case GETS_READY:
        spare->is_ready = true;
        post(cluster, node,
            (struct standby_event){
                .kind = STANDBY_EVENT_SPARE_READY, .ready = {rank, SPARE_BYTES, false}});
        break;
    case IS_DIRTY:
        post_rank(cluster, node, STANDBY_EVENT_SPARE_DIRTY, rank);
        break;
    case IS_UNSUITED:
        forget(node, rank);
        post(cluster, node,
            (struct standby_event){.kind = STANDBY_EVENT_SPARE_UNSUITED,
                .unsuited = {rank, whole_is_likely(cluster, 90)}});
        break;
    case ENDS:
    case IS_KILLED:
        forget(node, rank);
        post(cluster, node,
            (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED,
                .ended = {rank, {.is_signal = happening->number == IS_KILLED,
                                    .value = happening->number == IS_KILLED ? WHOLE_KILL : 1}}});
        break;
    }
}

static void tell(struct whole_cluster *cluster, struct whole_node *node, int rank, enum fate fate) {
    struct whole_happening *heard = whole_schedule(cluster, cluster->now, node, spare_is_heard);
    heard->rank = rank;
    heard->life = node->spares[rank].life;
    heard->number = fate;
}

/* The process of a spare, which runs on while its agent stands still. */

static void befall(struct whole_cluster *cluster, struct whole_node *node, int rank, enum fate fate,
    int64_t longest);

static void fate_comes(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    struct whole_spare *spare = &node->spares[happening->rank];
    enum fate fate = (enum fate)happening->number;
    if (!node->is_alive || spare->life != happening->life || spare->is_dead) {
        return;
    }
    spare->is_dead = fate == ENDS || fate == IS_KILLED || fate == IS_UNSUITED;
    tell(cluster, node, happening->rank, fate);
    if (fate == GETS_READY && whole_is_likely(cluster, 20)) {
        befall(cluster, node, happening->rank, whole_is_likely(cluster, 50) ? ENDS : IS_KILLED,
            WAITING_LONGEST);
    }
}

static void befall(struct whole_cluster *cluster, struct whole_node *node, int rank, enum fate fate,
    int64_t longest) {
    struct whole_happening *coming = whole_schedule(cluster,
        cluster->now + whole_between(cluster, WARMING_SHORTEST, longest), NULL, fate_comes);
    coming->subject = node;
    coming->rank = rank;
    coming->life = node->spares[rank].life;
    coming->number = fate;
}

void whole_kill_spares(struct whole_cluster *cluster, struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->spares[rank].life != 0 && !node->spares[rank].is_dead) {
            node->spares[rank].is_dead = true;
            tell(cluster, node, rank, IS_KILLED);
        }
    }
}

/* Effects. */

static void check_importing(
    struct whole_cluster *cluster, const struct whole_node *node, int rank) {
    for (int other = 0; other < node->worker_count; other++) {
        const struct whole_spare *spare = &node->spares[other];
        if (spare->life != 0 && !spare->is_ready && !spare->is_dead) {
            whole_complain(cluster, "%s warms a standby worker beside another one", node->name);
        }
    }
    if (!node->has_said_hello[rank]) {
        whole_complain(cluster, "%s warms a standby worker for rank %d, which never said hello",
            node->name, rank);
    }
    if (whole_phase(node) != AGENT_RUNNING) {
        whole_complain(cluster, "%s warms a standby worker while no workers run", node->name);
    }
}

static void import_something(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    int percent = (int)whole_between(cluster, 0, 99);
    if (percent < 75) {
        befall(cluster, node, rank, GETS_READY, WARMING_LONGEST);
    } else if (percent < 80) {
        befall(cluster, node, rank, IS_UNSUITED, WARMING_LONGEST);
    } else if (percent < 84) {
        befall(cluster, node, rank, IS_DIRTY, WARMING_LONGEST);
    } else if (percent < 88) {
        befall(cluster, node, rank, ENDS, WARMING_LONGEST);
    } else if (percent < 95) {
        befall(cluster, node, rank, IS_KILLED, WARMING_LONGEST);
    } /* else it hangs */
}

static void warm(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    check_importing(cluster, node, rank);
    if (node->spares[rank].life != 0 && !node->spares[rank].is_dead) {
        whole_complain(cluster, "%s warms a second standby worker for rank %d", node->name, rank);
    }
    whole_note(cluster, node, "standby worker %d warms", rank);
    node->spares[rank] = (struct whole_spare){.life = ++cluster->lives};
    import_something(cluster, node, rank);
}

/* Until it has learned it cannot be used. It may still end as one that waits does. */
static void teach(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    struct whole_spare *spare = &node->spares[rank];
    check_importing(cluster, node, rank);
    if (spare->life == 0 || spare->is_awaited) {
        whole_complain(cluster, "%s teaches a standby worker that it has not", node->name);
    }
    whole_note(cluster, node, "standby worker %d learns", rank);
    spare->is_ready = false;
    cluster->outcome.taught++;
    if (!spare->is_dead) {
        import_something(cluster, node, rank);
    }
}

static void look(struct whole_cluster *cluster, struct whole_node *node) {
    int64_t quiet = cluster->now - node->started_at -
                    (int64_t)(node->group_life % IMPORTS_LONGEST_SECONDS) * WHOLE_SECOND;
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->workers[rank].is_alive && node->group_life % 10 != 0) {
            node->has_said_hello[rank] = true;
            post_rank(cluster, node, STANDBY_EVENT_HELLO, rank);
        }
    }
    post(cluster, node,
        (struct standby_event){.kind = STANDBY_EVENT_RECORDS,
            .records = {.quiet = {quiet > 0 ? quiet : 0},
                .modules = (size_t)whole_between(cluster, 100, 200),
                .memory = whole_is_likely(cluster, 90) ? MEMORY_PLENTY : MEMORY_SCARCE}});
}

void whole_perform_standby(
    struct whole_cluster *cluster, struct whole_node *node, const struct standby_effect *effect) {
    switch ((int)effect->kind) {
    case STANDBY_EFFECT_WARM:
        warm(cluster, node, effect->local_rank);
        break;
    case STANDBY_EFFECT_TEACH:
        teach(cluster, node, effect->local_rank);
        break;
    case STANDBY_EFFECT_END_SPARE:
        forget(node, effect->local_rank);
        break;
    case STANDBY_EFFECT_END_ALL:
        for (int rank = 0; rank < node->worker_count; rank++) {
            if (!node->spares[rank].is_awaited) {
                forget(node, rank);
            }
        }
        break;
    case STANDBY_EFFECT_LOOK:
        look(cluster, node);
        break;
    case STANDBY_EFFECT_DISARM_TIMER:
        whole_call_off(cluster, &node->timers[NODE_STANDBY]);
        break;
    default:
        break;
    }
}

/* The gate. */

static void refuse(struct whole_cluster *cluster, struct whole_node *node, int rank) {
    forget(node, rank);
    post_rank(cluster, node, STANDBY_EVENT_SPARE_REFUSED, rank);
}

static void passage_is_late(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    if (node->group_life != happening->life || !node->spares[happening->rank].is_awaited) {
        return;
    }
    refuse(cluster, node, happening->rank);
    whole_start_cold(cluster, node, happening->rank);
}

enum whole_passage whole_pass_gate(
    struct whole_cluster *cluster, struct whole_node *node, int rank) {
    struct whole_spare *spare = &node->spares[rank];
    if (!are_wanted(node) || spare->life == 0 || !spare->is_ready) {
        return WHOLE_PASSAGE_NONE;
    }
    if (whole_is_likely(cluster, 10)) { /* it does not fit */
        refuse(cluster, node, rank);
        return WHOLE_PASSAGE_NONE;
    }
    if (spare->is_dead || whole_is_likely(cluster, 15)) { /* it does not answer */
        struct whole_happening *late =
            whole_schedule(cluster, cluster->now + PASSAGE, node, passage_is_late);
        late->rank = rank;
        late->life = node->group_life;
        spare->is_awaited = true;
        return WHOLE_PASSAGE_AWAITED;
    }
    forget(node, rank);
    post_rank(cluster, node, STANDBY_EVENT_SPARE_GIVEN, rank);
    cluster->outcome.given++;
    return WHOLE_PASSAGE_THROUGH;
}

void whole_give_up_passages(struct whole_cluster *cluster, struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->spares[rank].is_awaited) {
            refuse(cluster, node, rank);
        }
    }
}

/* The rules. */

void whole_check_standby(struct whole_cluster *cluster, const struct whole_node *node) {
    if (!are_wanted(node) || node->is_stopped || whole_phase(node) != AGENT_RUNNING) {
        return;
    }
    const struct standby_plan *plan = node_machine_standby(node->machine);
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (standby_plan_state(plan, rank) == STANDBY_GIVEN &&
            !node->workers[rank].is_from_standby) {
            whole_complain(cluster, "%s takes worker %d for one from standby", node->name, rank);
        }
    }
}

void whole_check_no_spare(struct whole_cluster *cluster, const struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->spares[rank].life != 0) {
            whole_complain(cluster, "%s ends, and leaves a standby worker behind", node->name);
        }
    }
}
