/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_succession_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/succession/succession_transcript.h"

void simulation_complain(struct simulation *simulation, const char *format, ...) {
    va_list arguments;
    if (simulation->complaint[0] == '\0') {
        va_start(arguments, format);
        (void)vsnprintf(simulation->complaint, sizeof simulation->complaint, format, arguments);
        va_end(arguments);
    }
}

/* Chance and time. */

struct instant simulation_later(const struct simulation *simulation, double seconds) {
    return instant_after(simulation->now, duration_from_seconds(seconds));
}

double simulation_between(struct simulation *simulation, double low, double high) {
    return low + random_fraction(&simulation->random) * (high - low);
}

static bool chance(struct simulation *simulation, unsigned percent) {
    return random_below(&simulation->random, 100) < percent;
}

struct sim_event *simulation_add(
    struct simulation *simulation, enum sim_kind kind, int node, struct instant at) {
    simulation->events = memory_reserve(simulation->events, &simulation->event_capacity,
        simulation->event_count + 1, sizeof *simulation->events);
    struct sim_event *event = &simulation->events[simulation->event_count++];
    *event = (struct sim_event){.at = at,
        .order = simulation->order++,
        .kind = kind,
        .node = node,
        .life = simulation->nodes[node].life};
    return event;
}

/* The network. */

bool simulation_is_cut(const struct simulation *simulation, int one, int other) {
    return simulation->is_cut[one][other] || simulation->is_cut[other][one];
}

void simulation_lose(
    struct simulation *simulation, int node, enum succession_loss loss, double delay) {
    struct sim_node *self = &simulation->nodes[node];
    if (self->host != SIM_NOBODY && !self->is_losing) {
        self->is_losing = true;
        struct sim_event *event =
            simulation_add(simulation, SIM_LOST, node, simulation_later(simulation, delay));
        event->ticket = self->connection;
        event->loss = loss;
        if (loss == SUCCESSION_LOSS_SILENT) {
            simulation_add(simulation, SIM_DOUBT, node,
                simulation_later(simulation, simulation_between(simulation, 0.5, 1)))
                ->ticket = self->connection;
        }
    }
}

void simulation_regroup_soon(struct simulation *simulation, int host, double delay) {
    if (!simulation->nodes[host].is_regrouping) {
        simulation->nodes[host].is_regrouping = true;
        (void)simulation_add(simulation, SIM_REGROUP, host, simulation_later(simulation, delay));
    }
}

/* A round without a node that is silent begins when the store knows that it is. */
static void leave_members(struct simulation *simulation, int host, int node) {
    bool is_off = simulation->nodes[node].is_off;
    if (simulation->nodes[host].is_leaving) {
        simulation_add(simulation, SIM_GONE, host,
            simulation_later(simulation, simulation_between(simulation, 0.0002, 0.005)))
            ->host = node;
    }
    if (!is_off && !simulation_is_cut(simulation, node, host)) {
        simulation->nodes[host].members &= ~(UINT64_C(1) << node);
        simulation_regroup_soon(simulation, host, simulation_between(simulation, 0.001, 0.1));
        return;
    }
    /* A node that is cut off has found it out by now. */
    double delay = is_off ? SIM_SILENCE_SECONDS : simulation_between(simulation, 0, 1);
    simulation->nodes[host].silent |= UINT64_C(1) << node;
    simulation_add(simulation, SIM_SILENT, host, simulation_later(simulation, delay))->host = node;
}

/* The host's side learns of it when it can. */
void simulation_leave_store(struct simulation *simulation, int node) {
    struct sim_node *self = &simulation->nodes[node];
    if (self->host != SIM_NOBODY) {
        self->heard_at = simulation->now; /* until now it had no reason to doubt the host */
        self->left_at = simulation->now;
        struct sim_node *host = &simulation->nodes[self->host];
        if (host->is_hosting && (host->members >> node & 1) != 0) {
            leave_members(simulation, self->host, node);
        }
    }
    self->host = SIM_NOBODY;
    self->is_losing = false;
    self->connection++;
}

