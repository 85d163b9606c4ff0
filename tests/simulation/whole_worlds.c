/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers are told of their world: everybody the same, and nobody what another is told. */
#include "whole_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct whole_world *add_world(struct whole_cluster *cluster, int64_t number) {
    cluster->worlds = memory_reserve(cluster->worlds, &cluster->world_capacity,
        cluster->world_count + 1, sizeof *cluster->worlds);
    cluster->worlds[cluster->world_count] = (struct whole_world){.number = number};
    return &cluster->worlds[cluster->world_count++];
}

struct whole_world *whole_world_of(struct whole_cluster *cluster, int64_t number) {
    for (size_t i = cluster->world_count; i > 0; i--) {
        if (cluster->worlds[i - 1].number == number) {
            return &cluster->worlds[i - 1];
        }
    }
    return add_world(cluster, number);
}

/* The numbers from which rounds are counted are multiples of 1000, and no job here has so many
 * rounds. */
bool whole_is_over(const struct rendezvous_state *record, int64_t round) {
    return rendezvous_state_ordinal(record) > round % 1000;
}

static int64_t number_of(const struct whole_cluster *cluster, const struct node_placement *told) {
    return cluster->settings.kind == MEMBERSHIP_CHANGING ? told->round : told->attempt;
}

static void open_world(
    struct whole_cluster *cluster, struct whole_world *world, const struct node_placement *told) {
    world->is_told = true;
    world->size = told->group_world_size;
    world->restarts = told->attempt;
    world->world_size = told->ranks.world_size;
    world->master_port = told->master_port;
    world->first_start_at = cluster->now;
    snprintf(world->master_address, sizeof world->master_address, "%s", told->master_address);
    world->seats = memory_allocate((size_t)world->size * sizeof *world->seats);
    cluster->outcome.worlds++;
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    bool is_changing = cluster->settings.kind == MEMBERSHIP_CHANGING;
    if (is_changing &&
        (world->size < settings->minimum_nodes || world->size > settings->maximum_nodes)) {
        whole_complain(cluster, "a world has %d nodes", world->size);
    }
}

/* torchrun's nodes take out of a round whom they believe dead, as Muster's do where losses are not
 * heeded: who comes late may be told of fewer nodes, but not of fewer workers. */
static void compare(struct whole_cluster *cluster, const struct whole_world *world,
    const struct whole_node *node, const struct node_placement *told) {
    const struct whole_settings *settings = &cluster->settings;
    bool may_shrink = settings->torch_nodes > 0 ||
                      settings->rendezvous.on_node_loss == RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    bool is_restart = world->restarts == told->attempt || settings->torch_nodes > 0;
    bool is_size = world->size == told->group_world_size || may_shrink;
    if (!is_size || world->world_size != told->ranks.world_size || !is_restart ||
        world->master_port != told->master_port ||
        strcmp(world->master_address, told->master_address) != 0) {
        whole_complain(cluster,
            "%s is told of %d nodes, %d workers, restart %d at %s:%d, others of %d, %d, %d, %s:%d",
            node->name, told->group_world_size, told->ranks.world_size, told->attempt,
            told->master_address, told->master_port, world->size, world->world_size,
            world->restarts, world->master_address, world->master_port);
    }
}

static void take_seat(struct whole_cluster *cluster, struct whole_world *world,
    struct whole_node *node, const struct node_placement *told) {
    int first = told->ranks.base_rank;
    if (told->group_world_size > world->size) {
        world->seats =
            memory_reallocate(world->seats, (size_t)told->group_world_size * sizeof *world->seats);
        for (; world->size < told->group_world_size; world->size++) {
            world->seats[world->size] = (struct whole_seat){0};
        }
    }
    if (told->group_rank < 0 || told->group_rank >= world->size ||
        world->seats[told->group_rank].node != NULL) {
        whole_complain(cluster, "%s has rank %d of %d, which is taken", node->name,
            told->group_rank, world->size);
        return;
    }
    if (first < 0 || first + node->worker_count > world->world_size) {
        whole_complain(
            cluster, "%s has workers from %d on, of %d", node->name, first, world->world_size);
    }
    for (int rank = 0; rank < world->size; rank++) {
        const struct whole_seat *seat = &world->seats[rank];
        bool is_below = rank < told->group_rank;
        bool is_apart = is_below ? seat->base_rank + seat->worker_count <= first
                                 : first + node->worker_count <= seat->base_rank;
        if (seat->node != NULL && !is_apart) {
            whole_complain(
                cluster, "%s and %s have workers of one rank", node->name, seat->node->name);
        }
    }
    world->seats[told->group_rank] = (struct whole_seat){node, first, node->worker_count};
}

