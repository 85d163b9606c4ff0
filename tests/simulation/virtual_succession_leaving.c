/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that is told to end, and hands its store over. */
#include "virtual_succession_parts.h"

void simulation_tell(
    struct simulation *simulation, int host, int node, enum succession_event_kind told) {
    const struct sim_node *other = &simulation->nodes[node];
    bool is_named = told == SUCCESSION_EVENT_NAMED;
    if (other->host == host && other->is_alive && !simulation_is_cut(simulation, node, host)) {
        struct sim_event *event = simulation_add(simulation, SIM_TOLD, node,
            simulation_later(simulation, simulation_between(simulation, 0.0002, 0.005)));
        event->told = told;
        event->ticket = other->connection;
    } else if (is_named && other->host != host) {
        simulation_add(simulation, SIM_GONE, host, simulation->now)->host = node;
    }
}

void simulation_dismiss(struct simulation *simulation, int host, bool has_successor) {
    simulation->nodes[host].host = SIM_NOBODY;
    simulation->nodes[host].connection++;
    for (int i = 0; i < simulation->node_count && has_successor; i++) {
        if (i != host && simulation->nodes[i].host == host) {
            simulation_tell(simulation, host, i, SUCCESSION_EVENT_MOVED);
        }
    }
    (void)simulation_add(
        simulation, SIM_END, host, simulation_later(simulation, has_successor ? 0.25 : 0));
}

/* It leaves the round as any node does, and its store last. */
void simulation_leave(struct simulation *simulation, int node) {
    struct sim_node *self = &simulation->nodes[node];
    struct rendezvous_state others = {0};
    if (!self->is_alive || self->is_leaving) {
        return;
    }
    if (!self->is_hosting || self->host != node || self->is_stopped) {
        simulation_kill(simulation, node);
        return;
    }
    self->is_leaving = true;
    self->is_running = false;
    self->members &= ~(UINT64_C(1) << node);
    simulation_regroup_soon(simulation, node, simulation_between(simulation, 0.001, 0.1));
    rendezvous_state_copy(&self->record, &others);
    simulation_step(simulation, node,
        (struct succession_event){.kind = SUCCESSION_EVENT_LEAVE, .record = &others});
    rendezvous_state_clear(&others);
}

void simulation_take_told(struct simulation *simulation, const struct sim_event *event) {
    const struct sim_node *self = &simulation->nodes[event->node];
    if (event->ticket == self->connection && self->host != SIM_NOBODY && !self->is_losing) {
        simulation_step(simulation, event->node, (struct succession_event){.kind = event->told});
    }
}

void simulation_take_gone(struct simulation *simulation, const struct sim_event *event) {
    if (simulation->nodes[event->node].is_hosting) {
        simulation_step(simulation, event->node,
            (struct succession_event){.kind = SUCCESSION_EVENT_NODE_GONE,
                .gone = simulation->nodes[event->host].identity});
    }
}