void simulation_end_store(struct simulation *simulation, int host, enum succession_loss loss) {
    struct sim_node *self = &simulation->nodes[host];
    self->is_hosting = false;
    self->members = 0;
    self->silent = 0;
    for (int i = 0; i < simulation->node_count; i++) {
        if (simulation->nodes[i].host == host && i != host) {
            bool is_silent =
                simulation_is_cut(simulation, i, host) || loss == SUCCESSION_LOSS_SILENT;
            simulation_lose(simulation, i, is_silent ? SUCCESSION_LOSS_SILENT : loss,
                is_silent ? SIM_SILENCE_SECONDS : simulation_between(simulation, 0.0002, 0.005));
        }
    }
}

/* The register. */

static bool reaches_register(const struct simulation *simulation, int node) {
    return !simulation->is_register_down && !simulation->nodes[node].is_cut_from_register;
}

static double register_delay(struct simulation *simulation) {
    return simulation->is_register_slow ? simulation_between(simulation, 0.1, 3)
                                        : simulation_between(simulation, 0.0003, 0.02);
}

static struct sim_event *answer(struct simulation *simulation, int node, uint64_t ticket,
    enum succession_event_kind told, double delay) {
    struct sim_event *event =
        simulation_add(simulation, SIM_ANSWER, node, simulation_later(simulation, delay));
    event->ticket = ticket;
    event->told = told;
    event->count = simulation->reg.count;
    event->renewals = simulation->reg.renewals;
    return event;
}

/* A cache holds what was there a moment ago, and is asked anew later. */
static bool may_be_left_out(const struct simulation *simulation, size_t entry_count) {
    const struct virtual_entry *last = &simulation->reg.entries[entry_count - 1];
    return duration_seconds(instant_until(last->at, simulation->now)) < SIM_STALE_SECONDS;
}

static void ask_read(struct simulation *simulation, int node) {
    uint64_t ticket = ++simulation->nodes[node].register_ticket;
    if (!reaches_register(simulation, node)) {
        (void)answer(simulation, node, ticket, SUCCESSION_EVENT_FAILED, 5);
        return;
    }
    struct sim_event *event =
        answer(simulation, node, ticket, SUCCESSION_EVENT_READ, register_delay(simulation));
    if (simulation->is_stale && chance(simulation, 30)) {
        size_t old = random_below(&simulation->random, 3);
        for (; old > 0 && event->count > 0 && may_be_left_out(simulation, event->count); old--) {
            event->count--;
        }
    }
}

/* A member without a quorum is silent for ever, and so is an engine that has no watches. */
static void watch(struct simulation *simulation, int node, int64_t number) {
    bool is_silent = simulation->is_treacherous && chance(simulation, 20);
    if (simulation->has_watches && !is_silent && reaches_register(simulation, node)) {
        simulation->nodes[node].watched = number;
        simulation_tell_news(simulation);
    }
}

void simulation_tell_news(struct simulation *simulation) {
    for (int i = 0; i < simulation->node_count; i++) {
        struct sim_node *self = &simulation->nodes[i];
        bool is_news = self->watched >= 0 && simulation->reg.count > (uint64_t)self->watched;
        if (is_news && self->is_alive && reaches_register(simulation, i)) {
            self->watched = -1;
            simulation_add(simulation, SIM_NEWS, i,
                simulation_later(simulation, simulation_between(simulation, 0.0003, 0.01)))
                ->count = simulation->reg.count;
        }
    }
}

static void apply_later(
    struct simulation *simulation, int node, const struct virtual_entry *entry, double delay) {
    struct sim_event *event =
        simulation_add(simulation, SIM_APPLY, node, simulation_later(simulation, delay));
    event->entry = *entry;
    event->entry.record = (struct rendezvous_state){0};
    rendezvous_state_copy(&entry->record, &event->entry.record);
}

