/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "virtual_succession_parts.h"
#include "record_tools.h"

#define JOIN_SECONDS 1000000.0
/* More than these come of nodes that answer each other for ever. */
#define EVENTS_OF_AN_INSTANT_MAXIMUM 1000

/* Workers. */

static uint64_t world_of(const struct rendezvous_state *record) {
    uint64_t world = 0;
    for (size_t i = 0; i < record->count; i++) {
        world |= UINT64_C(1) << (record->nodes[i].identity.address[1] - '0');
    }
    return world;
}

static bool is_in(const struct sim_node *node, const struct rendezvous_state *record) {
    return record_has_participant(record, &node->identity);
}

bool simulation_is_over(const struct simulation *simulation) {
    const struct virtual_entry *last = virtual_register_last(&simulation->reg);
    return last != NULL && last->record.is_closed;
}

static void start_workers(
    struct simulation *simulation, int node, const struct rendezvous_state *record) {
    struct sim_node *self = &simulation->nodes[node];
    uint64_t world = world_of(record);
    if (!virtual_register_has_world(&simulation->reg, record)) {
        simulation_complain(simulation, "node %d starts workers in round %lld, which is no entry",
            node, (long long)record->round);
    }
    if (self->knows_end) {
        simulation_complain(simulation, "node %d has finished, and is run again", node);
    }
    for (int i = 0; i < simulation->node_count; i++) {
        const struct sim_node *other = &simulation->nodes[i];
        if (other->is_running && other->round == record->round && other->world != world) {
            simulation_complain(simulation, "two worlds in round %lld: of node %d and of node %d",
                (long long)record->round, i, node);
        }
    }
    if (self->is_running && self->round > record->round) {
        simulation_complain(simulation, "node %d goes back from round %lld to %lld", node,
            (long long)self->round, (long long)record->round);
    }
    self->is_running = true;
    self->round = record->round;
    self->world = world;
    self->started_at = simulation->now;
    simulation->starts++;
}

static void see(struct simulation *simulation, int node) {
    struct sim_node *self = &simulation->nodes[node];
    struct sim_node *host = &simulation->nodes[self->host];
    struct rendezvous_state record = {0};
    if (!host->is_hosting || host->is_stopped || self->is_losing ||
        (self->host != node && simulation_is_cut(simulation, node, self->host))) {
        return;
    }
    self->heard_at = simulation->now;
    if (self->knows_end && !host->record.is_closed) { /* it writes again what was lost */
        host->record.is_closed = true;
        simulation_show(simulation, self->host);
    }
    rendezvous_state_copy(&host->record, &record);
    self->knows_end = record.is_closed;
    self->is_running = self->is_running && self->round >= record.round; /* its round is over */
    bool is_new = record.is_complete && host->is_committed && is_in(self, &record) &&
                  !record.is_closed && !(self->is_running && self->round == record.round);
    simulation_step(simulation, node,
        (struct succession_event){.kind = SUCCESSION_EVENT_SEEN, .record = &record});
    if (is_new && self->is_alive) {
        start_workers(simulation, node, &record);
    }
    rendezvous_state_clear(&record);
}

/* The store: a new round of those who are connected. */

static void regroup(struct simulation *simulation, int host) {
    struct sim_node *self = &simulation->nodes[host];
    struct rendezvous_state *record = &self->record;
    int count = 0;
    self->is_regrouping = false;
    for (int i = 0; i < simulation->node_count; i++) {
        count += (int)(self->members >> i & 1);
    }
    bool is_same = record->is_complete && world_of(record) == self->members;
    for (int i = 0; i < simulation->node_count && is_same; i++) {
        is_same = (self->members >> i & 1) == 0 || is_in(&simulation->nodes[i], record);
    }
    bool is_ready = self->silent == 0 && count >= simulation->minimum;
    if (!self->is_hosting || record->is_closed || is_same || !is_ready) {
        return;
    }
    record->round += record->is_complete ? 1 : 0;
    record->restarts += record->is_complete ? 1 : 0;
    record->count = 0;
    for (int i = 0; i < simulation->node_count; i++) {
        if ((self->members >> i & 1) != 0) {
            rendezvous_state_obtain(record, &simulation->nodes[i].identity)->is_participant = true;
        }
    }
    rendezvous_state_complete(record);
    self->is_committed = false;
    simulation_show(simulation, host);
}

/* Events. */

