/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/node_machine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "core/round/round_exchange.h"
#include "core/round/round_step.h"
#include "core/standby/standby_plan.h"
#include "core/succession/succession_transcript.h"

static const char *const event_names[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_NONE] = "none",
    [MEMBERSHIP_EVENT_JOIN_ASKED] = "join_asked",
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = "barrier_asked",
    [MEMBERSHIP_EVENT_LEAVE_ASKED] = "leave_asked",
    [MEMBERSHIP_EVENT_SUCCESS_ASKED] = "success_asked",
    [MEMBERSHIP_EVENT_END_ASKED] = "end_asked",
    [MEMBERSHIP_EVENT_RESTART_ASKED] = "restart_asked",
    [MEMBERSHIP_EVENT_DOUBT_ASKED] = "doubt_asked",
    [MEMBERSHIP_EVENT_FAILURE_ASKED] = "failure_asked",
    [MEMBERSHIP_EVENT_HOSTING] = "hosting",
    [MEMBERSHIP_EVENT_HOSTING_OVER] = "hosting_over",
    [MEMBERSHIP_EVENT_STORE_RENEWED] = "store_renewed",
    [MEMBERSHIP_EVENT_ROUND_TOLD] = "round_told",
    [MEMBERSHIP_EVENT_ROUND_REFUSED] = "round_refused",
    [MEMBERSHIP_EVENT_ROUND_ENDED] = "round_ended",
    [MEMBERSHIP_EVENT_BARRIER_TOLD] = "barrier_told",
    [MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT] = "root_cause_learnt",
    [MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED] = "root_cause_looked",
    [MEMBERSHIP_EVENT_MISPLACED] = "misplaced",
    [MEMBERSHIP_EVENT_LEFT] = "left",
    [MEMBERSHIP_EVENT_TIMER_FIRED] = "timer_fired",
    [MEMBERSHIP_EVENT_WORLD] = "world",
    [MEMBERSHIP_EVENT_WORLD_RELEASED] = "world_released",
    [MEMBERSHIP_EVENT_WORLD_OVER] = "world_over",
    [MEMBERSHIP_EVENT_STORE_AWAITED] = "store_awaited",
    [MEMBERSHIP_EVENT_EXCLUDED] = "excluded",
    [MEMBERSHIP_EVENT_CLOSED] = "closed",
    [MEMBERSHIP_EVENT_JOB_FAILED] = "job_failed",
    [MEMBERSHIP_EVENT_FAILED] = "failed",
    [MEMBERSHIP_EVENT_FAILURE_STANDS] = "failure_stands",
    [MEMBERSHIP_EVENT_SETTLED] = "settled",
    [MEMBERSHIP_EVENT_STORE_OPENED] = "store_opened",
    [MEMBERSHIP_EVENT_PLACED] = "placed",
    [MEMBERSHIP_EVENT_NOT_PLACED] = "not_placed",
    [MEMBERSHIP_EVENT_BARRIER_PASSED] = "barrier_passed",
    [MEMBERSHIP_EVENT_BARRIER_FAILED] = "barrier_failed",
    [MEMBERSHIP_EVENT_BARRIER_LATE] = "barrier_late",
    [MEMBERSHIP_EVENT_RANK_DISPUTED] = "rank_disputed",
    [MEMBERSHIP_EVENT_PEER_RESTART] = "peer_restart",
    [MEMBERSHIP_EVENT_PEER_FAILED] = "peer_failed",
};

static void membership_event_describe(const struct membership_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    if (membership_event_has_account(event->kind) && event->account != NULL) {
        text_append(out, " ");
        failure_account_describe(event->account, out);
    }
}