static void append_unreachable(
    struct simulation *simulation, int node, uint64_t ticket, const struct virtual_entry *entry) {
    bool is_unknown = chance(simulation, 50);
    if (is_unknown && chance(simulation, 50)) {
        apply_later(simulation, node, entry, simulation_between(simulation, 0, 8));
    }
    (void)answer(simulation, node, ticket,
        is_unknown ? SUCCESSION_EVENT_UNKNOWN : SUCCESSION_EVENT_FAILED, 5);
}

static void ask_append(
    struct simulation *simulation, int node, const struct succession_effect *effect) {
    uint64_t ticket = ++simulation->nodes[node].register_ticket;
    struct virtual_entry entry = {
        .entry = {effect->append.number, effect->append.term, simulation->nodes[node].identity},
        .record = *effect->append.record, /* borrowed */
        .is_claim = effect->append.is_claim,
    };
    if (!reaches_register(simulation, node)) {
        append_unreachable(simulation, node, ticket, &entry);
        return;
    }
    if (simulation->is_treacherous && chance(simulation, 4)) {
        apply_later(simulation, node, &entry, simulation_between(simulation, 0, 3));
        (void)answer(simulation, node, ticket, SUCCESSION_EVENT_UNKNOWN, 0.5);
        return;
    }
    if (simulation->is_treacherous && chance(simulation, 2)) {
        simulation_kill(simulation, node); /* before it */
        return;
    }
    bool has_won = virtual_register_append(&simulation->reg, &entry, simulation->now);
    simulation->handovers += has_won && effect->append.is_named ? 1 : 0;
    simulation_tell_news(simulation);
    if (simulation->is_treacherous && chance(simulation, 2)) {
        simulation_kill(simulation, node); /* after it, before anybody is told */
        return;
    }
    bool is_lost = simulation->is_treacherous && chance(simulation, 5);
    (void)answer(simulation, node, ticket,
        is_lost   ? SUCCESSION_EVENT_UNKNOWN
        : has_won ? SUCCESSION_EVENT_WON
                  : SUCCESSION_EVENT_LOST,
        is_lost ? 1 : register_delay(simulation));
}

static void ask_renew(struct simulation *simulation, int node, int64_t term) {
    const struct virtual_entry *last = virtual_register_last(&simulation->reg);
    if (!reaches_register(simulation, node)) {
        return; /* of a renewal that fails nothing is told */
    }
    simulation->reg.renewals += last != NULL && last->entry.term == term ? 1 : 0;
    (void)answer(
        simulation, node, UINT64_MAX, SUCCESSION_EVENT_RENEWED, register_delay(simulation));
}

static void ask_look(struct simulation *simulation, int node, int64_t term) {
    const struct virtual_entry *last = virtual_register_last(&simulation->reg);
    uint64_t ticket = ++simulation->nodes[node].look_ticket;
    if (!reaches_register(simulation, node)) {
        answer(simulation, node, ticket, SUCCESSION_EVENT_RENEWAL, 5)->host = SIM_LOOKED_IN_VAIN;
        return;
    }
    struct sim_event *event =
        answer(simulation, node, ticket, SUCCESSION_EVENT_RENEWAL, register_delay(simulation));
    event->host = SIM_LOOKED;
    event->renewals = last != NULL && last->entry.term == term ? event->renewals : -1;
}

/* Dialling. */

static void dial(struct simulation *simulation, int node, const struct succession_effect *effect) {
    struct sim_node *self = &simulation->nodes[node];
    int host = node;
    simulation_leave_store(simulation, node);
    if (!effect->dial.is_self) {
        host = self->entry.host.address[1] - '0';
    }
    const struct sim_node *other = &simulation->nodes[host];
    bool is_silent = host != node && (simulation_is_cut(simulation, node, host) || other->is_off ||
                                         (other->is_alive && other->is_stopped));
    struct sim_event *event = simulation_add(simulation, SIM_DIALLED, node,
        is_silent ? effect->dial.deadline
                  : simulation_later(simulation, simulation_between(simulation, 0.0003, 0.01)));
    event->ticket = ++self->dial_ticket;
    event->host = host;
    event->loss = is_silent ? SUCCESSION_LOSS_SILENT : SUCCESSION_LOSS_OTHER;
}

