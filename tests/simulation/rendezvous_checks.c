/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous_parts.h"

#include "base/memory.h"

/* A node that can hear may run in a world that is over no longer than it takes to find out: as
 * long as silence is borne, and some more. */
#define BEHIND_SECONDS 30
#define MENDING_SECONDS 5
#define DOUBT_SECONDS 60

struct cluster_world *cluster_world_of(struct cluster *cluster, int64_t round) {
    while (cluster->world_count <= (size_t)round) {
        cluster->worlds = memory_reserve(cluster->worlds, &cluster->world_capacity,
            cluster->world_count + 1, sizeof *cluster->worlds);
        cluster->worlds[cluster->world_count++] = (struct cluster_world){0};
    }
    return &cluster->worlds[round];
}

static void check_members(struct cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    for (size_t i = 0; i < after->count; i++) {
        const struct rendezvous_node *node = &after->nodes[i];
        const struct rendezvous_node *old = rendezvous_state_find(before, &node->identity);
        if (node->is_participant && (node->is_waiting || node->is_redundant)) {
            cluster_complain(cluster, "%s takes part and waits", node->identity.address);
        }
        if (before->is_complete && after->is_complete && before->round == after->round &&
            node->is_participant &&
            (old == NULL || !old->is_participant || old->rank != node->rank)) {
            cluster_complain(cluster, "%s came into a complete round", node->identity.address);
        }
    }
}

static void check_new_round(struct cluster *cluster, const struct rendezvous_state *after) {
    size_t count = rendezvous_state_participants(after);
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    if (count < (size_t)settings->minimum_nodes || count > (size_t)settings->maximum_nodes) {
        cluster_complain(
            cluster, "round %d is complete with %d nodes", (int)after->round, (int)count);
    }
    if (!rendezvous_state_is_whole(after)) {
        cluster_complain(cluster, "ranks of round %d have gaps", (int)after->round);
    }
}

static double seconds_since(const struct cluster *cluster, int64_t time) {
    return duration_seconds((struct duration){cluster->now - time});
}

static void keep_longest(double *longest, double seconds) {
    *longest = seconds > *longest ? seconds : *longest;
}

/* Who must now be told that its round is over, who wanted just that, and who is out that had ended.
 */
static void watch_promptness(struct cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    for (int i = 0; i < cluster->node_count; i++) {
        struct cluster_node *node = cluster->nodes[i];
        bool is_inside = node->phase == CLUSTER_RUNNING || node->phase == CLUSTER_DONE ||
                         node->phase == CLUSTER_DOUBTING;
        if (is_inside && !node->is_torch && node->over_since < 0 && after->round > node->round) {
            node->over_since = cluster->now;
        }
        if (node->asked_at >= 0 && after->round > node->round) {
            keep_longest(&cluster->outcome.longest_restart, seconds_since(cluster, node->asked_at));
            node->asked_at = -1;
        }
        if (node->ended_at >= 0 && !rendezvous_state_is_participant(after, &node->identity)) {
            if (rendezvous_state_is_participant(before, &node->identity)) {
                keep_longest(
                    &cluster->outcome.longest_loss, seconds_since(cluster, node->ended_at));
            }
            node->ended_at = -1;
        }
    }
    if (after->is_complete && cluster->outcome.first_world == 0) {
        cluster->outcome.first_world = seconds_since(cluster, 0);
    }
}

void cluster_check_news(struct cluster *cluster, const struct cluster_node *node) {
    if (node->over_since >= 0) {
        keep_longest(&cluster->outcome.longest_news, seconds_since(cluster, node->over_since));
    }
}

/* Only a storm makes nodes give up; what it left behind may need a moment to be mended. A node of
 * torchrun's that went into its exit barrier when the others left the round is lost to them. */