static void membership_effect_describe(const struct membership_effect *effect, struct text *out) {
    switch (effect->kind) {
    case MEMBERSHIP_EFFECT_TELL_AGENT:
        text_append(out, "agent: ");
        agent_event_describe(&effect->agent, out);
        break;
    case MEMBERSHIP_EFFECT_TELL_RENDEZVOUS:
        text_append(out, "rendezvous: ");
        rendezvous_event_describe(&effect->rendezvous, out);
        break;
    case MEMBERSHIP_EFFECT_TELL_ROUND:
        text_append(out, "round: ");
        round_event_describe(&effect->round, out);
        break;
    case MEMBERSHIP_EFFECT_NOTE:
        text_append_format(out, "note %s", effect->note.text);
        break;
    case MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE:
        text_append_format(out, "publish_root_cause round=%" PRId64 " ", effect->root_cause.round);
        failure_account_describe(effect->root_cause.account, out);
        break;
    case MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE:
        text_append_format(out, "look_for_root_cause round=%" PRId64, effect->root_cause.round);
        break;
    case MEMBERSHIP_EFFECT_ARM_TIMER:
        text_append_format(out, "arm_timer at=%.3f", (double)effect->deadline.nanoseconds / 1e9);
        break;
    case MEMBERSHIP_EFFECT_CANCEL_ROLL:
        text_append(out, "cancel_roll");
        break;
    case MEMBERSHIP_EFFECT_RENEW_WORKER_STORE:
        text_append(out, "renew_worker_store");
        break;
    case MEMBERSHIP_EFFECT_ASK_PROGRAM:
        text_append_format(out, "ask_program %s attempt=%d",
            effect->ask.what == MEMBERSHIP_ASK_ROUND ? "round" : "barrier", effect->ask.attempt);
        break;
    case MEMBERSHIP_EFFECT_DISCONNECT:
        text_append(out, "disconnect");
        break;
    case MEMBERSHIP_EFFECT_LINGER:
        text_append_format(out, "linger seconds=%g", duration_seconds(effect->patience));
        break;
    case MEMBERSHIP_EFFECT_FLUSH:
        text_append_format(out, "flush seconds=%g", duration_seconds(effect->patience));
        break;
    case MEMBERSHIP_EFFECT_SETTLED:
        text_append(out, "settled");
        break;
    case MEMBERSHIP_EFFECT_KIND_COUNT:
        break;
    }
}

/* Event. */

/* Copies of the things to which an event may point. */

static void *own_block(struct node_event_owned *owned, void *block) {
    if (block != NULL) {
        owned->blocks = memory_reserve(
            owned->blocks, &owned->block_capacity, owned->block_count + 1, sizeof *owned->blocks);
        owned->blocks[owned->block_count++] = block;
    }
    return block;
}

static void own_text(struct node_event_owned *owned, const char **text) {
    *text = own_block(owned, memory_duplicate_string(*text));
}

static void own_state(struct node_event_owned *owned, const struct rendezvous_state **state) {
    if (*state != NULL) {
        rendezvous_state_copy(*state, &owned->state);
        *state = &owned->state;
    }
}

static void own_account(struct node_event_owned *owned, const struct failure_account **account) {
    if (*account != NULL) {
        failure_account_copy(*account, &owned->account);
        *account = &owned->account;
    }
}

static void own_identity(struct node_event_owned *owned, const struct node_identity **identity) {
    if (*identity != NULL) {
        *identity = own_block(owned, memory_duplicate(*identity, sizeof **identity));
    }
}

static void own_role_infos(
    struct node_event_owned *owned, const struct role_info **infos, size_t count) {
    struct role_info *copies = own_block(owned, memory_duplicate(*infos, count * sizeof *copies));
    for (size_t i = 0; i < count; i++) {
        copies[i].role = own_block(owned, memory_duplicate_string(copies[i].role));
        copies[i].addresses = own_block(owned, memory_duplicate_string(copies[i].addresses));
    }
    *infos = copies;
}

/* Which of these things each event of each machine has. */

static void own_agent(struct node_event_owned *owned, struct agent_event *event) {
    if (event->kind == AGENT_EVENT_START_FAILED) {
        own_text(owned, &event->start_failed.message);
    } else if (event->kind == AGENT_EVENT_ROUND_OVER) {
        own_text(owned, &event->reason);
    }
}

static void own_membership(struct node_event_owned *owned, struct membership_event *event) {
    if (membership_event_has_account(event->kind)) {
        own_account(owned, &event->account);
    } else if (event->kind == MEMBERSHIP_EVENT_MISPLACED) {
        own_text(owned, &event->reason);
    } else if (event->kind == MEMBERSHIP_EVENT_ROUND_TOLD ||
               event->kind == MEMBERSHIP_EVENT_ROUND_REFUSED ||
               event->kind == MEMBERSHIP_EVENT_ROUND_ENDED) {
        event->told = own_block(owned, memory_duplicate(event->told, sizeof *event->told));
    }
}