/* Effects. */

static void begin_store(
    struct simulation *simulation, int node, const struct succession_effect *effect) {
    struct sim_node *self = &simulation->nodes[node];
    self->is_hosting = true;
    self->term = effect->host.term;
    self->members = 0;
    self->silent = 0;
    self->is_committed = effect->host.record->is_complete;
    rendezvous_state_copy(effect->host.record, &self->record);
    simulation->successions++;
    simulation_regroup_soon(simulation, node, simulation_between(simulation, 0.2, 0.5));
}

void simulation_show(struct simulation *simulation, int host) {
    for (int i = 0; i < simulation->node_count; i++) {
        bool is_leaving = i == host && simulation->nodes[host].is_leaving;
        if (is_leaving || (simulation->nodes[host].members >> i & 1) != 0) {
            struct sim_event *event = simulation_add(simulation, SIM_SEE, i,
                simulation_later(simulation, simulation_between(simulation, 0.0002, 0.02)));
            event->ticket = simulation->nodes[i].connection;
        }
    }
}

static void tell_committed(struct simulation *simulation, int node, int64_t round) {
    struct sim_node *self = &simulation->nodes[node];
    const struct virtual_entry *world = NULL;
    for (size_t i = 0; i < simulation->reg.count && world == NULL; i++) {
        const struct virtual_entry *entry = &simulation->reg.entries[i];
        bool is_world = entry->record.round == round && entry->record.is_complete;
        world = is_world ? entry : NULL; /* later ones repeat it */
    }
    if (!self->is_hosting) {
        simulation_complain(simulation, "a node that does not host tells of a round");
    } else if (world == NULL) {
        simulation_complain(simulation, "round %lld is told and is no entry", (long long)round);
    } else if (world->entry.term > self->term) {
        simulation_complain(
            simulation, "a deposed host tells of round %lld, of a later term", (long long)round);
    } else if (self->record.is_complete && self->record.round == round) {
        if (!virtual_register_has_world(&simulation->reg, &self->record)) {
            simulation_complain(
                simulation, "another world is told than the entry of round %lld", (long long)round);
        }
        self->is_committed = true;
        simulation_show(simulation, node);
    }
}

static void seek_soon(struct simulation *simulation, int node) {
    (void)simulation_add(simulation, SIM_SEEK, node,
        simulation_later(simulation, simulation_between(simulation, 0, 0.005)));
}

static void ask_register(
    struct simulation *simulation, int node, const struct succession_effect *effect) {
    bool is_watch = effect->kind == SUCCESSION_EFFECT_WATCH;
    simulation->nodes[node].requests += is_watch ? 0 : 1;
    switch ((int)effect->kind) {
    case SUCCESSION_EFFECT_READ:
        ask_read(simulation, node);
        break;
    case SUCCESSION_EFFECT_APPEND:
        ask_append(simulation, node, effect);
        break;
    case SUCCESSION_EFFECT_RENEW:
        ask_renew(simulation, node, effect->term);
        break;
    case SUCCESSION_EFFECT_LOOK:
        ask_look(simulation, node, effect->term);
        break;
    case SUCCESSION_EFFECT_WATCH:
        watch(simulation, node, effect->number);
        break;
    }
}

static void join_store(struct simulation *simulation, int node) {
    const struct sim_node *self = &simulation->nodes[node];
    simulation->nodes[self->host].members |= UINT64_C(1) << node;
    simulation->nodes[self->host].silent &= ~(UINT64_C(1) << node);
    simulation_regroup_soon(simulation, self->host, simulation_between(simulation, 0.02, 0.3));
    simulation_add(simulation, SIM_SEE, node, simulation_later(simulation, 0.001))->ticket =
        self->connection;
}

