/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's register and what follows from it: hosting, and the way to the host, as agent_register
 * and agent_succession do it. */
#include "moving_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/succession/succession_machine.h"

#define GATHERING_SECONDS (MOVING_SILENCE_SECONDS + 1)
#define REFUSAL_MILLISECONDS 5
#define REGISTER_AWAY_SECONDS 2.0
#define DISMISSAL_SECONDS 0.25

/* The register. */

static double register_delay(struct moving_job *job) {
    return moving_between(job, 0.0005, 0.02);
}

static void leave_if_ready(struct moving_job *job, struct moving_node *node) {
    bool is_alone = node->has_lingered || moving_store_connections(job, node) == 0;
    if (node->is_leaving && is_alone && !node->is_register_busy) {
        node->is_leaving = false;
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_LEFT);
    }
}

static void linger_on(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    node->has_lingered = node->has_lingered || event->number != 0;
    leave_if_ready(job, node);
    if (node->is_leaving) {
        (void)moving_add(job, moving_later(job, 0.01), node, linger_on);
    }
}

static void linger_for(struct moving_job *job, struct moving_node *node, struct duration patience) {
    node->has_lingered = patience.nanoseconds == 0;
    (void)moving_add(job, job->now, node, linger_on);
    moving_add(job, instant_after(job->now, patience), node, linger_on)->number = 1;
}

/* A store that is not served by this node is nobody's to wait for. */
void moving_linger(struct moving_job *job, struct moving_node *node, struct duration patience) {
    if (node->store == NULL) {
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_LEFT);
        return;
    }
    node->is_leaving = true;
    node->has_lingered = false;
    node->is_handing_over = patience.nanoseconds == 0;
    if (node->is_handing_over) {
        moving_tell_succession(
            job, node, (struct succession_event){.kind = SUCCESSION_EVENT_LEAVE});
    } else {
        linger_for(job, node, patience);
    }
}

static void post_left(
    struct moving_job *job, struct moving_node *node, const struct node_identity *identity) {
    moving_tell_succession(job, node,
        (struct succession_event){.kind = SUCCESSION_EVENT_NODE_GONE, .gone = *identity});
}

static void name(
    struct moving_job *job, struct moving_node *node, const struct node_identity *successor) {
    if (!moving_store_name(job, node, successor)) {
        post_left(job, node, successor);
    }
}

static void disconnect(struct moving_job *job, struct moving_node *node) {
    struct record_effects effects = {0};
    rendezvous_record_store_disconnect(node->record, &effects);
    moving_perform_record(job, node, &effects);
}

static void dismiss(struct moving_job *job, struct moving_node *node, bool has_successor) {
    bool tells = has_successor && node->store != NULL;
    node->is_handing_over = false;
    disconnect(job, node);
    if (tells) {
        moving_store_tell_moved(job, node);
    }
    linger_for(job, node, duration_from_seconds(tells ? DISMISSAL_SECONDS : 0));
}

static void take_entry(struct moving_job *job, struct moving_node *node,
    enum succession_event_kind kind, size_t count) {
    struct succession_event told = {.kind = kind};
    if (count > 0) {
        const struct virtual_entry *entry = &job->reg.entries[count - 1];
        told.is_there = true;
        told.entry = entry->entry;
        told.record = &entry->record;
        if (entry->entry.number > node->known.entry.number) {
            node->known.entry = entry->entry;
        }
    }
    node->heard_at = job->now;
    moving_tell_succession(job, node, told);
}

static void is_answered(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    enum succession_event_kind kind = (enum succession_event_kind)event->number;
    if (event->ticket != node->register_ticket) {
        return;
    }
    node->is_register_busy = false;
    if (kind == SUCCESSION_EVENT_READ || kind == SUCCESSION_EVENT_LOST) {
        take_entry(job, node, kind, (size_t)event->entry.entry.number);
    } else if (kind == SUCCESSION_EVENT_FAILED) {
        moving_tell_succession(job, node,
            (struct succession_event){.kind = kind, .failed = {"the register is away", false}});
    } else {
        if (kind == SUCCESSION_EVENT_WON) {
            node->known.entry = event->entry.entry;
            node->heard_at = job->now;
        }
        moving_tell_succession(job, node, (struct succession_event){.kind = kind});
    }
}

static struct moving_event *answer(struct moving_job *job, struct moving_node *node,
    enum succession_event_kind kind, double seconds) {
    struct moving_event *event = moving_add(job, moving_later(job, seconds), node, is_answered);
    event->number = kind;
    event->ticket = node->register_ticket;
    event->entry.entry.number = (int64_t)job->reg.count;
    return event;
}