static void own_rendezvous(struct node_event_owned *owned, struct rendezvous_event *event) {
    switch (event->kind) {
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
        own_text(owned, &event->reason);
        break;
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
        own_text(owned, &event->lost.reason);
        break;
    case RENDEZVOUS_EVENT_RECORD:
        own_state(owned, &event->state);
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        own_state(owned, &event->written.state);
        break;
    case RENDEZVOUS_EVENT_STANDING:
        own_state(owned, &event->standing.state);
        break;
    case RENDEZVOUS_EVENT_OPENED:
        own_text(owned, &event->opened.address);
        break;
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_JOIN_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_CONNECTED:
    case RENDEZVOUS_EVENT_CHANGED:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_NODE_GONE:
    case RENDEZVOUS_EVENT_WISHED: /* has its texts in itself */
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_REGISTER:
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        break;
    }
}

static void own_round(struct node_event_owned *owned, struct round_event *event) {
    switch (event->kind) {
    case ROUND_EVENT_BEGIN:
        own_state(owned, &event->begin.state);
        own_identity(owned, &event->begin.identity);
        own_text(owned, &event->begin.master_address);
        break;
    case ROUND_EVENT_RELEASED:
        own_text(owned, &event->released.master_address);
        break;
    case ROUND_EVENT_STORE_OPENED:
        own_text(owned, &event->opened.address);
        break;
    case ROUND_EVENT_STORE_FAILED:
        own_text(owned, &event->reason);
        break;
    case ROUND_EVENT_ROLE_INFOS:
        own_role_infos(owned, &event->role_infos.infos, event->role_infos.count);
        break;
    case ROUND_EVENT_VALUES:
        own_text(owned, &event->values.address);
        own_text(owned, &event->values.publisher);
        own_text(owned, &event->values.decision);
        break;
    case ROUND_EVENT_ABANDON:
    case ROUND_EVENT_BARRIER_ASKED:
    case ROUND_EVENT_RESTART_ASKED:
    case ROUND_EVENT_FAILURE_ASKED:
    case ROUND_EVENT_CONNECTED:
    case ROUND_EVENT_CONNECTION_LOST:
    case ROUND_EVENT_WAITED:
    case ROUND_EVENT_CHECKED:
    case ROUND_EVENT_COUNTED:
    case ROUND_EVENT_TIMER_FIRED:
    case ROUND_EVENT_KIND_COUNT:
        break;
    }
}

static void own_succession(struct node_event_owned *owned, struct succession_event *event) {
    switch (event->kind) {
    case SUCCESSION_EVENT_SEEN:
    case SUCCESSION_EVENT_READ:
    case SUCCESSION_EVENT_LOST:
    case SUCCESSION_EVENT_NEWS:
        own_state(owned, &event->record);
        break;
    case SUCCESSION_EVENT_RENEWAL:
        own_text(owned, &event->renewal);
        break;
    case SUCCESSION_EVENT_FAILED:
        own_text(owned, &event->failed.reason);
        break;
    case SUCCESSION_EVENT_SEEK:
    case SUCCESSION_EVENT_WON:
    case SUCCESSION_EVENT_UNKNOWN:
    case SUCCESSION_EVENT_RENEWED:
    case SUCCESSION_EVENT_CONNECTED:
    case SUCCESSION_EVENT_CONNECTION_LOST:
    case SUCCESSION_EVENT_NODE_SILENT:
    case SUCCESSION_EVENT_NODE_GONE:
    case SUCCESSION_EVENT_DOUBTED:
    case SUCCESSION_EVENT_NAMED:
    case SUCCESSION_EVENT_MOVED:
    case SUCCESSION_EVENT_LEAVE: /* the machine gets the record when it takes it */
    case SUCCESSION_EVENT_TIMER_FIRED:
    case SUCCESSION_EVENT_KIND_COUNT:
        break;
    }
}

void node_event_own(const struct node_event *event, struct node_event_owned *out_owned) {
    *out_owned = (struct node_event_owned){.event = *event};
    switch (event->part) {
    case NODE_AGENT:
        own_agent(out_owned, &out_owned->event.agent);
        break;
    case NODE_MEMBERSHIP:
        own_membership(out_owned, &out_owned->event.membership);
        break;
    case NODE_RENDEZVOUS:
        own_rendezvous(out_owned, &out_owned->event.rendezvous);
        break;
    case NODE_ROUND:
        own_round(out_owned, &out_owned->event.round);
        break;
    case NODE_SUCCESSION:
        own_succession(out_owned, &out_owned->event.succession);
        break;
    case NODE_STANDBY: /* points to nothing */
    case NODE_PART_COUNT:
        break;
    }
}

