/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_step.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static void round_clearing_do(struct round_step *step);

void round_step_push(struct round_step *step, struct round_effect effect) {
    assert(step->effects->count < ROUND_EFFECTS_MAXIMUM);
    effect.round = step->exchange->round;
    step->effects->items[step->effects->count++] = effect;
}

void round_step_push_key(
    struct round_step *step, enum round_effect_kind kind, struct round_key key) {
    round_step_push(step, (struct round_effect){.kind = kind, .key = key});
}

void round_step_set(struct round_step *step, enum round_key_kind key, const char *text) {
    round_step_push(
        step, (struct round_effect){
                  .kind = ROUND_EFFECT_SET, .key = round_step_key(step, key), .text = text});
}

void round_step_add(struct round_step *step, struct round_key key, int64_t amount) {
    round_step_push(
        step, (struct round_effect){.kind = ROUND_EFFECT_ADD, .key = key, .amount = amount});
}

struct round_key round_step_key(const struct round_step *step, enum round_key_kind kind) {
    return round_step_node_key(step, kind, 0);
}

struct round_key round_step_node_key(
    const struct round_step *step, enum round_key_kind kind, int node) {
    return (struct round_key){.kind = kind, .round = step->exchange->round, .node = node};
}

struct round_key round_step_attempt_key(
    const struct round_step *step, enum round_key_kind kind, int attempts_on) {
    return (struct round_key){.kind = kind, .round = step->exchange->restarts + attempts_on};
}

static bool are_equal(const struct round_key *left, const struct round_key *right) {
    return left->kind == right->kind && left->round == right->round && left->node == right->node;
}

void round_step_want(struct round_step *step, struct round_key key) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->is_waiting) {
        exchange->has_wanted = !are_equal(&exchange->waiting, &key);
        exchange->wanted = key;
        return;
    }
    exchange->is_waiting = true;
    exchange->waiting = key;
    round_step_push_key(step, ROUND_EFFECT_WAIT, key);
}

void round_step_arm_timer(struct round_step *step, struct instant deadline) {
    step->exchange->is_timer_armed = true;
    step->exchange->timer = deadline;
    round_step_push(
        step, (struct round_effect){.kind = ROUND_EFFECT_ARM_TIMER, .deadline = deadline});
}

void round_step_disarm_timer(struct round_step *step) {
    if (step->exchange->is_timer_armed) {
        step->exchange->is_timer_armed = false;
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_DISARM_TIMER});
    }
}

void round_step_end(struct round_step *step, enum round_effect_kind kind) {
    round_step_disarm_timer(step);
    step->exchange->phase = ROUND_ENDED;
    round_step_push(
        step, (struct round_effect){.kind = kind, .reason = text_string(&step->exchange->reason)});
}

void round_step_fail(struct round_step *step, const char *format, ...) {
    char reason[1024]; /* holds at most two identities, whose size is limited */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    text_clear(&step->exchange->reason);
    text_append(&step->exchange->reason, reason);
    round_step_end(step, ROUND_EFFECT_JOIN_FAILED);
}

const struct node_identity *round_step_node(const struct round_step *step, int node) {
    const struct round_exchange *exchange = step->exchange;
    if (exchange->nodes != NULL) {
        return &exchange->nodes[node];
    }
    return node == exchange->group_rank ? &exchange->self : &exchange->other;
}

void round_step_describe_node(const struct round_step *step, int node, struct text *out) {
    text_append_format(out, "node %d", node);
    if (!round_step_is_fixed(step)) {
        text_append(out, " (");
        node_identity_describe(round_step_node(step, node), out);
        text_append(out, ")");
    }
}

bool round_step_is_fixed(const struct round_step *step) {
    return step->exchange->round == ROUND_OF_FIXED_NODES;
}

bool round_step_is_first(const struct round_step *step) {
    return step->exchange->group_rank == 0;
}

bool round_step_is_foreign(const struct round_step *step, int node) {
    return !node_identity_is_muster(round_step_node(step, node));
}

bool round_step_awaits_commit(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    bool is_awaited = exchange->settings.has_succession && !exchange->is_committed;
    if (is_awaited) {
        round_step_want(step, round_step_key(step, ROUND_KEY_COMMITTED));
    }
    return is_awaited;
}

void round_step_join(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase != ROUND_JOINING || exchange->is_held || !exchange->has_ranks ||
        exchange->address.stage != ROUND_ADDRESS_KNOWN) {
        return;
    }
    if (round_step_awaits_commit(step)) {
        return;
    }
    exchange->phase = ROUND_JOINED;
    round_step_disarm_timer(step);
    round_step_push(step, (struct round_effect){
                              .kind = ROUND_EFFECT_JOINED,
                              .joined = {.group_rank = exchange->group_rank,
                                  .node_count = exchange->node_count,
                                  .ranks = exchange->ranks,
                                  .master_address = text_string(&exchange->address.text),
                                  .master_port = exchange->address.port,
                                  .restarts = exchange->restarts},
                          });
    round_clearing_do(step);
    if (exchange->is_coordinated) {
        round_step_want(step, round_step_attempt_key(step, ROUND_KEY_END, 0));
    }
}

void round_step_gather(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (!exchange->is_ranked && !exchange->has_ranks && !exchange->is_gathering) {
        exchange->is_gathering = true;
        round_step_want(
            step, round_step_node_key(step, ROUND_KEY_ALL_ROLE_INFOS, exchange->node_count));
    }
}

/* The exit barrier. */

bool round_step_is_in_barrier(const struct round_step *step) {
    return step->exchange->phase == ROUND_LEAVING || step->exchange->phase == ROUND_COUNTING;
}

void round_barrier_take_waited(struct round_step *step) {
    if (!round_step_is_in_barrier(step)) {
        return;
    }
    round_step_disarm_timer(step);
    step->exchange->phase = ROUND_ENDED;
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_PASSED});
}

/* Clearing. */

/* Of a round in which this node was not it knows nothing. */
void round_clearing_note_begin(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    struct round_clearing *clearing = &step->exchange->clearing;
    if (!clearing->has_begun || exchange->round != clearing->last + 1) {
        clearing->keyed_until = exchange->round - 1;
    }
    if (!exchange->is_ranked) {
        clearing->keyed_until = exchange->round;
    }
    if (exchange->node_count > clearing->largest_count) {
        clearing->largest_count = exchange->node_count;
    }
    clearing->has_begun = true;
    clearing->last = exchange->round;
    clearing->had_roll = clearing->had_roll || step->event->begin.had_roll;
}

/* This node has joined. */
static void round_clearing_do(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    struct round_clearing *clearing = &step->exchange->clearing;
    int64_t end = exchange->round - ROUND_EXCHANGE_ROUNDS_KEPT + 1;
    int64_t first = end - ROUND_EXCHANGE_CLEARED_MAXIMUM;
    first = first > clearing->cleared ? first : clearing->cleared;
    if (exchange->has_foreign || !round_step_is_first(step) || first >= end) {
        return;
    }
    clearing->cleared = end;
    bool is_bare = first > clearing->keyed_until && !clearing->had_roll;
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_CLEAR,
                              .clear = {first, end - 1, is_bare ? 1 : clearing->largest_count,
                                  clearing->largest_count}});
}