static void ask_read(struct moving_job *job, struct moving_node *node) {
    node->register_ticket++;
    node->is_register_busy = true;
    (void)answer(job, node, job->is_register_down ? SUCCESSION_EVENT_FAILED : SUCCESSION_EVENT_READ,
        job->is_register_down ? REGISTER_AWAY_SECONDS : register_delay(job));
}

/* Late, and whatever has become of its node. */
static void takes_effect(struct moving_job *job, struct moving_event *event) {
    (void)virtual_register_append(&job->reg, &event->entry, job->now);
    rendezvous_state_clear(&event->entry.record);
}

static void append_unknown(
    struct moving_job *job, struct moving_node *node, const struct virtual_entry *entry) {
    if (moving_chance(job, 50)) {
        struct moving_event *late =
            moving_add(job, moving_later(job, moving_between(job, 0, 3)), NULL, takes_effect);
        late->entry = *entry;
        late->entry.record = (struct rendezvous_state){0};
        rendezvous_state_copy(&entry->record, &late->entry.record);
    }
    (void)answer(job, node, SUCCESSION_EVENT_UNKNOWN, 0.5);
}

static void ask_append(
    struct moving_job *job, struct moving_node *node, const struct succession_effect *effect) {
    struct virtual_entry entry = {
        .entry = {effect->append.number, effect->append.term, node->identity},
        .record = *effect->append.record, /* borrowed */
        .is_claim = effect->append.is_claim,
    };
    node->register_ticket++;
    node->is_register_busy = true;
    bool is_unknown = job->is_treacherous && moving_chance(job, 4);
    if (job->is_register_down && !is_unknown) {
        (void)answer(job, node, SUCCESSION_EVENT_FAILED, REGISTER_AWAY_SECONDS);
        return;
    }
    if (is_unknown) {
        append_unknown(job, node, &entry);
        return;
    }
    if (job->is_treacherous && moving_chance(job, 3)) {
        moving_kill(job, node->index); /* before it */
        return;
    }
    bool has_won = virtual_register_append(&job->reg, &entry, job->now);
    job->handovers += has_won && effect->append.is_named ? 1 : 0;
    if (job->is_treacherous && moving_chance(job, 5)) {
        moving_kill(job, node->index); /* after it, before anybody is told */
        return;
    }
    answer(job, node, has_won ? SUCCESSION_EVENT_WON : SUCCESSION_EVENT_LOST, register_delay(job))
        ->entry.entry =
        has_won ? entry.entry : (struct succession_entry){.number = (int64_t)job->reg.count};
}

static void renewal_is_seen(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    char renewal[32];
    (void)snprintf(renewal, sizeof renewal, "%lld", (long long)event->number);
    if (event->ticket == node->look_ticket) {
        moving_tell_succession(job, node,
            (struct succession_event){
                .kind = SUCCESSION_EVENT_RENEWAL, .renewal = event->number < 0 ? NULL : renewal});
    }
}

static void ask_look(struct moving_job *job, struct moving_node *node, int64_t term) {
    const struct virtual_entry *last = virtual_register_last(&job->reg);
    bool is_there = last != NULL && last->entry.term == term;
    double seconds = job->is_register_down ? REGISTER_AWAY_SECONDS : register_delay(job);
    struct moving_event *event = moving_add(job, moving_later(job, seconds), node, renewal_is_seen);
    event->number = job->is_register_down ? -1 : is_there ? job->reg.renewals : 0;
    event->ticket = ++node->look_ticket;
}

static void is_renewed(struct moving_job *job, struct moving_event *event) {
    moving_tell_succession(
        job, &job->nodes[event->node], (struct succession_event){.kind = SUCCESSION_EVENT_RENEWED});
}

static void ask_renew(struct moving_job *job, struct moving_node *node, int64_t term) {
    const struct virtual_entry *last = virtual_register_last(&job->reg);
    if (!job->is_register_down) {
        job->reg.renewals += last != NULL && last->entry.term == term ? 1 : 0;
        (void)moving_add(job, moving_later(job, register_delay(job)), node, is_renewed);
    }
}

/* The store. */

static void post_gone(
    struct moving_job *job, struct moving_node *node, const struct node_identity *identity) {
    moving_tell_rendezvous(job, node,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {*identity, false}});
}