void node_event_owned_clear(struct node_event_owned *owned) {
    for (size_t i = 0; i < owned->block_count; i++) {
        free(owned->blocks[i]);
    }
    free(owned->blocks);
    rendezvous_state_clear(&owned->state);
    failure_account_clear(&owned->account);
    *owned = (struct node_event_owned){0};
}

void node_event_set_now(struct node_event *event, struct instant now, struct wall_time wall_now) {
    switch (event->part) {
    case NODE_AGENT:
        event->agent.now = now;
        break;
    case NODE_MEMBERSHIP:
        event->membership.now = now;
        break;
    case NODE_RENDEZVOUS:
        event->rendezvous.now = now;
        event->rendezvous.wall_now = wall_now;
        break;
    case NODE_ROUND:
        event->round.now = now;
        break;
    case NODE_STANDBY:
        event->standby.now = now;
        break;
    case NODE_SUCCESSION:
        event->succession.now = now;
        break;
    case NODE_PART_COUNT:
        break;
    }
}

void node_event_describe(const struct node_event *event, struct text *out) {
    switch (event->part) {
    case NODE_AGENT:
        agent_event_describe(&event->agent, out);
        break;
    case NODE_MEMBERSHIP:
        membership_event_describe(&event->membership, out);
        break;
    case NODE_RENDEZVOUS:
        rendezvous_event_describe(&event->rendezvous, out);
        break;
    case NODE_ROUND:
        round_event_describe(&event->round, out);
        break;
    case NODE_STANDBY:
        standby_event_describe(&event->standby, out);
        break;
    case NODE_SUCCESSION:
        succession_event_describe(&event->succession, out);
        break;
    case NODE_PART_COUNT:
        break;
    }
}

/* Machine. */

/* What the search for a host of the job's store means for the node's part in the rendezvous. */

/* Sets `out_event` to what the rendezvous machine is told. Its strings are the effect's, or
 * constant. Returns false when the effect is for the performer. */
static bool node_succession_event(const struct succession_machine *succession,
    const struct succession_effect *effect, struct rendezvous_event *out_event) {
    switch (effect->kind) {
    case SUCCESSION_EFFECT_TELL_CONNECTED:
        *out_event = (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
            .connected = {.has_presence = true,
                .is_host = succession_machine_state(succession) == SUCCESSION_HOST,
                .is_same_store = effect->connected.is_same_term,
                .offers_delegation = effect->connected.offers_delegation}};
        return true;
    case SUCCESSION_EFFECT_TELL_LOST:
        *out_event = (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
            .lost = {.reason = "the host of the job's store is sought",
                .is_host_sought = true,
                .keeps_hosting = effect->keeps_hosting}};
        return true;
    case SUCCESSION_EFFECT_FENCED:
        *out_event =
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FENCED, .reason = effect->reason};
        return true;
    case SUCCESSION_EFFECT_TELL_REGISTER:
        *out_event = (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_REGISTER, .is_register_stuck = effect->is_stuck};
        return true;
    case SUCCESSION_EFFECT_GAVE_UP:
        *out_event = (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_CONNECTION_LOST, .lost = {.reason = effect->reason}};
        return true;
    case SUCCESSION_EFFECT_READ:
    case SUCCESSION_EFFECT_APPEND:
    case SUCCESSION_EFFECT_RENEW:
    case SUCCESSION_EFFECT_LOOK:
    case SUCCESSION_EFFECT_WATCH:
    case SUCCESSION_EFFECT_DIAL:
    case SUCCESSION_EFFECT_HOST:
    case SUCCESSION_EFFECT_END_HOSTING:
    case SUCCESSION_EFFECT_TELL_COMMITTED:
    case SUCCESSION_EFFECT_NAME:
    case SUCCESSION_EFFECT_DISMISS:
    case SUCCESSION_EFFECT_ARM_TIMER:
    case SUCCESSION_EFFECT_KIND_COUNT:
        break;
    }
    return false;
}

/* Lets the succession machine take the event. When this node leaves its store, the machine is given
 * the record that is known now, which says who stays. */
static void node_succession_step(struct succession_machine *succession,
    const struct rendezvous_machine *rendezvous, const struct succession_event *event,
    struct succession_effects *effects) {
    struct succession_event taken = *event;
    if (event->kind == SUCCESSION_EVENT_LEAVE) {
        taken.record = rendezvous_machine_state(rendezvous);
    }
    succession_machine_step(succession, &taken, effects);
}

/* Machine. */

/* An event in the list. It has its own memory and does not move, because it points into itself. */
struct waiting_event {
    struct node_event_owned owned;
    struct wall_time wall_now;
    struct waiting_event *next;
};

