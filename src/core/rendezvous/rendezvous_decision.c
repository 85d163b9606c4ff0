/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_decision.h"

static struct rendezvous_node *keep_alive(
    struct rendezvous_state *state, const struct node_identity *node, struct wall_time now) {
    struct rendezvous_node *entry = rendezvous_state_obtain(state, node);
    entry->has_heartbeat = true;
    entry->heartbeat = now;
    return entry;
}

/* The sum in whole microseconds. The record stores deadlines so: a deadline that is read back then
 * equals the one that was written. */
static struct wall_time wall_time_after(struct wall_time start, struct duration duration) {
    if (start.nanoseconds > 0 && duration.nanoseconds > INT64_MAX - start.nanoseconds) {
        return (struct wall_time){INT64_MAX};
    }
    int64_t sum = start.nanoseconds + duration.nanoseconds;
    return (struct wall_time){sum - sum % 1000};
}

/* The last call begins only with the participant that brings the round to the minimum. */
static void add_participant(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct node_identity *node,
    struct wall_time now) {
    struct rendezvous_node *entry = keep_alive(state, node, now);
    entry->is_waiting = false;
    entry->is_participant = true;
    entry->rank = 0;
    size_t participants = rendezvous_state_participants(state);
    if (participants == (size_t)settings->minimum_nodes) {
        state->has_deadline = true;
        state->deadline = wall_time_after(now, settings->last_call_timeout);
    }
    if (participants == (size_t)settings->maximum_nodes) {
        rendezvous_state_complete(state);
    }
}

bool rendezvous_call_last(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, struct wall_time now) {
    size_t participants = rendezvous_state_participants(state);
    if (state->is_complete || state->wanted > 0 || participants < (size_t)settings->minimum_nodes ||
        participants > (size_t)settings->maximum_nodes) {
        return false;
    }
    if (participants == (size_t)settings->maximum_nodes) {
        rendezvous_state_complete(state);
        return true;
    }
    if (state->has_deadline) {
        return false;
    }
    state->has_deadline = true;
    state->deadline = wall_time_after(now, settings->last_call_timeout);
    return true;
}

static void remove_from(struct rendezvous_state *state, const struct rendezvous_settings *settings,
    const struct node_identity *node, enum rendezvous_action action) {
    struct rendezvous_node *entry = rendezvous_state_find(state, node);
    if (entry == NULL) {
        return;
    }
    entry->has_heartbeat = false;
    if (action == RENDEZVOUS_REMOVE_FROM_WAIT_LIST) {
        entry->is_waiting = false;
    } else if (action == RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST) {
        entry->is_redundant = false;
    } else {
        entry->is_participant = false;
        entry->rank = 0;
    }
    rendezvous_state_prune(state);
    if (action == RENDEZVOUS_REMOVE_FROM_PARTICIPANTS) {
        rendezvous_state_settle(state, settings);
    }
}

void rendezvous_apply(struct rendezvous_state *state, const struct rendezvous_settings *settings,
    const struct node_identity *node, enum rendezvous_action action, struct wall_time now) {
    struct rendezvous_node *entry;
    switch (action) {
    case RENDEZVOUS_KEEP_ALIVE:
        keep_alive(state, node, now);
        break;
    case RENDEZVOUS_ADD_TO_PARTICIPANTS:
        add_participant(state, settings, node, now);
        break;
    case RENDEZVOUS_ADD_TO_WAIT_LIST:
        entry = keep_alive(state, node, now);
        entry->is_redundant = false;
        entry->is_waiting = true;
        break;
    case RENDEZVOUS_ADD_TO_REDUNDANCY_LIST:
        keep_alive(state, node, now)->is_redundant = true;
        break;
    case RENDEZVOUS_REMOVE_FROM_PARTICIPANTS:
    case RENDEZVOUS_REMOVE_FROM_WAIT_LIST:
    case RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST:
        remove_from(state, settings, node, action);
        break;
    case RENDEZVOUS_MARK_COMPLETE:
        rendezvous_state_complete(state);
        break;
    case RENDEZVOUS_MARK_CLOSED:
        state->is_closed = true;
        break;
    case RENDEZVOUS_SYNC:
    case RENDEZVOUS_ERROR_CLOSED:
    case RENDEZVOUS_ERROR_TIMEOUT:
    case RENDEZVOUS_FINISH:
    case RENDEZVOUS_GRACEFUL_EXIT:
        break;
    }
}