int whole_open_port(
    struct whole_cluster *cluster, const struct whole_node *owner, int old_port, int64_t round) {
    if (old_port != 0) {
        cluster->ports[old_port - WHOLE_FIRST_PORT].last_round = round;
        return old_port;
    }
    cluster->ports = memory_reserve(
        cluster->ports, &cluster->port_capacity, cluster->port_count + 1, sizeof *cluster->ports);
    cluster->ports[cluster->port_count] = (struct whole_port){owner, round, round};
    return WHOLE_FIRST_PORT + (int)cluster->port_count++;
}

/* The workers' store was opened or wiped for this round, by who is said to have it. */
static void check_address(struct whole_cluster *cluster, const struct whole_node *node,
    const struct node_placement *told) {
    size_t index = (size_t)told->master_port - WHOLE_FIRST_PORT;
    if (told->master_port < WHOLE_FIRST_PORT || index >= cluster->port_count) {
        whole_complain(cluster, "%s is told of a store that nobody has", node->name);
        return;
    }
    const struct whole_port *port = &cluster->ports[index];
    bool is_of_round = port->first_round <= told->round && told->round <= port->last_round;
    if (strcmp(port->owner->name, told->master_address) != 0 ||
        (!is_of_round && !port->owner->is_torch)) {
        whole_complain(cluster, "%s is told of a store of %s for round %d", node->name,
            port->owner->name, (int)port->last_round);
    }
}

static void check_order(struct whole_cluster *cluster, const struct whole_node *node,
    const struct whole_world *world, int64_t number) {
    if (node->world == number) {
        whole_complain(cluster, "%s is told of world %d twice", node->name, (int)number);
    }
    if (node->workers_gone_at > world->first_start_at && !cluster->settings.is_uniform) {
        whole_complain(cluster, "workers of world %d ran beside those that %s had before",
            (int)number, node->name);
    }
    if (world->started > world->world_size) {
        whole_complain(cluster, "more workers than there are run in world %d", (int)number);
    }
}

void whole_check_start(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_placement *told) {
    if (cluster->settings.kind == MEMBERSHIP_ALONE) {
        return;
    }
    int64_t number = number_of(cluster, told);
    struct whole_world *world = whole_world_of(cluster, number);
    if (world->is_told && world->first_start_at < cluster->store.begun_at) {
        world = add_world(cluster, number); /* of another job, whose nodes know of no earlier one */
    }
    if (!world->is_told) {
        open_world(cluster, world, told);
        if (cluster->settings.demands.no_smaller_world && cluster->newest_world >= 0 &&
            world->size < whole_world_of(cluster, cluster->newest_world)->size) {
            whole_complain(cluster, "world %d is smaller than the one before", (int)number);
        }
        cluster->newest_world = number;
    }
    compare(cluster, world, node, told);
    check_order(cluster, node, world, number);
    take_seat(cluster, world, node, told);
    if (cluster->settings.kind == MEMBERSHIP_CHANGING) {
        check_address(cluster, node, told);
    }
    node->world = number;
}

/* A process that goes leaves nothing behind but what nobody can end. */
void whole_check_gone(struct whole_cluster *cluster, struct whole_node *node) {
    bool is_by_itself = !node->ending.was_killed && node->is_finished && !node->is_torch;
    if (is_by_itself && !node->outcome.has_abandoned_processes && whole_has_processes(node)) {
        whole_complain(cluster, "%s ends, and its workers run", node->name);
    }
}

/* Whether all that live are in one world, as many as may be, and the others are parked. */
static bool is_in_world(const struct whole_node *node, int64_t round) {
    bool is_running =
        node->is_torch ? whole_torch_is_running(node) : whole_phase(node) == AGENT_RUNNING;
    return is_running && node->world == round && !node->is_stopped;
}

bool whole_is_gathered(struct whole_cluster *cluster) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    const struct rendezvous_state *state = &cluster->store.record;
    size_t live = 0;
    size_t participants = 0;
    if (!cluster->store.has_record || !state->is_complete) {
        return false;
    }
    for (int i = 0; i < cluster->node_count; i++) {
        const struct whole_node *node = cluster->nodes[i];
        const struct rendezvous_node *entry =
            whole_is_live(node) ? rendezvous_state_find(state, &node->identity) : NULL;
        if (!whole_is_live(node)) {
            continue;
        }
        live++;
        if (entry == NULL || (entry->is_participant && !is_in_world(node, state->round))) {
            return false;
        }
        participants += entry->is_participant ? 1 : 0;
    }
    if (participants != rendezvous_state_participants(state)) {
        return false; /* somebody is in it who is not there */
    }
    size_t maximum = (size_t)settings->maximum_nodes;
    size_t fitting = live < maximum ? live : maximum;
    return settings->scale_up == RENDEZVOUS_SCALE_UP_NEVER ? participants > 0
                                                           : participants == fitting;
}