struct event_list {
    struct waiting_event *first;
    struct waiting_event **last; /* where the next event is put */
};

struct node_machine {
    struct agent_machine agent;
    struct node_membership membership;
    struct rendezvous_machine *rendezvous;
    struct round_exchange *round;
    struct standby_plan *standby;
    struct succession_machine *succession;
    struct event_list following;   /* the first part of the queue: what follows from a fact */
    struct event_list facts;       /* the second part: facts that wait */
    struct waiting_event *current; /* the event of the current or the previous step */
    struct node_effect *effects;
    size_t effect_count;
    size_t effect_capacity;
    struct text_list notes; /* of the last step */
};

/* Life. */

struct node_machine *node_machine_new(const struct node_settings *settings) {
    struct node_machine *machine = memory_allocate(sizeof *machine);
    machine->following.last = &machine->following.first;
    machine->facts.last = &machine->facts.first;
    agent_machine_init(&machine->agent, &settings->agent);
    node_membership_init(&machine->membership, &settings->membership);
    if (settings->standby.is_wanted) {
        machine->standby = standby_plan_new(&settings->standby);
    }
    switch (settings->membership.kind) {
    case MEMBERSHIP_CHANGING:
        machine->rendezvous = rendezvous_machine_new(&settings->rendezvous);
        machine->round = round_exchange_new(&settings->round);
        if (settings->rendezvous.has_succession) {
            machine->succession = succession_machine_new(&settings->succession);
        }
        break;
    case MEMBERSHIP_FIXED:
        machine->round = round_exchange_new(&settings->round);
        break;
    case MEMBERSHIP_ALONE:
    case MEMBERSHIP_KIND_COUNT:
        break;
    }
    return machine;
}

static void free_waiting(struct waiting_event *waiting) {
    if (waiting != NULL) {
        node_event_owned_clear(&waiting->owned);
        free(waiting);
    }
}

static struct waiting_event *take_first(struct event_list *list) {
    struct waiting_event *waiting = list->first;
    list->first = waiting->next;
    if (list->first == NULL) {
        list->last = &list->first;
    }
    return waiting;
}

static void free_list(struct event_list *list) {
    while (list->first != NULL) {
        free_waiting(take_first(list));
    }
}

void node_machine_free(struct node_machine *machine) {
    if (machine == NULL) {
        return;
    }
    free_list(&machine->following);
    free_list(&machine->facts);
    free_waiting(machine->current);
    agent_machine_clear(&machine->agent);
    node_membership_clear(&machine->membership);
    rendezvous_machine_free(machine->rendezvous);
    round_exchange_free(machine->round);
    standby_plan_free(machine->standby);
    succession_machine_free(machine->succession);
    text_list_clear(&machine->notes);
    free(machine->effects);
    free(machine);
}

const struct agent_machine *node_machine_agent(const struct node_machine *machine) {
    return &machine->agent;
}

const struct membership_knowledge *node_machine_knowledge(const struct node_machine *machine) {
    return &machine->membership.knowledge;
}

struct worker_group *node_machine_workers(struct node_machine *machine) {
    return &machine->agent.workers;
}

const struct rendezvous_machine *node_machine_rendezvous(const struct node_machine *machine) {
    return machine->rendezvous;
}

bool node_machine_owes_end(const struct node_machine *machine) {
    return machine->succession != NULL && succession_machine_owes_end(machine->succession);
}

const struct standby_plan *node_machine_standby(const struct node_machine *machine) {
    return machine->standby;
}

/* The queue. */

/* Puts a copy of the event into the list, and returns the copy. */
static const struct node_event *put(struct event_list *list, const struct node_event *event,
    struct instant now, struct wall_time wall_now) {
    struct waiting_event *waiting = memory_allocate(sizeof *waiting);
    node_event_own(event, &waiting->owned);
    node_event_set_now(&waiting->owned.event, now, wall_now);
    waiting->wall_now = wall_now;
    *list->last = waiting;
    list->last = &waiting->next;
    return &waiting->owned.event;
}

/* An announcement comes before the next fact. END_ASKED is not an announcement: it waits until all
 * announcements are done. */
static bool is_announcement(const struct node_event *event) {
    if (event->part != NODE_MEMBERSHIP) {
        return false;
    }
    enum membership_event_kind kind = event->membership.kind;
    return kind == MEMBERSHIP_EVENT_RESTART_ASKED || kind == MEMBERSHIP_EVENT_DOUBT_ASKED ||
           kind == MEMBERSHIP_EVENT_FAILURE_ASKED;
}