/* Decision. */

/* This node's entry in the record, or an entry without any flag. */
static const struct rendezvous_node *own_entry(const struct rendezvous_context *context) {
    static const struct rendezvous_node absent;
    const struct rendezvous_node *entry = rendezvous_state_find(context->state, context->node);
    return entry == NULL ? &absent : entry;
}

static enum rendezvous_action stay(const struct rendezvous_context *context) {
    return context->is_keep_alive_due ? RENDEZVOUS_KEEP_ALIVE : RENDEZVOUS_SYNC;
}

enum rendezvous_action rendezvous_decide_exit(const struct rendezvous_context *context) {
    if (!own_entry(context)->is_participant) {
        return RENDEZVOUS_FINISH;
    }
    return context->is_late ? RENDEZVOUS_ERROR_TIMEOUT : RENDEZVOUS_REMOVE_FROM_PARTICIPANTS;
}

/* As this node was told: other nodes may have another maximum. */
static bool has_room(const struct rendezvous_context *context) {
    return rendezvous_state_participants(context->state) < (size_t)context->settings->maximum_nodes;
}

/* A spare waits until there is room for it, without a deadline. In a round with more nodes than its
 * own maximum it waits, too: a spare of torchrun leaves the list there and comes back for ever. */
static enum rendezvous_action join_as_spare(const struct rendezvous_context *context) {
    return has_room(context) ? RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST : stay(context);
}

/* A node whose join deadline has passed takes itself out of the record. When it is too late even
 * for that, it leaves its entry in the record, and the other nodes remove it when its heartbeat has
 * run out. */
static enum rendezvous_action join_late(
    const struct rendezvous_context *context, const struct rendezvous_node *entry) {
    if (context->is_too_late) {
        return RENDEZVOUS_ERROR_TIMEOUT;
    }
    if (entry->is_participant) {
        return RENDEZVOUS_REMOVE_FROM_PARTICIPANTS;
    }
    return entry->is_waiting ? RENDEZVOUS_REMOVE_FROM_WAIT_LIST : RENDEZVOUS_ERROR_TIMEOUT;
}

/* The round runs without this node. The node puts itself on a list for the next round. */
static enum rendezvous_action join_from_outside(
    const struct rendezvous_context *context, const struct rendezvous_node *entry) {
    if (entry->is_waiting) {
        return stay(context);
    }
    return has_room(context) ? RENDEZVOUS_ADD_TO_WAIT_LIST : RENDEZVOUS_ADD_TO_REDUNDANCY_LIST;
}

static enum rendezvous_action wait_for_others(const struct rendezvous_context *context) {
    size_t participants = rendezvous_state_participants(context->state);
    bool are_enough = participants >= (size_t)context->settings->minimum_nodes &&
                      participants <= (size_t)context->settings->maximum_nodes;
    if (are_enough && context->state->has_deadline && context->is_last_call_over) {
        return RENDEZVOUS_MARK_COMPLETE;
    }
    return stay(context);
}

enum rendezvous_action rendezvous_decide_join(const struct rendezvous_context *context) {
    const struct rendezvous_state *state = context->state;
    const struct rendezvous_node *entry = own_entry(context);
    if (state->is_closed) {
        return entry->is_redundant ? RENDEZVOUS_GRACEFUL_EXIT : RENDEZVOUS_ERROR_CLOSED;
    }
    if (entry->is_redundant) {
        return join_as_spare(context);
    }
    if (state->is_complete && entry->is_participant) {
        return RENDEZVOUS_FINISH;
    }
    if (context->is_late) {
        return join_late(context, entry);
    }
    if (state->is_complete) {
        return join_from_outside(context, entry);
    }
    return entry->is_participant ? wait_for_others(context) : RENDEZVOUS_ADD_TO_PARTICIPANTS;
}
