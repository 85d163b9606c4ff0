/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/rendezvous_member.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_step.h"
#include "host/loop/clock.h"

struct queued {
    struct queued *next;
    struct node_event_owned owned;
};

struct rendezvous_member {
    struct rendezvous_machine *machine;
    struct rendezvous_member_observer observer;
    struct queued *first;
    struct queued **end;
    bool is_taking;
    bool has_asked; /* to join, at some time */
    bool is_connected;
    bool is_closing; /* as soon as it is connected */
};

struct rendezvous_member *rendezvous_member_new(const struct rendezvous_machine_settings *settings,
    const struct rendezvous_member_observer *observer) {
    struct rendezvous_member *node = memory_allocate(sizeof *node);
    node->machine = rendezvous_machine_new(settings);
    node->observer = *observer;
    node->end = &node->first;
    return node;
}

static void drop_first(struct rendezvous_member *node) {
    struct queued *queued = node->first;
    node->first = queued->next;
    if (node->first == NULL) {
        node->end = &node->first;
    }
    node_event_owned_clear(&queued->owned);
    free(queued);
}

void rendezvous_member_free(struct rendezvous_member *node) {
    if (node == NULL) {
        return;
    }
    while (node->first != NULL) {
        drop_first(node);
    }
    rendezvous_machine_free(node->machine);
    free(node);
}

/* There is no agent that would exchange anything first. */
static void tell_world(struct rendezvous_member *node, const struct rendezvous_effect *effect) {
    node->observer.joined(node->observer.context, effect);
    rendezvous_member_tell(node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_PLACED});
}

static void tell(struct rendezvous_member *node, const struct rendezvous_effect *effect,
    enum rendezvous_event_kind cause) {
    const struct rendezvous_member_observer *observer = &node->observer;
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_WORLD:
        tell_world(node, effect);
        break;
    case RENDEZVOUS_EFFECT_ROUND_OVER:
        observer->round_over(observer->context, effect->told.reason);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
    case RENDEZVOUS_EFFECT_FAILED:
    case RENDEZVOUS_EFFECT_SETTLED:
        observer->ended(observer->context, effect, cause);
        break;
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_RELEASED:       /* it tells no role, so no host ranks its rounds */
    case RENDEZVOUS_EFFECT_FAILURE_STANDS: /* nobody asks */
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
    case RENDEZVOUS_EFFECT_PRESENT:
    case RENDEZVOUS_EFFECT_BEAT:
    case RENDEZVOUS_EFFECT_FETCH:
    case RENDEZVOUS_EFFECT_WRITE:
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
    case RENDEZVOUS_EFFECT_CALL_ROLL:
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
    case RENDEZVOUS_EFFECT_CUT_OFF:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        observer->perform(observer->context, effect);
        break;
    }
}

static void step(struct rendezvous_member *node, const struct rendezvous_event *event) {
    struct rendezvous_effects effects;
    rendezvous_machine_step(node->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        tell(node, &effects.items[i], event->kind);
    }
}

/* The machine closes what it is connected to. A node that has not joined yet never will: this comes
 * before the record that it would join by. */
static void close_if_connected(struct rendezvous_member *node) {
    if (node->is_closing && node->is_connected) {
        node->is_closing = false;
        rendezvous_member_tell(
            node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CLOSE_ASKED, .reason = ""});
    }
}

static void take_rendezvous(struct rendezvous_member *node, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        node->is_connected = true;
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        node->is_connected = false;
    }
    step(node, event);
    close_if_connected(node);
}

static void take(struct rendezvous_member *node, const struct node_event *event) {
    if (event->part == NODE_RENDEZVOUS) {
        take_rendezvous(node, &event->rendezvous);
    } else if (event->membership.kind == MEMBERSHIP_EVENT_HOSTING) {
        node->observer.hosting(node->observer.context, event->membership.port);
    } else if (event->membership.kind == MEMBERSHIP_EVENT_LEFT) {
        node->observer.left(node->observer.context);
    }
}

void rendezvous_member_post(void *context, const struct node_event *event) {
    struct rendezvous_member *node = context;
    struct queued *queued = memory_allocate(sizeof *queued);
    node_event_own(event, &queued->owned);
    *node->end = queued;
    node->end = &queued->next;
    if (node->is_taking) {
        return;
    }
    node->is_taking = true;
    while (node->first != NULL) {
        struct node_event *first = &node->first->owned.event;
        node_event_set_now(first, clock_now(), clock_wall_time());
        take(node, first);
        drop_first(node);
    }
    node->is_taking = false;
}

void rendezvous_member_tell(struct rendezvous_member *node, struct rendezvous_event event) {
    rendezvous_member_post(
        node, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

void rendezvous_member_join(struct rendezvous_member *node) {
    node->has_asked = true;
    rendezvous_member_tell(node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
}

void rendezvous_member_close(struct rendezvous_member *node) {
    node->is_closing = true;
    if (!node->has_asked) {
        rendezvous_member_join(node);
    } else {
        close_if_connected(node);
    }
}

const struct rendezvous_state *rendezvous_member_state(const struct rendezvous_member *node) {
    return rendezvous_machine_state(node->machine);
}