void node_machine_post(struct node_machine *machine, const struct node_event *event,
    struct instant now, struct wall_time wall_now) {
    (void)put(is_announcement(event) ? &machine->following : &machine->facts, event, now, wall_now);
}

const struct node_event *node_machine_next(const struct node_machine *machine) {
    const struct waiting_event *first = machine->following.first;
    first = first != NULL ? first : machine->facts.first;
    return first != NULL ? &first->owned.event : NULL;
}

/* Effects. */

static struct node_effect *append(struct node_machine *machine, enum node_part part) {
    machine->effects = memory_reserve(machine->effects, &machine->effect_capacity,
        machine->effect_count + 1, sizeof *machine->effects);
    struct node_effect *effect = &machine->effects[machine->effect_count++];
    *effect = (struct node_effect){.part = part};
    return effect;
}

/* One step of the node may include several steps of the membership, and each of them overwrites the
 * note. So the node keeps all notes of its step. */
static void keep_note(struct node_machine *machine, struct membership_effect *effect) {
    if (effect->kind == MEMBERSHIP_EFFECT_NOTE) {
        text_list_add(&machine->notes, effect->note.text);
        effect->note.text = machine->notes.items[machine->notes.count - 1];
    }
}

/* Makes an event for the queue from an effect of the membership that is for a machine. Returns
 * false when the effect is for the performer. */
static bool make_event(const struct membership_effect *effect, struct node_event *out_event) {
    switch (effect->kind) {
    case MEMBERSHIP_EFFECT_TELL_AGENT:
        *out_event = (struct node_event){.part = NODE_AGENT, .agent = effect->agent};
        return true;
    case MEMBERSHIP_EFFECT_TELL_RENDEZVOUS:
        *out_event = (struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = effect->rendezvous};
        return true;
    case MEMBERSHIP_EFFECT_TELL_ROUND:
        *out_event = (struct node_event){.part = NODE_ROUND, .round = effect->round};
        return true;
    case MEMBERSHIP_EFFECT_NOTE:
    case MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE:
    case MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE:
    case MEMBERSHIP_EFFECT_ARM_TIMER:
    case MEMBERSHIP_EFFECT_CANCEL_ROLL:
    case MEMBERSHIP_EFFECT_RENEW_WORKER_STORE:
    case MEMBERSHIP_EFFECT_ASK_PROGRAM:
    case MEMBERSHIP_EFFECT_DISCONNECT:
    case MEMBERSHIP_EFFECT_LINGER:
    case MEMBERSHIP_EFFECT_FLUSH:
    case MEMBERSHIP_EFFECT_SETTLED:
    case MEMBERSHIP_EFFECT_KIND_COUNT:
        break;
    }
    return false;
}

/* Replaces the event in the effect by the one in the queue, which lives until the effect was used.
 */
static void show_event(const struct node_event *event, struct membership_effect *effect) {
    switch (event->part) {
    case NODE_AGENT:
        effect->agent = event->agent;
        break;
    case NODE_RENDEZVOUS:
        effect->rendezvous = event->rendezvous;
        break;
    case NODE_ROUND:
        effect->round = event->round;
        break;
    case NODE_MEMBERSHIP:
    case NODE_STANDBY:
    case NODE_SUCCESSION:
    case NODE_PART_COUNT:
        break;
    }
}

static void step_membership(struct node_machine *machine, const struct membership_event *event) {
    struct membership_effects effects;
    node_membership_step(&machine->membership, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        struct node_event told;
        struct node_effect *effect = append(machine, NODE_MEMBERSHIP);
        effect->membership = effects.items[i];
        effect->is_internal = make_event(&effects.items[i], &told);
        if (effect->is_internal) {
            show_event(put(&machine->following, &told, event->now, machine->current->wall_now),
                &effect->membership);
        } else {
            keep_note(machine, &effect->membership);
        }
    }
}

static struct membership_event membership_event_asked(const struct agent_effect *effect) {
    struct membership_event asked = {.kind = membership_event_of_agent(effect->kind)};
    if (effect->kind == AGENT_EFFECT_JOIN) {
        asked.join.ticket = effect->join.ticket;
        asked.join.attempt = effect->join.attempt;
    } else if (effect->kind == AGENT_EFFECT_ANNOUNCE_LEAVE) {
        asked.signal = effect->signal;
    }
    return asked;
}