static void take_answer(struct simulation *simulation, const struct sim_event *event) {
    struct sim_node *self = &simulation->nodes[event->node];
    const struct virtual_register *reg = &simulation->reg;
    bool is_old = event->ticket != UINT64_MAX &&
                  event->ticket != (event->host != 0 ? self->look_ticket : self->register_ticket);
    if (is_old) {
        return;
    }
    struct succession_event told = {.kind = event->told};
    char renewal[64];
    (void)snprintf(renewal, sizeof renewal, "%lld", (long long)event->renewals);
    if (event->told == SUCCESSION_EVENT_READ || event->told == SUCCESSION_EVENT_LOST) {
        const struct virtual_entry *entry =
            event->count == 0 ? NULL : &reg->entries[event->count - 1];
        told.is_there = entry != NULL;
        if (entry != NULL) {
            told.entry = entry->entry;
            told.record = &entry->record;
            bool is_later = entry->entry.number > self->entry.number; /* an answer may be stale */
            self->entry = is_later ? entry->entry : self->entry;
        }
    } else if (event->told == SUCCESSION_EVENT_RENEWAL) {
        told.renewal = event->host == SIM_LOOKED_IN_VAIN ? NULL : renewal;
    } else if (event->told == SUCCESSION_EVENT_FAILED) {
        told.failed.reason = "the register does not answer";
    }
    if (event->host == 0 && event->told != SUCCESSION_EVENT_FAILED &&
        event->told != SUCCESSION_EVENT_UNKNOWN) {
        self->heard_at = simulation->now;
    }
    simulation_step(simulation, event->node, told);
}

static void take_news(struct simulation *simulation, const struct sim_event *event) {
    struct sim_node *self = &simulation->nodes[event->node];
    const struct virtual_entry *entry = &simulation->reg.entries[event->count - 1];
    if (entry->entry.number > self->entry.number) {
        self->entry = entry->entry;
    }
    simulation->news++;
    simulation_step(simulation, event->node,
        (struct succession_event){.kind = SUCCESSION_EVENT_NEWS,
            .is_there = true,
            .entry = entry->entry,
            .record = &entry->record});
}

static void take_dialled(struct simulation *simulation, const struct sim_event *event) {
    struct sim_node *self = &simulation->nodes[event->node];
    const struct sim_node *host = &simulation->nodes[event->host];
    struct succession_event told = {.kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = event->loss};
    if (event->ticket != self->dial_ticket) {
        return;
    }
    bool is_heard = event->host == event->node ||
                    (!simulation_is_cut(simulation, event->node, event->host) && !host->is_off);
    if (event->loss == SUCCESSION_LOSS_SILENT || !is_heard) {
        told.loss = SUCCESSION_LOSS_SILENT;
    } else if (!host->is_alive) {
        told.loss = SUCCESSION_LOSS_REFUSED;
        simulation->dials_in_vain++;
    } else if (host->is_hosting && !host->is_stopped) {
        told = (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTED};
        self->host = event->host;
        self->heard_at = simulation->now;
    }
    simulation_step(simulation, event->node, told);
}

static void take_lost(struct simulation *simulation, const struct sim_event *event) {
    struct sim_node *self = &simulation->nodes[event->node];
    if (event->ticket != self->connection || self->host == SIM_NOBODY) {
        return;
    }
    simulation_leave_store(simulation, event->node);
    simulation_step(simulation, event->node,
        (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = event->loss});
}

/* Unless it has come back. */
static void take_silent(struct simulation *simulation, const struct sim_event *event) {
    struct sim_node *self = &simulation->nodes[event->node];
    uint64_t bit = UINT64_C(1) << event->host;
    if (self->is_hosting && (self->silent & bit) != 0) {
        self->silent &= ~bit;
        self->members &= ~bit;
        simulation_regroup_soon(
            simulation, event->node, simulation_between(simulation, 0.001, 0.1));
        simulation_step(simulation, event->node,
            (struct succession_event){.kind = SUCCESSION_EVENT_NODE_SILENT,
                .silent = simulation->nodes[event->host].identity});
    }
}

static void take(struct simulation *simulation, struct sim_event *event) {
    struct sim_node *self = &simulation->nodes[event->node];
    switch (event->kind) {
    case SIM_TIMER:
        if (event->ticket == self->timer_ticket) {
            simulation_step(simulation, event->node,
                (struct succession_event){.kind = SUCCESSION_EVENT_TIMER_FIRED});
        }
        break;
    case SIM_ANSWER:
        take_answer(simulation, event);
        break;
    case SIM_DIALLED:
        take_dialled(simulation, event);
        break;
    case SIM_SEEK:
        simulation_step(simulation, event->node,
            (struct succession_event){.kind = SUCCESSION_EVENT_SEEK,
                .deadline = simulation_later(simulation, JOIN_SECONDS)});
        break;
    case SIM_SILENT:
        take_silent(simulation, event);
        break;
    case SIM_DOUBT:
        if (event->ticket == self->connection && self->host != SIM_NOBODY) {
            simulation_step(simulation, event->node,
                (struct succession_event){.kind = SUCCESSION_EVENT_DOUBTED, .is_doubted = true});
        }
        break;
    case SIM_LOST:
        take_lost(simulation, event);
        break;
    case SIM_SEE:
        if (event->ticket == self->connection && self->host != SIM_NOBODY) {
            see(simulation, event->node);
        }
        break;
    case SIM_REGROUP:
        regroup(simulation, event->node);
        break;
    case SIM_TOLD:
        simulation_take_told(simulation, event);
        break;
    case SIM_GONE:
        simulation_take_gone(simulation, event);
        break;
    case SIM_NEWS:
        take_news(simulation, event);
        break;
    case SIM_END:
        simulation_kill(simulation, event->node);
        break;
    case SIM_APPLY:
        break; /* below: it does not need its node */
    }
}