/* Nodes of the world that have not come to this host by now are lost. */
static void has_gathered(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    if (node->store == NULL || event->subject != node->store) {
        return;
    }
    node->is_gathering = false;
    for (size_t i = 0; i < node->gathered.count; i++) {
        const struct rendezvous_node *other = &node->gathered.nodes[i];
        if (moving_store_knows(node, &other->identity)) {
            continue;
        }
        if (!other->is_done) {
            moving_tell_succession(job, node,
                (struct succession_event){
                    .kind = SUCCESSION_EVENT_NODE_SILENT, .silent = other->identity});
        }
        post_gone(job, node, &other->identity);
    }
}

static void await_nodes(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_state *record) {
    rendezvous_state_copy(record, &node->gathered);
    if (!node->is_gathering) {
        node->is_gathering = true;
        moving_add(job, moving_later(job, GATHERING_SECONDS), node, has_gathered)->subject =
            node->store;
    }
}

void moving_look_at_record(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_state *record) {
    for (size_t i = 0; i < record->count; i++) {
        if (!record->nodes[i].is_done && !moving_store_knows(node, &record->nodes[i].identity)) {
            await_nodes(job, node, record);
            return;
        }
    }
}

static bool was_host(const struct succession_effect *effect, const struct node_identity *identity) {
    bool was = false;
    for (size_t i = 0; i < effect->host.former_count && !was; i++) {
        was = node_identity_is_same_process(identity, &effect->host.formers[i]);
    }
    return was;
}

static void host(
    struct moving_job *job, struct moving_node *node, const struct succession_effect *effect) {
    const struct rendezvous_state *record = effect->host.record;
    job->terms++;
    moving_store_open(job, node, record);
    moving_tell_membership(job, node, MEMBERSHIP_EVENT_HOSTING);
    for (size_t i = 0; i < record->count; i++) {
        if (was_host(effect, &record->nodes[i].identity)) {
            post_gone(job, node, &record->nodes[i].identity);
        }
    }
    node->is_gathering = false;
    await_nodes(job, node, record);
}

static void end_hosting(struct moving_job *job, struct moving_node *node) {
    disconnect(job, node);
    moving_store_end(job, node);
    moving_tell_membership(job, node, MEMBERSHIP_EVENT_HOSTING_OVER);
}

static void dial(
    struct moving_job *job, struct moving_node *node, const struct succession_effect *effect) {
    struct record_effects effects = {0};
    node->is_connected = false;
    node->dials_self = effect->dial.is_self;
    node->dial_end = effect->dial.deadline;
    rendezvous_record_store_ask(node->record,
        &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT,
            .refusal_patience = duration_from_milliseconds(REFUSAL_MILLISECONDS),
            .deadline = effect->dial.deadline},
        &effects);
    moving_perform_record(job, node, &effects);
}

static void tell_committed(struct moving_node *node, int64_t round) {
    struct round_key key = {.kind = ROUND_KEY_COMMITTED, .round = round};
    struct text_list keys = {0};
    if (!rendezvous_record_store_is_up(node->record)) {
        return;
    }
    round_key_list(&key, MOVING_RUN_ID, &keys);
    moving_lane_send(node, RENDEZVOUS_LANE_ASKER,
        &(struct store_request){.operation = STORE_SET,
            .key = slice_from_string(keys.items[0]),
            .value = slice_from_string("1")},
        (struct moving_call){.kind = MOVING_CALL_OTHER});
    text_list_clear(&keys);
}

void moving_perform_succession(
    struct moving_job *job, struct moving_node *node, const struct succession_effect *effect) {
    switch ((int)effect->kind) {
    case SUCCESSION_EFFECT_READ:
        ask_read(job, node);
        break;
    case SUCCESSION_EFFECT_APPEND:
        ask_append(job, node, effect);
        break;
    case SUCCESSION_EFFECT_RENEW:
        ask_renew(job, node, effect->term);
        break;
    case SUCCESSION_EFFECT_LOOK:
        ask_look(job, node, effect->term);
        break;
    case SUCCESSION_EFFECT_DIAL:
        dial(job, node, effect);
        break;
    case SUCCESSION_EFFECT_HOST:
        host(job, node, effect);
        break;
    case SUCCESSION_EFFECT_END_HOSTING:
        end_hosting(job, node);
        break;
    case SUCCESSION_EFFECT_TELL_COMMITTED:
        tell_committed(node, effect->round);
        break;
    case SUCCESSION_EFFECT_NAME:
        name(job, node, &effect->successor);
        break;
    case SUCCESSION_EFFECT_DISMISS:
        dismiss(job, node, effect->has_successor);
        break;
    case SUCCESSION_EFFECT_ARM_TIMER:
        moving_arm_timer(job, node, NODE_SUCCESSION, effect->deadline);
        break;
    default:
        break; /* the node's own */
    }
}
