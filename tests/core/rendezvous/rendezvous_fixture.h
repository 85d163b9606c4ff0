/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers to build a shared record, for the tests of the modules that change it. */
#ifndef MUSTER_TESTS_CORE_RENDEZVOUS_FIXTURE_H
#define MUSTER_TESTS_CORE_RENDEZVOUS_FIXTURE_H

#include "unit.h"

#include "core/rendezvous/rendezvous_state.h"

/* A node of torchrun with process id 1. */
static inline struct node_identity torch_node(const char *address) {
    struct node_identity identity = {.pid = 1};
    strncpy(identity.address, address, sizeof identity.address - 1);
    return identity;
}

/* A node of Muster with process id 1. */
static inline struct node_identity muster_node(const char *address) {
    struct node_identity identity = torch_node(address);
    identity.local_id = node_identity_muster_local_id(0);
    return identity;
}

static inline struct wall_time wall_seconds(int64_t seconds) {
    return (struct wall_time){seconds * 1000000000};
}

/* Adds the node to the record, with a heartbeat. The caller sets its list. */
static inline struct rendezvous_node *place(
    struct rendezvous_state *record, struct node_identity identity) {
    struct rendezvous_node *node = rendezvous_state_obtain(record, &identity);
    node->has_heartbeat = true;
    return node;
}

static inline void place_participant(struct rendezvous_state *record, const char *address) {
    place(record, torch_node(address))->is_participant = true;
}

static inline void place_waiting(struct rendezvous_state *record, const char *address) {
    place(record, torch_node(address))->is_waiting = true;
}

static inline void place_redundant(struct rendezvous_state *record, const char *address) {
    place(record, torch_node(address))->is_redundant = true;
}

static inline struct rendezvous_settings sized(int minimum_nodes, int maximum_nodes) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    settings.minimum_nodes = minimum_nodes;
    settings.maximum_nodes = maximum_nodes;
    return settings;
}

static inline void check_record(const struct rendezvous_state *record, const char *line) {
    CLEARED_BY(text_clear) struct text text = {0};
    rendezvous_state_describe(record, &text);
    assert_string_equal(text_string(&text), line);
}

#endif