void cluster_check_failure(struct cluster *cluster, const struct cluster_node *node) {
    bool is_excused = cluster->is_finishing && cluster->settings.torch_nodes > 0;
    if (!is_excused && !cluster->is_storm && !cluster->is_job_over &&
        seconds_since(cluster, cluster->storm_over_at) > MENDING_SECONDS) {
        cluster_complain(cluster, "%s has failed in peace", node->name);
    }
}

/* Done is done: whoever comes now, and however silent a node of torchrun's is in the exit barrier.
 */
static void check_finishing(struct cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    bool is_torchrun_calm = cluster->settings.torch_nodes == 0 || cluster->settings.faults == 0;
    bool is_in_peace =
        cluster->finishing_at >= 0 && !cluster->settings.finishes_in_storm && is_torchrun_calm &&
        cluster->settings.rendezvous.on_node_loss != RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    if (is_in_peace && before->is_draining && after->round != before->round) {
        cluster_complain(cluster, "a round begins though the workers are done");
    }
}

void cluster_check_write(struct cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    watch_promptness(cluster, before, after);
    check_finishing(cluster, before, after);
    if (after->round < before->round) {
        cluster_complain(cluster, "the round goes back");
    }
    if (before->is_closed && !after->is_closed) {
        cluster_complain(cluster, "a closed record is open again");
    }
    if (!before->is_closed && after->is_closed) {
        cluster->is_job_over = true;
        cluster->job_over_at = cluster->now;
        if (cluster->closes_asked == 0) {
            cluster_complain(cluster, "somebody closed the record unasked");
        }
    }
    int least =
        before->is_charged && !after->is_charged && after->round == before->round + 1 ? -1 : 0;
    if (after->restarts < before->restarts + least || after->restarts > before->restarts + 1) {
        cluster_complain(
            cluster, "restarts go from %d to %d", (int)before->restarts, (int)after->restarts);
    }
    bool is_mixed = rendezvous_state_has_foreign_participant(before) ||
                    rendezvous_state_has_foreign_participant(after);
    if (after->restarts != before->restarts && after->round == before->round && !is_mixed) {
        cluster_complain(cluster, "a restart is charged without a new round");
    }
    check_members(cluster, before, after);
    if (after->is_complete && (!before->is_complete || after->round != before->round)) {
        check_new_round(cluster, after);
    }
}

/* Everybody who is told of a round is told the same. torchrun's nodes leave a round one by one, and
 * take out of it whom they believe dead, also as spares; and where losses are not heeded, nodes
 * vanish from it: who comes late may find
 * fewer, and finds out that the round is over. */
static void compare_worlds(struct cluster *cluster, const struct cluster_node *node,
    struct cluster_world *world, const struct rendezvous_state *state) {
    size_t size = rendezvous_state_participants(state);
    const struct rendezvous_state *larger = size > world->size ? state : &world->state;
    const struct rendezvous_state *smaller = size > world->size ? &world->state : state;
    if (size != world->size && !world->may_shrink) {
        cluster_complain(cluster, "%s is told of %d nodes in round %d, others of %d", node->name,
            (int)size, (int)state->round, (int)world->size);
    }
    for (size_t i = 0; i < smaller->count; i++) {
        const struct rendezvous_node *one = &smaller->nodes[i];
        const struct rendezvous_node *other = rendezvous_state_find(larger, &one->identity);
        if (one->is_participant &&
            (other == NULL || !other->is_participant || other->rank != one->rank)) {
            cluster_complain(cluster, "%s is told of another round %d than others", node->name,
                (int)state->round);
        }
    }
    if (size > world->size) {
        world->size = size;
        rendezvous_state_copy(state, &world->state);
    }
}

