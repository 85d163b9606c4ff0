/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of a node's record share: nodes without machines, told what to do by the test. */
#ifndef MUSTER_TESTS_AGENT_RECORD_FIXTURE_H
#define MUSTER_TESTS_AGENT_RECORD_FIXTURE_H

#include "agent/rendezvous/agent_record.h"
#include "site_fixture.h"

/* Two nodes without machines, and perhaps a third; node 0 hosts the store. */
struct fixture {
    struct site site;
    struct site_node *nodes[3];
    struct agent_record *records[3];
};

static inline struct agent_record *open_record(struct site_node *node) {
    struct agent_record *record = NULL;
    assert_int_equal(
        agent_record_new(node->site->loop, &node->settings, &record, NULL), FAILURE_NONE);
    return record;
}

static inline void perform(struct agent_record *record, enum rendezvous_effect_kind kind) {
    agent_record_perform(record, &(struct rendezvous_effect){.kind = kind});
}

static inline void connect_record(struct agent_record *record, const struct site *site) {
    agent_record_perform(record, &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT,
                                     .deadline = site_soon(site)});
}

static inline void present(
    struct agent_record *record, const struct node_identity *identity, bool has_finished) {
    agent_record_perform(
        record, &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                    .present = {.identity = *identity, .has_finished = has_finished}});
}

static inline void fetch(struct fixture *fixture, int index) {
    perform(fixture->records[index], RENDEZVOUS_EFFECT_FETCH);
    site_await(fixture->nodes[index], "record ");
}

static inline void write_round(struct fixture *fixture, int index, int64_t round) {
    struct rendezvous_state state = {.round = round};
    agent_record_perform(fixture->records[index],
        &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {&state, false}});
    site_await(fixture->nodes[index], "written");
}

static inline void call_roll(struct fixture *fixture, int index, int64_t round) {
    agent_record_perform(fixture->records[index],
        &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {round, 2}});
}

static inline struct node_identity identity_of(const struct site_node *node) {
    return node->node.node.rendezvous.identity;
}

static inline void add_node(struct fixture *fixture, int index) {
    fixture->nodes[index] = site_make_changing(&fixture->site, index, 1);
    fixture->records[index] = open_record(fixture->nodes[index]);
    connect_record(fixture->records[index], &fixture->site);
    site_await(fixture->nodes[index], "connected");
}

static inline void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    site_init(&fixture->site);
    add_node(fixture, 0);
    add_node(fixture, 1);
}

static inline void tear_down(struct fixture *fixture) {
    agent_record_free(fixture->records[2]);
    agent_record_free(fixture->records[1]);
    agent_record_free(fixture->records[0]);
    site_clear(&fixture->site);
}

#endif