/* Time. */

static size_t first_event(const struct simulation *simulation) {
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < simulation->event_count; i++) {
        const struct sim_event *event = &simulation->events[i];
        const struct sim_event *best = first == SIZE_MAX ? NULL : &simulation->events[first];
        if (simulation->nodes[event->node].is_stopped && event->kind != SIM_APPLY) {
            continue; /* it waits until the process goes on */
        }
        if (best == NULL || instant_is_before(event->at, best->at) ||
            (event->at.nanoseconds == best->at.nanoseconds && event->order < best->order)) {
            first = i;
        }
    }
    return first;
}

static bool play_one(struct simulation *simulation, struct instant end) {
    size_t first = first_event(simulation);
    if (first == SIZE_MAX || instant_is_before(end, simulation->events[first].at)) {
        return false;
    }
    struct sim_event event = simulation->events[first];
    simulation->events[first] = simulation->events[--simulation->event_count];
    if (instant_is_before(simulation->now, event.at)) {
        simulation->now = event.at;
    }
    const struct sim_node *self = &simulation->nodes[event.node];
    if (event.kind == SIM_APPLY) {
        (void)virtual_register_append(&simulation->reg, &event.entry, simulation->now);
        rendezvous_state_clear(&event.entry.record);
        simulation_tell_news(simulation);
    } else if (self->is_alive && self->life == event.life) {
        take(simulation, &event);
    }
    simulation_check_fences(simulation);
    if (simulation->reg.complaint[0] != '\0') {
        simulation_complain(simulation, "%s", simulation->reg.complaint);
    }
    return simulation->complaint[0] == '\0';
}

void simulation_play(struct simulation *simulation, double seconds) {
    struct instant end = simulation_later(simulation, seconds);
    struct instant before = simulation->now;
    size_t count = 0;
    while (simulation->complaint[0] == '\0' && play_one(simulation, end)) {
        count = instant_is_before(before, simulation->now) ? 1 : count + 1;
        before = simulation->now;
        if (count > EVENTS_OF_AN_INSTANT_MAXIMUM) {
            simulation_complain(simulation, "time stands still: %zu events happen at once", count);
        }
    }
    simulation->now = end;
}

/* What happens to nodes. */

static void forget_process(struct sim_node *node) {
    succession_machine_free(node->machine);
    rendezvous_state_clear(&node->record);
    node->machine = NULL;
    node->is_alive = false;
    node->is_stopped = false;
    node->is_running = false;
    node->is_regrouping = false;
    node->is_leaving = false;
    node->life++;
}

static void end_process(struct simulation *simulation, int node, enum succession_loss loss) {
    struct sim_node *self = &simulation->nodes[node];
    if (self->is_alive) {
        simulation_leave_store(simulation, node);
        simulation_end_store(simulation, node, loss);
        forget_process(self);
    }
}

void simulation_start(struct simulation *simulation, int node) {
    struct sim_node *self = &simulation->nodes[node];
    char address[] = {'n', (char)('0' + node), '\0'};
    struct succession_settings settings = {
        .silence_timeout = duration_from_seconds(SIM_SILENCE_SECONDS),
        .fence_timeout = duration_from_seconds(SIM_FENCE_SECONDS),
    };
    end_process(simulation, node, SUCCESSION_LOSS_ENDED);
    self->life++;
    node_identity_init(&settings.identity, address, 1, 0);
    settings.identity.process = (struct node_process){(uint64_t)node + 1, (uint64_t)self->life};
    self->identity = settings.identity;
    self->machine = succession_machine_new(&settings);
    self->entry = (struct succession_entry){0};
    self->watched = -1;
    self->is_alive = true;
    self->is_off = false;
    self->knows_end = false;
    self->host = SIM_NOBODY;
    self->heard_at = simulation->now;
    (void)simulation_add(simulation, SIM_SEEK, node,
        simulation_later(simulation, simulation_between(simulation, 0, 0.3)));
}

