/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/node_membership.h"

#include <stdlib.h>

#include "core/node/membership_step.h"

void node_membership_init(
    struct node_membership *membership, const struct membership_settings *settings) {
    *membership = (struct node_membership){.settings = *settings};
}

void node_membership_clear(struct node_membership *membership) {
    struct membership_knowledge *knowledge = &membership->knowledge;
    free(knowledge->node);
    free(knowledge->master_address);
    free(knowledge->trouble);
    failure_account_clear(&knowledge->root_cause);
    free(membership->misplaced);
    free(membership->settling.reason);
    free(membership->end.reason);
    text_clear(&membership->note);
}

static membership_handler *handler_of(
    const struct node_membership *membership, enum membership_event_kind kind) {
    switch (membership->settings.kind) {
    case MEMBERSHIP_ALONE:
        return membership_alone_handler(kind);
    case MEMBERSHIP_FIXED:
        return membership_fixed_handler(kind);
    case MEMBERSHIP_CHANGING:
        return membership_changing_handler(membership->stage, kind);
    case MEMBERSHIP_KIND_COUNT:
        break;
    }
    return NULL;
}

void node_membership_step(struct node_membership *membership, const struct membership_event *event,
    struct membership_effects *effects) {
    effects->count = 0;
    text_clear(&membership->note);
    membership_handler *handle = handler_of(membership, event->kind);
    if (handle != NULL) {
        handle(&(struct membership_step){membership, event, effects});
    }
}

/* Effects of the machines as events of the membership. */

enum membership_event_kind membership_event_of_agent(enum agent_effect_kind kind) {
    static const enum membership_event_kind kinds[AGENT_EFFECT_COUNT] = {
        [AGENT_EFFECT_JOIN] = MEMBERSHIP_EVENT_JOIN_ASKED,
        [AGENT_EFFECT_ENTER_BARRIER] = MEMBERSHIP_EVENT_BARRIER_ASKED,
        [AGENT_EFFECT_ANNOUNCE_LEAVE] = MEMBERSHIP_EVENT_LEAVE_ASKED,
        [AGENT_EFFECT_ANNOUNCE_SUCCESS] = MEMBERSHIP_EVENT_SUCCESS_ASKED,
    };
    return kinds[kind];
}

enum membership_event_kind membership_event_of_rendezvous(const struct rendezvous_effect *effect) {
    static const enum membership_event_kind kinds[RENDEZVOUS_EFFECT_KIND_COUNT] = {
        [RENDEZVOUS_EFFECT_WORLD] = MEMBERSHIP_EVENT_WORLD,
        [RENDEZVOUS_EFFECT_RELEASED] = MEMBERSHIP_EVENT_WORLD_RELEASED,
        [RENDEZVOUS_EFFECT_ROUND_OVER] = MEMBERSHIP_EVENT_WORLD_OVER,
        [RENDEZVOUS_EFFECT_STORE_AWAITED] = MEMBERSHIP_EVENT_STORE_AWAITED,
        [RENDEZVOUS_EFFECT_CLOSED] = MEMBERSHIP_EVENT_CLOSED,
        [RENDEZVOUS_EFFECT_FAILED] = MEMBERSHIP_EVENT_FAILED,
        [RENDEZVOUS_EFFECT_FAILURE_STANDS] = MEMBERSHIP_EVENT_FAILURE_STANDS,
        [RENDEZVOUS_EFFECT_SETTLED] = MEMBERSHIP_EVENT_SETTLED,
    };
    bool is_failure = effect->kind == RENDEZVOUS_EFFECT_CLOSED && *effect->told.reason != '\0';
    return is_failure ? MEMBERSHIP_EVENT_JOB_FAILED : kinds[effect->kind];
}

enum membership_event_kind membership_event_of_round(enum round_effect_kind kind) {
    static const enum membership_event_kind kinds[ROUND_EFFECT_KIND_COUNT] = {
        [ROUND_EFFECT_OPENED] = MEMBERSHIP_EVENT_STORE_OPENED,
        [ROUND_EFFECT_JOINED] = MEMBERSHIP_EVENT_PLACED,
        [ROUND_EFFECT_JOIN_FAILED] = MEMBERSHIP_EVENT_NOT_PLACED,
        [ROUND_EFFECT_BARRIER_PASSED] = MEMBERSHIP_EVENT_BARRIER_PASSED,
        [ROUND_EFFECT_BARRIER_FAILED] = MEMBERSHIP_EVENT_BARRIER_FAILED,
        [ROUND_EFFECT_BARRIER_LATE] = MEMBERSHIP_EVENT_BARRIER_LATE,
        [ROUND_EFFECT_RANK_DISPUTED] = MEMBERSHIP_EVENT_RANK_DISPUTED,
        [ROUND_EFFECT_PEER_RESTART] = MEMBERSHIP_EVENT_PEER_RESTART,
        [ROUND_EFFECT_PEER_FAILED] = MEMBERSHIP_EVENT_PEER_FAILED,
    };
    return kinds[kind];
}

bool membership_event_has_account(enum membership_event_kind kind) {
    return kind == MEMBERSHIP_EVENT_RESTART_ASKED || kind == MEMBERSHIP_EVENT_DOUBT_ASKED ||
           kind == MEMBERSHIP_EVENT_FAILURE_ASKED || kind == MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT;
}
