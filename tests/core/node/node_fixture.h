/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of a node's membership share: a membership whose every step is checked against the
 * transcript of its effects, and what other machines may tell it. */
#ifndef MUSTER_TESTS_CORE_NODE_FIXTURE_H
#define MUSTER_TESTS_CORE_NODE_FIXTURE_H

#include "unit.h"

#include "core/node/node_machine.h"
#include "core/node/node_membership.h"

/* Names in texts: this node, and another one. */
#define ME "me_1_1073741824"
#define OTHER "a_1_1073741824"

static inline struct membership_settings membership_settings_of(enum membership_kind kind) {
    return (struct membership_settings){
        .kind = kind,
        .run_id = "job",
        .role = "default",
        .local_world_size = 2,
        .address = "me",
        .where = "host:29400",
        .master_address = "127.0.0.1",
        .master_port = 29500,
        .node_rank = 1,
        .node_count = 2,
    };
}

static inline struct node_identity identity_of(const char *address) {
    struct node_identity identity;
    node_identity_init(&identity, address, 1, node_identity_muster_local_id(0));
    return identity;
}

/* A worker that exited with 3, of the node ME, OTHER or NULL. It is not to be cleared. */
static inline struct failure_account account_of(const char *node) {
    static char host[] = "host2";
    static char me[] = ME;
    static char other[] = OTHER;
    char *name = node == NULL ? NULL : other;
    return (struct failure_account){
        .host = host,
        .node = node != NULL && strcmp(node, ME) == 0 ? me : name,
        .rank = 5,
        .local_rank = 1,
        .exit.value = 3,
    };
}

#define FAILED_WORKER "rank 5 (local_rank 1) on host2 failed: exit code 3"

/* One membership. */

struct desk {
    struct node_membership membership;
};

static inline struct desk desk_of(enum membership_kind kind) {
    struct desk desk;
    struct membership_settings settings = membership_settings_of(kind);
    node_membership_init(&desk.membership, &settings);
    return desk;
}

static inline void desk_clear(struct desk *desk) {
    node_membership_clear(&desk->membership);
}

static inline const struct membership_knowledge *knowledge_of(const struct desk *desk) {
    return &desk->membership.knowledge;
}

static inline void expect_effects(const struct membership_effects *effects, const char *expected) {
    CLEARED_BY(text_clear) struct text transcript = {0};
    for (size_t i = 0; i < effects->count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        node_effect_describe(
            &(struct node_effect){.part = NODE_MEMBERSHIP, .membership = effects->items[i]},
            &transcript);
    }
    assert_string_equal(text_string(&transcript), expected);
}

static inline void take(struct desk *desk, struct membership_event event, const char *expected) {
    struct membership_effects effects;
    node_membership_step(&desk->membership, &event, &effects);
    expect_effects(&effects, expected);
}

static inline void take_kind(
    struct desk *desk, enum membership_event_kind kind, const char *expected) {
    take(desk, (struct membership_event){.kind = kind}, expected);
}

static inline void take_join(struct desk *desk, int64_t ticket, int attempt, const char *expected) {
    take(desk,
        (struct membership_event){
            .kind = MEMBERSHIP_EVENT_JOIN_ASKED, .join = {.ticket = ticket, .attempt = attempt}},
        expected);
}

static inline void take_account(struct desk *desk, enum membership_event_kind kind,
    const struct failure_account *account, const char *expected) {
    take(desk, (struct membership_event){.kind = kind, .account = account}, expected);
}

static inline void take_hosting(struct desk *desk, int port) {
    take(desk, (struct membership_event){.kind = MEMBERSHIP_EVENT_HOSTING, .port = port}, "");
}

static inline void expect_stage(const struct desk *desk, enum membership_stage stage) {
    assert_int_equal(desk->membership.stage, stage);
}

/* What the rendezvous machine tells. */

static inline void take_told(
    struct desk *desk, enum rendezvous_effect_kind kind, const char *reason, const char *expected) {
    struct rendezvous_effect effect = {.kind = kind, .told = {.reason = reason}};
    take(desk,
        (struct membership_event){
            .kind = membership_event_of_rendezvous(&effect), .rendezvous = {.effect = &effect}},
        expected);
}

