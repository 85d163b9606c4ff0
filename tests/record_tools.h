/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests, probes and simulations do with the shared record and Muster does not: they compare
 * records, and do what torchrun's nodes alone do. Follows _RendezvousCloseOp,
 * _RendezvousKeepAliveOp and _BackendRendezvousStateHolder._sanitize in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_TESTS_RECORD_TOOLS_H
#define MUSTER_TESTS_RECORD_TOOLS_H

#include <string.h>

#include "core/rendezvous/rendezvous_decision.h"
#include "core/rendezvous/rendezvous_state.h"

static inline bool record_has_participant(
    const struct rendezvous_state *record, const struct node_identity *identity) {
    const struct rendezvous_node *node = rendezvous_state_find(record, identity);
    return node != NULL && node->is_participant;
}

static inline bool record_node_equals(
    const struct rendezvous_node *left, const struct rendezvous_node *right) {
    return left->is_participant == right->is_participant && left->is_waiting == right->is_waiting &&
           left->is_redundant == right->is_redundant &&
           left->has_heartbeat == right->has_heartbeat && left->is_done == right->is_done &&
           (!left->is_participant || left->rank == right->rank) &&
           (!left->has_heartbeat || left->heartbeat.nanoseconds == right->heartbeat.nanoseconds);
}

/* Whether each node of one record is in the other, and stands there as it does here. */
static inline bool record_nodes_equal(
    const struct rendezvous_state *left, const struct rendezvous_state *right) {
    struct node_table places = {0};
    size_t same = 0;
    for (size_t i = 0; i < right->count; i++) {
        node_table_put(&places, &right->nodes[i].identity, i);
    }
    for (size_t i = 0; i < left->count; i++) {
        size_t place = node_table_find(&places, &left->nodes[i].identity);
        same +=
            place != NODE_TABLE_ABSENT && record_node_equals(&left->nodes[i], &right->nodes[place]);
    }
    node_table_clear(&places);
    return left->count == right->count && same == left->count;
}

/* Whether both records say the same. The order of their nodes does not matter. */
static inline bool record_equals(
    const struct rendezvous_state *left, const struct rendezvous_state *right) {
    return record_nodes_equal(left, right) && left->round == right->round &&
           left->is_complete == right->is_complete && left->is_closed == right->is_closed &&
           left->has_deadline == right->has_deadline &&
           (!left->has_deadline || left->deadline.nanoseconds == right->deadline.nanoseconds) &&
           left->origin == right->origin && left->base == right->base &&
           left->next_base == right->next_base && left->restarts == right->restarts &&
           left->next_restarts == right->next_restarts && left->wanted == right->wanted &&
           left->is_draining == right->is_draining && left->is_frozen == right->is_frozen &&
           left->is_charged == right->is_charged && left->is_doubted == right->is_doubted &&
           left->has_failed == right->has_failed && left->size == right->size &&
           left->ranked == right->ranked && left->signal == right->signal &&
           strcmp(left->reason, right->reason) == 0;
}

/* Removes a node from every list. `identity` may point into the record. */
static inline void torchrun_expels(struct rendezvous_state *record,
    const struct rendezvous_settings *settings, const struct node_identity *identity) {
    if (rendezvous_state_take_out(record, identity, 1)) {
        rendezvous_state_settle(record, settings);
    }
}

static inline enum rendezvous_action torchrun_decides_close(
    const struct rendezvous_context *context) {
    if (context->state->is_closed) {
        return RENDEZVOUS_FINISH;
    }
    return context->is_late ? RENDEZVOUS_ERROR_TIMEOUT : RENDEZVOUS_MARK_CLOSED;
}

static inline enum rendezvous_action torchrun_decides_keep_alive(
    const struct rendezvous_context *context) {
    if (!context->is_keep_alive_due) {
        return RENDEZVOUS_FINISH;
    }
    return context->is_late ? RENDEZVOUS_ERROR_TIMEOUT : RENDEZVOUS_KEEP_ALIVE;
}

static inline const char *torchrun_action_name(enum rendezvous_action action) {
    static const char *const names[] = {"", "KEEP_ALIVE", "ADD_TO_PARTICIPANTS", "ADD_TO_WAIT_LIST",
        "ADD_TO_REDUNDANCY_LIST", "REMOVE_FROM_PARTICIPANTS", "REMOVE_FROM_WAIT_LIST",
        "REMOVE_FROM_REDUNDANCY_LIST", "MARK_RENDEZVOUS_COMPLETE", "MARK_RENDEZVOUS_CLOSED", "SYNC",
        "ERROR_CLOSED", "ERROR_TIMEOUT", "FINISH", "GRACEFUL_EXIT"};
    return names[action];
}

#endif