void simulation_kill(struct simulation *simulation, int node) {
    end_process(simulation, node, SUCCESSION_LOSS_ENDED);
}

void simulation_power_off(struct simulation *simulation, int node) {
    simulation->nodes[node].is_off = true;
    end_process(simulation, node, SUCCESSION_LOSS_SILENT);
}

void simulation_stop(struct simulation *simulation, int node) {
    struct sim_node *self = &simulation->nodes[node];
    self->is_stopped = self->is_alive;
    for (int i = 0; i < simulation->node_count && self->is_hosting; i++) {
        if (simulation->nodes[i].host == node && i != node) {
            simulation_lose(simulation, i, SUCCESSION_LOSS_SILENT,
                SIM_SILENCE_SECONDS + simulation_between(simulation, 0, 1));
        }
    }
}

/* Its guardian has ended the workers of a process that stood still. It gives up its connection. */
void simulation_continue(struct simulation *simulation, int node) {
    struct sim_node *self = &simulation->nodes[node];
    self->is_stopped = false;
    self->is_running = false;
    self->heard_at = simulation->now;
    simulation_lose(simulation, node, SUCCESSION_LOSS_ENDED, 0.001);
}

void simulation_cut(struct simulation *simulation, int from, int to) {
    simulation->is_cut[from][to] = true;
    for (int turn = 0; turn < 2; turn++) {
        int node = turn == 0 ? from : to;
        int host = turn == 0 ? to : from;
        if (simulation->nodes[node].host == host && node != host) {
            simulation_lose(simulation, node, SUCCESSION_LOSS_SILENT,
                SIM_SILENCE_SECONDS + simulation_between(simulation, 0, 0.3));
        }
    }
}

void simulation_heal(struct simulation *simulation) {
    memset(simulation->is_cut, 0, sizeof simulation->is_cut);
    simulation->is_register_down = false;
    simulation->is_register_slow = false;
    for (int i = 0; i < simulation->node_count; i++) {
        simulation->nodes[i].is_cut_from_register = false;
        if (simulation->nodes[i].is_stopped) {
            simulation_continue(simulation, i);
        }
    }
}

int simulation_host(const struct simulation *simulation) {
    const struct virtual_entry *last = virtual_register_last(&simulation->reg);
    for (int i = 0; i < simulation->node_count && last != NULL; i++) {
        const struct sim_node *node = &simulation->nodes[i];
        if (node->is_alive && node->is_hosting && node->term == last->entry.term) {
            return i;
        }
    }
    return SIM_NOBODY;
}

void simulation_close_job(struct simulation *simulation) {
    int host = simulation_host(simulation);
    if (host != SIM_NOBODY) {
        simulation->nodes[host].record.is_closed = true;
        simulation_show(simulation, host);
    }
}

bool simulation_runs(const struct simulation *simulation, uint64_t nodes) {
    const struct virtual_entry *last = virtual_register_last_world(&simulation->reg);
    bool runs = last != NULL && world_of(&last->record) == nodes;
    for (int i = 0; i < simulation->node_count && runs; i++) {
        const struct sim_node *node = &simulation->nodes[i];
        runs = (nodes >> i & 1) == 0 ||
               (node->is_running && node->round == last->record.round && node->world == nodes);
    }
    return runs;
}

bool simulation_is_settled(const struct simulation *simulation) {
    uint64_t alive = 0;
    int count = 0;
    for (int i = 0; i < simulation->node_count; i++) {
        alive |= (uint64_t)simulation->nodes[i].is_alive << i;
        count += simulation->nodes[i].is_alive ? 1 : 0;
    }
    if (count < simulation->minimum || simulation_is_over(simulation)) {
        return true;
    }
    return simulation_runs(simulation, alive);
}

void simulation_init(struct simulation *simulation, uint64_t seed, int node_count) {
    *simulation = (struct simulation){
        .seed = seed, .node_count = node_count, .minimum = 1, .now = {1000000000}};
    random_init(&simulation->random, seed);
    simulation->has_watches = seed % 2 == 0;
    for (int i = 0; i < node_count; i++) {
        simulation->nodes[i].host = SIM_NOBODY;
        simulation_start(simulation, i);
    }
}

void simulation_clear(struct simulation *simulation) {
    for (int i = 0; i < simulation->node_count; i++) {
        forget_process(&simulation->nodes[i]);
    }
    for (size_t i = 0; i < simulation->event_count; i++) {
        rendezvous_state_clear(&simulation->events[i].entry.record);
    }
    free(simulation->events);
    virtual_register_clear(&simulation->reg);
}