void cluster_check_world(struct cluster *cluster, const struct cluster_node *node,
    const struct rendezvous_state *state) {
    struct cluster_world *world = cluster_world_of(cluster, state->round);
    const struct rendezvous_node *self = rendezvous_state_find(state, &node->identity);
    if (self == NULL || !self->is_participant || !state->is_complete) {
        cluster_complain(cluster, "%s is told of a world without it", node->name);
        return;
    }
    if (state->round <= node->last_round && !node->is_torch) {
        cluster_complain(cluster, "%s is told of a round twice", node->name);
    }
    if (!node->is_torch && !rendezvous_state_is_whole(state)) {
        cluster_complain(cluster, "%s is told of ranks with gaps", node->name);
    }
    if (world->is_told) {
        compare_worlds(cluster, node, world, state);
        return;
    }
    world->is_told = true;
    world->may_shrink =
        rendezvous_state_has_foreign_node(state) ||
        cluster->settings.rendezvous.on_node_loss == RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    world->size = rendezvous_state_participants(state);
    rendezvous_state_copy(state, &world->state);
    if (state->round > cluster->newest_round) {
        cluster->newest_round = state->round;
    }
}

/* Nothing that a lost node has left behind ends a job. */
void cluster_check_doubt(struct cluster *cluster, const struct cluster_node *node) {
    if (node->phase != CLUSTER_DOUBTING) {
        cluster_complain(cluster, "%s is told that no failure stands", node->name);
    }
    if (cluster->settings.has_no_restarts) {
        cluster_complain(cluster, "a failure that a loss has caused stands");
    }
    keep_longest(&cluster->outcome.longest_doubt, seconds_since(cluster, node->doubts_since));
}

static void check_doubts_end(struct cluster *cluster, const struct cluster_node *node) {
    if (cluster_is_live(node) && node->phase == CLUSTER_DOUBTING && !node->is_stalled &&
        !node->is_link_down && seconds_since(cluster, node->doubts_since) > DOUBT_SECONDS) {
        cluster_complain(cluster, "%s doubts for ever", node->name);
    }
}

/* Once a second. While its host is stopped the store tells nobody anything. */
void cluster_check_progress(struct cluster *cluster) {
    bool is_mute = cluster->settings.has_presence && cluster->nodes[0]->is_stalled;
    for (int i = 0; i < cluster->node_count; i++) {
        struct cluster_node *node = cluster->nodes[i];
        bool is_behind = cluster_is_live(node) && node->phase == CLUSTER_RUNNING &&
                         !node->is_torch && !node->is_stalled && !is_mute &&
                         node->round < cluster->newest_round;
        if (!is_mute) {
            check_doubts_end(cluster, node);
        }
        if (!is_behind) {
            node->behind_since = -1;
        } else if (node->behind_since < 0) {
            node->behind_since = cluster->now;
        } else if (cluster->now - node->behind_since > BEHIND_SECONDS * CLUSTER_SECOND) {
            cluster_complain(cluster, "%s still runs in round %d, others in %d", node->name,
                (int)node->round, (int)cluster->newest_round);
        }
    }
}

/* Whether all that live are in one world, as many as may be, and the others are parked. */
bool cluster_is_gathered(struct cluster *cluster) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    if (cluster->record == NULL || !cluster->record->state.is_complete) {
        return false;
    }
    const struct rendezvous_state *state = &cluster->record->state;
    size_t live = 0;
    size_t participants = 0;
    for (int i = 0; i < cluster->node_count; i++) {
        const struct cluster_node *node = cluster->nodes[i];
        if (!cluster_is_live(node)) {
            continue;
        }
        const struct rendezvous_node *entry = rendezvous_state_find(state, &node->identity);
        live++;
        if (entry == NULL) {
            return false;
        }
        if (!entry->is_participant) {
            continue;
        }
        if (node->phase != CLUSTER_RUNNING || node->round != state->round) {
            return false;
        }
        participants++;
    }
    if (participants != rendezvous_state_participants(state)) {
        return false; /* somebody is in it who is not there */
    }
    size_t maximum = (size_t)settings->maximum_nodes;
    size_t fitting = live < maximum ? live : maximum;
    return settings->scale_up == RENDEZVOUS_SCALE_UP_NEVER ? participants > 0
                                                           : participants == fitting;
}