/* One step of one machine. The membership takes the effects of the machine at once. Its own effects
 * for machines wait in the queue. */

static void step_standby(struct node_machine *machine, const struct standby_event *event) {
    struct standby_effects effects;
    standby_plan_step(machine->standby, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        struct node_effect *effect = append(machine, NODE_STANDBY);
        effect->standby = effects.items[i];
        effect->is_internal = effects.items[i].kind == STANDBY_EFFECT_WARMED;
        if (effect->is_internal && machine->rendezvous != NULL) {
            (void)put(&machine->following,
                &(struct node_event){
                    .part = NODE_RENDEZVOUS, .rendezvous = {.kind = RENDEZVOUS_EVENT_WARMED}},
                event->now, machine->current->wall_now);
        }
    }
}

/* The workers that are being stopped are the last ones of this node. */
static bool is_ending(const struct agent_machine *agent) {
    switch (agent->stop_reason) {
    case AGENT_STOP_CLEAN_UP:
        return !agent->has_peers; /* other nodes may yet restart the job */
    case AGENT_STOP_FAILURE:
    case AGENT_STOP_PEER_FAILURE:
    case AGENT_STOP_SIGNAL:
    case AGENT_STOP_UNFIT:
    case AGENT_STOP_EXCLUDED:
        return true;
    case AGENT_STOP_NONE:
    case AGENT_STOP_RESTART:
    case AGENT_STOP_DOUBTED_FAILURE:
        break;
    }
    return false;
}

/* What the plan of standby workers is told of a step of the agent machine. */
static enum standby_event_kind standby_event_of(
    const struct agent_machine *agent, enum agent_phase before) {
    if (agent->phase == before) {
        return STANDBY_EVENT_COUNT;
    }
    switch (agent->phase) {
    case AGENT_STARTING:
        return STANDBY_EVENT_ATTEMPT_BEGAN;
    case AGENT_RUNNING:
        return STANDBY_EVENT_WORKERS_STARTED;
    case AGENT_STOPPING:
        return is_ending(agent) ? STANDBY_EVENT_JOB_ENDING : STANDBY_EVENT_WORKERS_ENDING;
    case AGENT_DONE:
        return STANDBY_EVENT_JOB_ENDING;
    case AGENT_IDLE:
    case AGENT_HELD:
    case AGENT_JOINING:
    case AGENT_LEAVING:
    case AGENT_DOUBTING:
    case AGENT_PHASE_COUNT:
        break;
    }
    return STANDBY_EVENT_COUNT;
}

/* One node of those that come and go. */
static bool tells_new_nodes(const struct node_membership *membership) {
    return membership->settings.kind == MEMBERSHIP_CHANGING &&
           membership->knowledge.placement.group_rank == 0;
}

static void tell_standby(
    struct node_machine *machine, enum agent_phase before, struct instant now) {
    const struct agent_machine *agent = &machine->agent;
    enum standby_event_kind kind = standby_event_of(agent, before);
    if (machine->standby != NULL && kind != STANDBY_EVENT_COUNT) {
        bool may_restart = agent->may_lose_peers || restart_policy_remaining(&agent->restarts) > 0;
        step_standby(machine, &(struct standby_event){.kind = kind,
                                  .now = now,
                                  .is_first = tells_new_nodes(&machine->membership),
                                  .may_restart = may_restart});
    }
}

static void step_agent(struct node_machine *machine, const struct agent_event *event) {
    struct agent_effects effects;
    enum agent_phase before = machine->agent.phase;
    agent_machine_step(&machine->agent, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct agent_effect *item = &effects.items[i];
        struct node_effect *effect = append(machine, NODE_AGENT);
        effect->agent = *item;
        effect->is_internal = membership_event_of_agent(item->kind) != MEMBERSHIP_EVENT_NONE;
        if (effect->is_internal) {
            struct membership_event asked = membership_event_asked(item);
            asked.now = event->now;
            step_membership(machine, &asked);
        }
    }
    tell_standby(machine, before, event->now);
}

static void tell_succession(
    struct node_machine *machine, const struct succession_event *event, struct instant now) {
    (void)put(&machine->following,
        &(struct node_event){.part = NODE_SUCCESSION, .succession = *event}, now,
        machine->current->wall_now);
}

