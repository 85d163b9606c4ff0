/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_succession_parts.h"
#include "record_tools.h"

static bool is_over(const struct simulation *simulation, struct instant since, double slack) {
    return duration_seconds(instant_until(since, simulation->now)) >
           SIM_FENCE_SECONDS + slack + 0.001;
}

/* Not of a node that stands still: the guardian ends its workers. */
static bool runs_alone(const struct sim_node *node) {
    return node->is_alive && node->is_running && !node->is_stopped && node->host == SIM_NOBODY;
}

static bool must_be_fenced(const struct simulation *simulation, const struct sim_node *node) {
    return runs_alone(node) && is_over(simulation, node->heard_at, 0);
}

/* The first one of the worlds since this node's that are without this node, if the last one is such
 * a world. */
static const struct virtual_entry *first_world_without(
    const struct simulation *simulation, const struct sim_node *node) {
    const struct virtual_register *reg = &simulation->reg;
    const struct virtual_entry *first = NULL;
    for (size_t i = reg->count; i > 0; i--) {
        const struct virtual_entry *entry = &reg->entries[i - 1];
        if (entry->record.round <= node->round || !entry->record.is_complete ||
            record_has_participant(&entry->record, &node->identity)) {
            break;
        }
        first = entry;
    }
    return first;
}

/* The others may start workers as soon as their world is committed: nobody waits until a node that
 * is cut off has ended its own. So those run beside the others for fence_timeout at most. Where the
 * host is with this node, and has lost nobody of its world but the register, the workers run on by
 * intent: nobody there can tell a register that is away from one that others still reach. Only
 * nodes outside of that world can have begun another. */
static bool overlaps(const struct simulation *simulation, const struct sim_node *node) {
    double slack = simulation->is_stale ? SIM_STALE_SECONDS : 0;
    const struct virtual_entry *other =
        runs_alone(node) ? first_world_without(simulation, node) : NULL;
    return other != NULL && is_over(simulation, other->at, slack) &&
           is_over(simulation, node->started_at, slack) &&
           is_over(simulation, node->left_at, slack);
}

void simulation_check_fences(struct simulation *simulation) {
    for (int i = 0; i < simulation->node_count; i++) {
        if (overlaps(simulation, &simulation->nodes[i])) {
            simulation_complain(
                simulation, "node %d runs on beside a world that has begun without it", i);
        }
        if (must_be_fenced(simulation, &simulation->nodes[i])) {
            simulation_complain(simulation,
                "node %d runs workers, and has heard neither of a host nor of the register for "
                "too long",
                i);
        }
    }
}