static void perform(
    struct simulation *simulation, int node, const struct succession_effect *effect) {
    struct sim_node *self = &simulation->nodes[node];
    switch (effect->kind) {
    case SUCCESSION_EFFECT_READ:
    case SUCCESSION_EFFECT_APPEND:
    case SUCCESSION_EFFECT_RENEW:
    case SUCCESSION_EFFECT_LOOK:
    case SUCCESSION_EFFECT_WATCH:
        ask_register(simulation, node, effect);
        break;
    case SUCCESSION_EFFECT_DIAL:
        dial(simulation, node, effect);
        break;
    case SUCCESSION_EFFECT_HOST:
        begin_store(simulation, node, effect);
        break;
    case SUCCESSION_EFFECT_END_HOSTING:
        simulation_end_store(simulation, node, SUCCESSION_LOSS_ENDED);
        break;
    case SUCCESSION_EFFECT_TELL_COMMITTED:
        if (simulation->is_treacherous && chance(simulation, 2)) {
            simulation_kill(simulation, node); /* before it tells */
        } else {
            tell_committed(simulation, node, effect->round);
        }
        break;
    case SUCCESSION_EFFECT_NAME:
        simulation_tell(
            simulation, node, effect->successor.address[1] - '0', SUCCESSION_EVENT_NAMED);
        break;
    case SUCCESSION_EFFECT_DISMISS:
        simulation_dismiss(simulation, node, effect->has_successor);
        break;
    case SUCCESSION_EFFECT_ARM_TIMER:
        simulation_add(simulation, SIM_TIMER, node, effect->deadline)->ticket =
            ++self->timer_ticket;
        break;
    case SUCCESSION_EFFECT_TELL_CONNECTED:
        join_store(simulation, node);
        break;
    case SUCCESSION_EFFECT_TELL_LOST:
        simulation_leave_store(simulation, node);
        seek_soon(simulation, node);
        break;
    case SUCCESSION_EFFECT_FENCED:
        self->is_running = false;
        break;
    case SUCCESSION_EFFECT_GAVE_UP:
        self->has_given_up = true;
        simulation_kill(simulation, node);
        break;
    case SUCCESSION_EFFECT_TELL_REGISTER:
    case SUCCESSION_EFFECT_KIND_COUNT:
        break;
    }
}

static void say(const struct simulation *simulation, int node, const struct succession_event *event,
    const struct succession_effects *effects) {
    struct text line = {0};
    if (simulation->is_told) {
        succession_event_describe(event, &line);
        text_append(&line, " -> ");
        for (size_t i = 0; i < effects->count; i++) {
            succession_effect_describe(&effects->items[i], &line);
            text_append(&line, "; ");
        }
        print_message(
            "%9.4f n%d %s\n", (double)simulation->now.nanoseconds / 1e9, node, text_string(&line));
    }
    text_clear(&line);
}

/* Kills the node that has claimed after so many of its effects. */
static void doom(struct simulation *simulation, int node, const struct succession_effect *effect) {
    bool is_claim = effect->kind == SUCCESSION_EFFECT_APPEND && effect->append.is_claim;
    if (simulation->successor.is_doomed && simulation->successor.node == SIM_NOBODY && is_claim) {
        simulation->successor.node = node;
    }
    if (simulation->successor.is_doomed && simulation->successor.node == node &&
        simulation->successor.effects_left-- == 0) {
        simulation->successor.is_doomed = false;
        simulation_kill(simulation, node);
    }
}

static bool is_same_life(const struct simulation *simulation, int node, int64_t life) {
    return simulation->nodes[node].is_alive && simulation->nodes[node].life == life;
}

void simulation_step(struct simulation *simulation, int node, struct succession_event event) {
    struct sim_node *self = &simulation->nodes[node];
    struct succession_effects effects;
    int64_t life = self->life;
    event.now = simulation->now;
    succession_machine_step(self->machine, &event, &effects);
    say(simulation, node, &event, &effects);
    for (size_t i = 0; i < effects.count && is_same_life(simulation, node, life); i++) {
        doom(simulation, node, &effects.items[i]);
        if (is_same_life(simulation, node, life)) {
            perform(simulation, node, &effects.items[i]);
        }
    }
}