static void show_record(struct node_machine *machine, const struct rendezvous_event *event) {
    bool is_news =
        event->kind == RENDEZVOUS_EVENT_RECORD || event->kind == RENDEZVOUS_EVENT_WRITTEN;
    if (machine->succession != NULL && is_news) {
        tell_succession(machine,
            &(struct succession_event){.kind = SUCCESSION_EVENT_SEEN,
                .record = rendezvous_machine_state(machine->rendezvous)},
            event->now);
    }
}

static void step_succession(struct node_machine *machine, const struct succession_event *event) {
    struct succession_effects effects;
    node_succession_step(machine->succession, machine->rendezvous, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        struct node_event told = {.part = NODE_RENDEZVOUS};
        struct node_effect *effect = append(machine, NODE_SUCCESSION);
        effect->succession = effects.items[i];
        effect->is_internal =
            node_succession_event(machine->succession, &effects.items[i], &told.rendezvous);
        if (effect->is_internal) {
            (void)put(&machine->following, &told, event->now, machine->current->wall_now);
        }
    }
}

static void step_rendezvous(struct node_machine *machine, const struct rendezvous_event *event) {
    struct rendezvous_effects effects;
    bool is_cut_off =
        event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST || event->kind == RENDEZVOUS_EVENT_FENCED;
    rendezvous_machine_step(machine->rendezvous, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        enum membership_event_kind told = membership_event_of_rendezvous(&effects.items[i]);
        struct node_effect *effect = append(machine, NODE_RENDEZVOUS);
        effect->rendezvous = effects.items[i];
        effect->is_internal = told != MEMBERSHIP_EVENT_NONE;
        if (effect->is_internal) {
            step_membership(machine, &(struct membership_event){.kind = told,
                                         .now = event->now,
                                         .rendezvous = {&effects.items[i], is_cut_off}});
        } else if (machine->succession != NULL &&
                   effects.items[i].kind == RENDEZVOUS_EFFECT_CONNECT) {
            effect->is_internal = true;
            tell_succession(machine,
                &(struct succession_event){
                    .kind = SUCCESSION_EVENT_SEEK, .deadline = effects.items[i].deadline},
                event->now);
        }
    }
    show_record(machine, event);
}

static void step_round(struct node_machine *machine, const struct round_event *event) {
    struct round_effects effects;
    round_exchange_step(machine->round, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        enum membership_event_kind told = membership_event_of_round(effects.items[i].kind);
        struct node_effect *effect = append(machine, NODE_ROUND);
        effect->round = effects.items[i];
        effect->is_internal = told != MEMBERSHIP_EVENT_NONE;
        if (effect->is_internal) {
            step_membership(
                machine, &(struct membership_event){
                             .kind = told, .now = event->now, .round = &effects.items[i]});
        }
    }
}

void node_machine_step(struct node_machine *machine, struct node_effects *out_effects) {
    struct event_list *list =
        machine->following.first != NULL ? &machine->following : &machine->facts;
    assert(list->first != NULL);
    free_waiting(machine->current);
    machine->current = take_first(list);
    machine->effect_count = 0;
    text_list_clear(&machine->notes);
    const struct node_event *event = &machine->current->owned.event;
    switch (event->part) {
    case NODE_AGENT:
        step_agent(machine, &event->agent);
        break;
    case NODE_MEMBERSHIP:
        step_membership(machine, &event->membership);
        break;
    case NODE_RENDEZVOUS:
        step_rendezvous(machine, &event->rendezvous);
        break;
    case NODE_ROUND:
        step_round(machine, &event->round);
        break;
    case NODE_STANDBY:
        step_standby(machine, &event->standby);
        break;
    case NODE_SUCCESSION:
        step_succession(machine, &event->succession);
        break;
    case NODE_PART_COUNT:
        break;
    }
    *out_effects = (struct node_effects){machine->effects, machine->effect_count};
}

void node_effect_describe(const struct node_effect *effect, struct text *out) {
    switch (effect->part) {
    case NODE_AGENT:
        agent_effect_describe(&effect->agent, out);
        break;
    case NODE_MEMBERSHIP:
        membership_effect_describe(&effect->membership, out);
        break;
    case NODE_RENDEZVOUS:
        rendezvous_effect_describe(&effect->rendezvous, out);
        break;
    case NODE_ROUND:
        round_effect_describe(&effect->round, out);
        break;
    case NODE_STANDBY:
        standby_effect_describe(&effect->standby, out);
        break;
    case NODE_SUCCESSION:
        succession_effect_describe(&effect->succession, out);
        break;
    case NODE_PART_COUNT:
        break;
    }
}
