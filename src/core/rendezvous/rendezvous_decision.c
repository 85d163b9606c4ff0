/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_decision.h"

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

enum rendezvous_action rendezvous_decide_close(const struct rendezvous_context *context) {
    if (context->state->is_closed) {
        return RENDEZVOUS_FINISH;
    }
    return context->is_late ? RENDEZVOUS_ERROR_TIMEOUT : RENDEZVOUS_MARK_CLOSED;
}

enum rendezvous_action rendezvous_decide_keep_alive(const struct rendezvous_context *context) {
    if (!context->is_keep_alive_due) {
        return RENDEZVOUS_FINISH;
    }
    return context->is_late ? RENDEZVOUS_ERROR_TIMEOUT : RENDEZVOUS_KEEP_ALIVE;
}