static inline void take_cut_off(struct desk *desk, const char *expected) {
    struct rendezvous_effect effect = {
        .kind = RENDEZVOUS_EFFECT_ROUND_OVER, .told = {.reason = "cut off"}};
    take(desk,
        (struct membership_event){
            .kind = MEMBERSHIP_EVENT_WORLD_OVER, .rendezvous = {&effect, true}},
        expected);
}

/* Another node was told to end by this signal, and so is the world over, or the job. */
static inline void take_signalled(struct desk *desk, enum rendezvous_effect_kind kind, int signal,
    struct instant now, const char *expected) {
    struct rendezvous_effect effect = {
        .kind = kind, .told = {.reason = "a node has left", .signal = signal}};
    take(desk,
        (struct membership_event){.kind = membership_event_of_rendezvous(&effect),
            .now = now,
            .rendezvous = {.effect = &effect}},
        expected);
}

/* This node is rank 0 of two in the round. */
static inline void take_world_of(
    struct desk *desk, const struct rendezvous_state *state, const char *expected) {
    struct rendezvous_effect effect = {
        .kind = RENDEZVOUS_EFFECT_WORLD,
        .world = {.state = state,
            .identity = identity_of("me"),
            .round = state->round,
            .node_count = 2},
    };
    take(desk,
        (struct membership_event){
            .kind = MEMBERSHIP_EVENT_WORLD, .rendezvous = {.effect = &effect}},
        expected);
}

static inline void take_world(
    struct desk *desk, int64_t round, const char *reason, const char *expected) {
    struct rendezvous_state state = {.round = round, .is_complete = true};
    strncpy(state.reason, reason, sizeof state.reason - 1);
    take_world_of(desk, &state, expected);
}

/* What the round exchange tells. */

static inline void take_placed(
    struct desk *desk, int64_t round, int64_t restarts, const char *expected) {
    char address[] = "a"; /* the machine's, which may forget it */
    struct round_effect effect = {
        .kind = ROUND_EFFECT_JOINED,
        .round = round,
        .joined = {.node_count = 2,
            .ranks = {0, 4, 0, 4},
            .master_address = address,
            .master_port = 29600,
            .restarts = restarts},
    };
    take(desk, (struct membership_event){.kind = MEMBERSHIP_EVENT_PLACED, .round = &effect},
        expected);
    address[0] = '?';
}

static inline void take_round(
    struct desk *desk, enum round_effect_kind kind, const char *reason, const char *expected) {
    struct round_effect effect = {.kind = kind, .reason = reason};
    take(desk, (struct membership_event){.kind = membership_event_of_round(kind), .round = &effect},
        expected);
}

/* The same, of fixed nodes. */

static inline void take_fixed(struct desk *desk, struct round_effect effect, const char *expected) {
    effect.round = ROUND_OF_FIXED_NODES;
    take(desk,
        (struct membership_event){.kind = membership_event_of_round(effect.kind), .round = &effect},
        expected);
}

/* One of nodes that come and go, on its way. */

#define WORLD_4                                                                                    \
    "note round 4 of job 'job': this node is rank 0 of 2 nodes; round: begin 4 rank=0 of 2"

static inline struct desk desk_joining(void) {
    struct desk desk = desk_of(MEMBERSHIP_CHANGING);
    take_join(&desk, 1, 0, "rendezvous: join_asked");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    return desk;
}

static inline struct desk desk_joined(void) {
    struct desk desk = desk_joining();
    take_world(&desk, 4, "", WORLD_4);
    expect_stage(&desk, MEMBERSHIP_JOINING);
    take_placed(&desk, 4, 0, "rendezvous: placed; agent: joined ticket=1 restarts=0 nodes=2");
    expect_stage(&desk, MEMBERSHIP_JOINED);
    return desk;
}

static inline struct desk desk_in_barrier(void) {
    struct desk desk = desk_joined();
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    expect_stage(&desk, MEMBERSHIP_BARRIER);
    return desk;
}

#endif
