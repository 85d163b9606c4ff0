/* SPDX-License-Identifier: BSD-3-Clause */
/* One node's record store; the test answers its requests one by one, in order. */
#ifndef MUSTER_TESTS_WIRE_RENDEZVOUS_RECORD_FIXTURE_H
#define MUSTER_TESTS_WIRE_RENDEZVOUS_RECORD_FIXTURE_H

#include "unit.h"

#include "wire/rendezvous/rendezvous_record_store.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

struct lone_node {
    struct rendezvous_record_store *store;
    struct record_effects effects; /* all effects so far */
    size_t looked_at;              /* how many of them the test has looked at */
};

static const struct rendezvous_record_store_settings lone_settings = {
    .run_id = "job", .minimum_nodes = 1, .maximum_nodes = 4, .answer_timeout = {7000000000}};

/* The next effect, which must be of this kind. It is valid until the next call of the store. */
static inline const struct record_effect *lone_next(
    struct lone_node *node, enum record_effect_kind kind) {
    assert_true(node->looked_at < node->effects.count);
    const struct record_effect *effect = &node->effects.items[node->looked_at++];
    assert_int_equal(effect->kind, kind);
    return effect;
}

static inline const struct rendezvous_event *lone_told(
    struct lone_node *node, enum rendezvous_event_kind kind) {
    const struct rendezvous_event *told = &lone_next(node, RECORD_EFFECT_TELL)->told;
    assert_int_equal(told->kind, kind);
    assert_int_equal(node->looked_at, node->effects.count); /* no further effect follows */
    return told;
}

/* The tag of the next request, which must be this one. */
static inline uint64_t lone_sent(
    struct lone_node *node, enum store_operation operation, const char *key) {
    const struct record_sending *send = &lone_next(node, RECORD_EFFECT_SEND)->send;
    struct slice actual =
        send->own.request.count > 0 ? send->own.request.keys[0] : send->own.request.key;
    assert_int_equal(send->own.request.operation, operation);
    assert_true(slice_equals(actual, slice_from_string(key)));
    return send->tag;
}

static inline void lone_expect_no_more(const struct lone_node *node) {
    assert_int_equal(node->looked_at, node->effects.count);
}

static inline void lone_reply(struct lone_node *node, uint64_t tag, struct store_reply reply) {
    rendezvous_record_store_take_reply(node->store, tag, &reply, &node->effects);
}

static inline struct store_reply lone_blob(const char *text) {
    return (struct store_reply){.kind = STORE_REPLY_BLOB, .blob = slice_from_string(text)};
}

static inline struct store_reply lone_integer(int64_t integer) {
    return (struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = integer};
}

static inline struct store_reply lone_byte(uint8_t byte) {
    return (struct store_reply){.kind = STORE_REPLY_BYTE, .byte = byte};
}

static inline struct store_reply lone_none(void) {
    return (struct store_reply){.kind = STORE_REPLY_NONE};
}

static inline void lone_ask(struct lone_node *node, struct rendezvous_effect asked) {
    rendezvous_record_store_ask(node->store, &asked, &node->effects);
}

static inline void lone_ask_kind(struct lone_node *node, enum rendezvous_effect_kind kind) {
    lone_ask(node, (struct rendezvous_effect){.kind = kind});
}

#define LONE_RECORD "/torch.rendezvous.job"
#define LONE_OWN LONE_RECORD "/muster/"

static inline void lone_open(struct lone_node *node) {
    lone_ask(node, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = {5}});
    assert_int_equal(lone_next(node, RECORD_EFFECT_OPEN)->deadline.nanoseconds, 5);
    rendezvous_record_store_take_opened(node->store, &node->effects);
}

/* Connects up to the question about the protocol of the job; returns its tag. */
static inline uint64_t lone_ask_protocol(struct lone_node *node, bool has_presence) {
    lone_open(node);
    uint64_t presence = lone_sent(node, STORE_CHECK, LONE_OWN "presence/served");
    uint64_t protocol = lone_sent(node, STORE_COMPARE_SET, LONE_OWN "protocol");
    lone_reply(node, presence, lone_byte(has_presence ? STORE_READY : STORE_NOT_READY));
    return protocol;
}

/* Connects up to the question about the job's settings; returns its tag. */
static inline uint64_t lone_connect(struct lone_node *node, bool has_presence) {
    lone_reply(node, lone_ask_protocol(node, has_presence), lone_blob("1 muster 0.3.0"));
    return lone_sent(node, STORE_COMPARE_SET, LONE_OWN "settings");
}

static inline void lone_be_up(struct lone_node *node, bool has_presence) {
    lone_reply(node, lone_connect(node, has_presence), lone_blob("1:4"));
    const struct rendezvous_event *told = lone_told(node, RENDEZVOUS_EVENT_CONNECTED);
    assert_int_equal(told->connected.has_presence, has_presence);
    assert_true(rendezvous_record_store_is_up(node->store));
}

static inline void lone_set_up(struct lone_node *node) {
    *node = (struct lone_node){.store = rendezvous_record_store_new(&lone_settings)};
}

static inline void lone_tear_down(struct lone_node *node) {
    record_effects_clear(&node->effects);
    rendezvous_record_store_free(node->store);
}

#endif
