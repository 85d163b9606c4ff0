/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_step.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"

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

/* Static round. */

/* How long a node waits for a rank that another one has. It is more than the three minutes after
 * which a store ends the connection of a machine that does not answer. */
#define ROUND_CLAIM_SECONDS 200

#define CLAIM_LOOK_SECONDS 1
#define ADVICE "give each node a rank of its own"

static struct round_key own_key(const struct round_step *step, enum round_key_kind kind) {
    return round_step_node_key(step, kind, step->exchange->group_rank);
}

/* "node1 (pid 4711)"; text that is no identity as it is. */
static void append_name(struct text *out, const char *claim) {
    struct node_identity identity;
    if (node_identity_parse(claim, &identity)) {
        text_append_format(out, "%s (pid %" PRId64 ")", identity.address, identity.pid);
    } else {
        text_append(out, claim);
    }
}

/* "rank 1 (--node-rank) belongs to another node, node1 (pid 4711)" */
static struct text *claim_begin_reason(struct round_step *step) {
    struct text *reason = &step->exchange->reason;
    text_clear(reason);
    text_append_format(
        reason, "rank %d (--node-rank) belongs to another node, ", step->exchange->group_rank);
    append_name(reason, text_string(&step->exchange->claim.other));
    return reason;
}

static void append_own_name(const struct round_step *step, struct text *reason) {
    text_append(reason, ", and this one is ");
    append_name(reason, step->exchange->settings.claim);
}

static void tell(struct round_step *step) {
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_RANK_DISPUTED,
                              .reason = text_string(&step->exchange->reason)});
}

/* The node without the rank. */

static void look(struct round_step *step) {
    round_step_push_key(step, ROUND_EFFECT_GET, own_key(step, ROUND_KEY_CLAIM));
}

/* The host of the store logs each claim that it refuses, so a node that knows of another one only
 * looks until that one is gone. */
static void ask(struct round_step *step) {
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_SET,
                              .key = own_key(step, ROUND_KEY_CLAIM),
                              .text = step->exchange->settings.claim});
    look(step);
}

static void claim_look_later(struct round_step *step) {
    struct round_claim *claim = &step->exchange->claim;
    struct instant next =
        instant_after(step->event->now, duration_from_seconds(CLAIM_LOOK_SECONDS));
    struct instant end = claim->other.length > 0
                             ? instant_earlier(claim->deadline, step->exchange->deadline)
                             : step->exchange->deadline;
    round_step_arm_timer(step, instant_earlier(next, end));
}

static void note_other(struct round_step *step, const char *other) {
    struct round_claim *claim = &step->exchange->claim;
    text_clear(&claim->other);
    text_append(&claim->other, other);
    claim->is_told = false;
    claim->since = step->event->now;
    claim->deadline = instant_after(step->event->now, duration_from_seconds(ROUND_CLAIM_SECONDS));
}

static void tell_both(struct round_step *step) {
    struct text *reason = claim_begin_reason(step);
    append_own_name(step, reason);
    text_append_format(reason,
        ": " ADVICE "; this one waits for %d s, in case it has been started again and the other is "
        "gone",
        ROUND_CLAIM_SECONDS);
    step->exchange->claim.is_told = true;
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_SET,
                              .key = own_key(step, ROUND_KEY_RIVAL),
                              .text = step->exchange->settings.claim});
    tell(step);
}

bool round_claim_begin(struct round_step *step) {
    if (step->exchange->settings.claim == NULL) {
        return true;
    }
    step->exchange->phase = ROUND_CLAIMING;
    round_step_push_key(step, ROUND_EFFECT_CHECK, round_step_key(step, ROUND_KEY_CLAIM_SERVED));
    return false;
}

bool round_claim_take_checked(struct round_step *step) {
    if (step->exchange->phase != ROUND_CLAIMING) {
        return false;
    }
    if (step->event->is_present) {
        ask(step);
    }
    return !step->event->is_present;
}

bool round_claim_take_values(struct round_step *step) {
    struct round_claim *claim = &step->exchange->claim;
    const char *found = step->event->values.claim;
    if (step->exchange->phase != ROUND_CLAIMING) {
        return false;
    }
    if (found != NULL && text_equals(found, step->exchange->settings.claim)) {
        return true;
    }
    if (found == NULL) {
        text_clear(&claim->other);
    } else if (!text_equals(found, text_string(&claim->other))) {
        note_other(step, found);
    } else if (!claim->is_told) {
        tell_both(step);
    }
    claim_look_later(step);
    return false;
}

void round_claim_wait_on(struct round_step *step) {
    const struct round_claim *claim = &step->exchange->claim;
    struct instant now = step->event->now;
    bool is_late = !instant_is_before(now, step->exchange->deadline);
    bool has_other = claim->other.length > 0;
    if (has_other && (is_late || !instant_is_before(now, claim->deadline))) {
        text_append_format(claim_begin_reason(step), ", which is still there after %g s: " ADVICE,
            duration_seconds(instant_until(claim->since, now)));
        round_step_end(step, ROUND_EFFECT_JOIN_FAILED);
    } else if (is_late) {
        round_step_fail(step, "the job's store at %s does not say whether rank %d is free",
            step->exchange->settings.where, step->exchange->group_rank);
    } else if (has_other) {
        look(step);
    } else {
        ask(step);
    }
}

/* The node that has it. */

/* A node that waits for the meeting looks whether another one has come with its rank. */
static void round_claim_look_for_rival(struct round_step *step) {
    if (step->exchange->settings.claim != NULL) {
        round_step_push_key(step, ROUND_EFFECT_CHECK, own_key(step, ROUND_KEY_RIVAL));
    }
}

void round_claim_take_rival(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    struct text *other = &exchange->claim.other;
    const char *found = step->event->values.claim;
    if (exchange->phase != ROUND_JOINING || found == NULL ||
        text_equals(found, exchange->settings.claim) || text_equals(found, text_string(other))) {
        return;
    }
    text_clear(other);
    text_append(other, found);
    text_clear(&exchange->reason);
    text_append_format(&exchange->reason, "another node has come with rank %d (--node-rank), ",
        exchange->group_rank);
    append_name(&exchange->reason, found);
    append_own_name(step, &exchange->reason);
    text_append(&exchange->reason, ", which keeps the rank: " ADVICE);
    tell(step);
}

void round_claim_clear(struct round_claim *claim) {
    text_clear(&claim->other);
    *claim = (struct round_claim){0};
}

/* Diagnosis. */

/* How long this node waits for the store to answer all questions. */
#define DIAGNOSIS_SECONDS 2

/* How many missing nodes the reason names. It gives only the number of the others. */
#define NAMED_NODES 8

static void diagnosis_begin_reason(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    text_clear(&exchange->reason);
    text_append_format(&exchange->reason,
        "round %" PRId64 " did not come about within %g s: ", exchange->round,
        duration_seconds(exchange->settings.timeout));
}

static void conclude(struct round_step *step, const char *what) {
    text_append(&step->exchange->reason, what);
    round_step_end(step, ROUND_EFFECT_JOIN_FAILED);
}

/* "node 0 (a_1_0) has not …" */
static void blame(struct round_step *step, int node, const char *what) {
    round_step_describe_node(step, node, &step->exchange->reason);
    conclude(step, what);
}

/* Rank 0 asks for the role infos of the other nodes, one after the other. */

static void examine(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->examined < exchange->node_count) {
        round_step_push_key(step, ROUND_EFFECT_CHECK,
            round_step_node_key(step, ROUND_KEY_ROLE_INFO, exchange->examined));
    } else if (exchange->missing == 0) {
        conclude(step, "the store answers too slowly");
    } else {
        if (exchange->missing > NAMED_NODES) {
            text_append_format(&exchange->reason, " and %d more", exchange->missing - NAMED_NODES);
        }
        conclude(step, exchange->missing == 1 ? " has not reported" : " have not reported");
    }
}

static void note_missing(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->missing < NAMED_NODES) {
        if (exchange->missing > 0) {
            text_append(&exchange->reason, ", ");
        }
        round_step_describe_node(step, exchange->examined, &exchange->reason);
    }
    exchange->missing++;
}

static void diagnose_first(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->address.stage == ROUND_ADDRESS_SEEKING) {
        conclude(step, "the store does not say what earlier rounds agreed on");
    } else if (exchange->has_ranks) {
        blame(step, exchange->address.owner,
            " has not published the address of its store for the workers");
    } else {
        exchange->examined = 1;
        exchange->missing = 0;
        examine(step);
    }
}

static void blame_first(struct round_step *step) {
    if (step->event->is_present) {
        blame(step, 0, " has not assigned the ranks");
    } else if (round_step_is_foreign(step, 0)) {
        blame(step, 0,
            " has not published the address of the workers' store; an agent of torchrun does so "
            "once, unless TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 is set for it");
    } else {
        blame(step, 0, " has not published the address of the workers' store");
    }
}

void round_diagnosis_start(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    exchange->phase = ROUND_DIAGNOSING;
    round_step_arm_timer(
        step, instant_after(step->event->now, duration_from_seconds(DIAGNOSIS_SECONDS)));
    diagnosis_begin_reason(step);
    if (exchange->has_ranks && exchange->address.stage == ROUND_ADDRESS_KNOWN) {
        conclude(step, "the host of the job's store could not commit it to the register");
    } else if (exchange->address.stage == ROUND_ADDRESS_OPENING) {
        conclude(step, "the store for the workers was not opened");
    } else if (exchange->is_held) {
        conclude(step, "not all of its nodes are ready: old workers still end on some of them, or "
                       "their agents stand still");
    } else if (round_step_is_first(step)) {
        diagnose_first(step);
    } else {
        round_step_push_key(step, ROUND_EFFECT_CHECK, round_step_key(step, ROUND_KEY_ADDRESS));
    }
}

void round_diagnosis_take_checked(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct round_key *key = &step->event->key;
    if (key->round != exchange->round) {
        return;
    }
    if (!round_step_is_first(step)) {
        if (key->kind == ROUND_KEY_ADDRESS) {
            blame_first(step);
        }
    } else if (key->kind == ROUND_KEY_ROLE_INFO && key->node == exchange->examined) {
        if (!step->event->is_present) {
            note_missing(step);
        }
        exchange->examined++;
        examine(step);
    }
}

void round_diagnosis_time_out(struct round_step *step) {
    diagnosis_begin_reason(step);
    conclude(step, "the store does not answer");
}

/* Fixed. */

#define FAILED_WORD "failed "
#define SIGNAL_WORD "signal "
#define SIGNAL_MAXIMUM 64
/* How often a node that waits for the first of the job's meetings looks whether another node has
 * given it up. */
#define LOOK_SECONDS 2

static void decide(struct round_step *step, struct round_key key, const char *text) {
    round_step_push(
        step, (struct round_effect){.kind = ROUND_EFFECT_DECIDE, .key = key, .text = text});
}

/* Writes the failure to every key for which another node may wait, now or in its next step. A key
 * that is decided already stays as it is. `attempts_on` 1 writes only the keys of the next attempt:
 * the attempt that runs may still succeed, but no further one begins. */
static void write_failure(struct round_step *step, int attempts_on, int signal) {
    struct round_exchange *exchange = step->exchange;
    static const enum round_key_kind decisions[] = {
        ROUND_KEY_GATHERED, ROUND_KEY_START, ROUND_KEY_END};
    if (exchange->is_cut_off) {
        return;
    }
    snprintf(exchange->failure, sizeof exchange->failure,
        signal != 0 ? FAILED_WORD "%d " SIGNAL_WORD "%d" : FAILED_WORD "%d", exchange->group_rank,
        signal);
    for (; attempts_on <= 1; attempts_on++) {
        for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
            decide(
                step, round_step_attempt_key(step, decisions[i], attempts_on), exchange->failure);
        }
    }
}

/* Joining. */

static void arm_join_timer(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    exchange->deadline = instant_after(step->event->now, exchange->settings.timeout);
    round_step_arm_timer(step, exchange->deadline);
}

/* At the first meeting a node waits for torchrun's keys, and does not know yet whether all nodes
 * are Muster's. So nothing that another node writes ends its wait early, and it looks at a key of
 * Muster's now and then. Nothing else is written to that key of the first attempt. */
static bool is_meeting(const struct round_exchange *exchange) {
    return exchange->phase == ROUND_JOINING && !exchange->has_ranks;
}

static void look_later(struct round_step *step) {
    struct instant next = instant_after(step->event->now, duration_from_seconds(LOOK_SECONDS));
    round_step_arm_timer(step, instant_earlier(next, step->exchange->deadline));
}

static void connect_to_store(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    exchange->phase = ROUND_CONNECTING;
    exchange->group_rank = step->event->begin.group_rank;
    exchange->node_count = step->event->begin.node_count;
    exchange->address.stage = ROUND_ADDRESS_KNOWN;
    text_append(&exchange->address.text, step->event->begin.master_address);
    exchange->address.port = step->event->begin.master_port;
    arm_join_timer(step);
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_CONNECT});
}

static void join_next_attempt(struct round_step *step) {
    enum round_key_kind awaited = round_step_is_first(step) ? ROUND_KEY_GATHERED : ROUND_KEY_START;
    arm_join_timer(step);
    round_step_add(step, round_step_attempt_key(step, ROUND_KEY_READY, 0), 1);
    round_step_want(step, round_step_attempt_key(step, awaited, 0));
}

void static_round_begin(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    exchange->round = ROUND_OF_FIXED_NODES;
    exchange->restarts = step->event->begin.attempt;
    exchange->has_restarted = false;
    if (exchange->phase == ROUND_IDLE) {
        connect_to_store(step);
        return;
    }
    if (exchange->phase == ROUND_ENDED) {
        round_step_fail(step, "the job is over");
        return;
    }
    exchange->phase = ROUND_JOINING;
    if (exchange->is_coordinated) {
        join_next_attempt(step);
    } else {
        round_step_join(step); /* ranks are fixed, and the other nodes do not know of restarts */
    }
}

void static_round_meet(struct round_step *step) {
    step->exchange->phase = ROUND_JOINING;
    round_step_add(step, round_step_key(step, ROUND_KEY_INIT), 1);
}

void static_round_start(struct round_step *step) {
    if (step->exchange->has_ranks) {
        round_step_join(step);
    } else if (round_step_is_first(step)) {
        round_step_gather(step);
    } else {
        round_step_want(
            step, round_step_node_key(step, ROUND_KEY_ASSIGNED_RANKS, step->exchange->group_rank));
    }
    if (is_meeting(step->exchange)) {
        look_later(step);
    }
}

void static_round_wait_on(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    if (is_meeting(exchange) && instant_is_before(step->event->now, exchange->deadline)) {
        round_step_push_key(
            step, ROUND_EFFECT_CHECK, round_step_attempt_key(step, ROUND_KEY_START, 0));
        round_claim_look_for_rival(step);
        look_later(step);
    } else {
        static_round_join_late(step);
    }
}

void static_round_take_checked(struct round_step *step) {
    if (step->event->is_present && is_meeting(step->exchange)) {
        round_step_push_key(step, ROUND_EFFECT_GET, step->event->key);
    }
}

/* Ends that this node finds by itself. */

void static_round_restart(struct round_step *step) {
    if (step->exchange->is_coordinated && step->exchange->phase == ROUND_JOINED) {
        step->exchange->has_restarted = true;
        decide(step, round_step_attempt_key(step, ROUND_KEY_END, 0), "restart");
    }
}

void static_round_fail(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase != ROUND_ENDED) {
        round_step_disarm_timer(step);
        if (exchange->is_coordinated || is_meeting(exchange)) {
            write_failure(step, 0, step->event->signal);
        }
        if (exchange->is_coordinated && !exchange->is_cut_off && step->event->signal == 0) {
            round_step_push_key(
                step, ROUND_EFFECT_GET, round_step_attempt_key(step, ROUND_KEY_END, 0));
        }
        exchange->phase = ROUND_ENDED;
    }
}

static void fail_unreached(struct round_step *step, const char *what) {
    round_step_fail(
        step, "%s: no connection to the job's store at %s", what, step->exchange->settings.where);
}

void static_round_join_late(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    if (exchange->phase == ROUND_CONNECTING) {
        fail_unreached(step, "not all nodes joined in time");
        return;
    }
    if (exchange->is_coordinated) {
        write_failure(step, 0, 0);
    }
    round_step_fail(step,
        "not all nodes joined in time: the job needs all of its %d nodes (--nnodes), with ranks "
        "from 0 to %d (--node-rank), within %g s (--rdzv-conf timeout)",
        exchange->node_count, exchange->node_count - 1,
        duration_seconds(exchange->settings.timeout));
}

void static_round_leave_late(struct round_step *step) {
    if (step->exchange->stays_in_barrier) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_LATE,
                                  .reason = "other nodes still work"});
    } else {
        write_failure(step, 1, 0);
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
    }
}

/* What the other nodes say. */

void static_round_take_count(struct round_step *step) {
    struct round_key key = step->event->key;
    if (step->event->count != step->exchange->node_count) {
        return;
    }
    if (key.kind == ROUND_KEY_READY) {
        key.kind = ROUND_KEY_GATHERED;
        decide(step, key, "all");
    } else if (key.kind == ROUND_KEY_FINISHED) {
        key.kind = ROUND_KEY_END;
        decide(step, key, "done");
    }
}

/* `node`: the node that failed; -1: no single node. `signal`: the signal that told it to end; 0:
 * none. */
static void fail_with_peer(struct round_step *step, int node, int signal, const char *what) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase == ROUND_LEAVING || exchange->phase == ROUND_COUNTING) {
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
        return;
    }
    text_clear(&exchange->reason);
    text_append(&exchange->reason, what);
    if (signal != 0) {
        text_append_format(&exchange->reason, " by %s", signal_name_from_number(signal));
    }
    if (node >= 0) {
        text_append_format(&exchange->reason, " (node %d)", node);
    }
    round_step_end(step, ROUND_EFFECT_PEER_FAILED);
    step->effects->items[step->effects->count - 1].signal = signal;
}

/* Reads "failed NODE" or "failed NODE signal NUMBER". An invalid node becomes -1, an invalid signal
 * 0. */
static void take_peer_failure(struct round_step *step) {
    int64_t node = -1;
    int64_t signal = 0;
    char *words = memory_duplicate_string(step->event->values.decision + strlen(FAILED_WORD));
    char *second = strstr(words, " " SIGNAL_WORD);
    if (second != NULL) {
        *second = '\0';
        if (text_parse_integer(second + strlen(" " SIGNAL_WORD), &signal) != FAILURE_NONE ||
            signal > SIGNAL_MAXIMUM || !signal_may_be_handled((int)signal)) {
            signal = 0;
        }
    }
    if (text_parse_integer(words, &node) != FAILURE_NONE || node < 0 ||
        node >= step->exchange->node_count) {
        node = -1;
    }
    free(words);
    bool is_own_failure = step->exchange->phase == ROUND_ENDED;
    if (!is_own_failure || (node >= 0 && node != step->exchange->group_rank && signal == 0)) {
        fail_with_peer(
            step, (int)node, (int)signal, signal != 0 ? "a node was told to end" : "a node failed");
    }
}

/* A node that has decided so itself hears it as the others do, and needs no telling. */
static void take_restart(struct round_step *step) {
    round_step_disarm_timer(step);
    step->exchange->phase = ROUND_JOINED;
    if (step->exchange->has_restarted) {
        return;
    }
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_PEER_RESTART,
                              .attempt = step->exchange->restarts + 1});
}

/* A decision about an earlier attempt is ignored. A node that has failed itself wants to know only
 * whether another one was first. */
void static_round_take_decision(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    const struct round_key *key = &step->event->key;
    const char *decision = step->event->values.decision;
    bool is_over = exchange->phase == ROUND_ENDED &&
                   (key->kind != ROUND_KEY_END || !text_starts_with(decision, FAILED_WORD));
    if (is_over || key->round != exchange->restarts) {
        return;
    }
    if (text_starts_with(decision, FAILED_WORD)) {
        take_peer_failure(step);
    } else if (key->kind == ROUND_KEY_GATHERED) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_OPEN_WORKER_STORE});
    } else if (key->kind == ROUND_KEY_START) {
        round_step_join(step);
    } else if (text_equals(decision, "restart")) {
        take_restart(step);
    } else {
        round_barrier_take_waited(step);
    }
}

/* Rank 0 starts the attempt on all nodes, itself included, unless a node has failed meanwhile. */
void static_round_take_renewed(struct round_step *step) {
    struct round_key key = round_step_attempt_key(step, ROUND_KEY_START, 0);
    decide(step, key, "go");
    round_step_want(step, key);
}

void static_round_lose_connection(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    exchange->is_cut_off = true;
    switch (exchange->phase) {
    case ROUND_CONNECTING:
        fail_unreached(step, "the store cannot be reached");
        break;
    case ROUND_CLAIMING:
    case ROUND_JOINING:
        round_step_fail(step, "the store is gone (node 0)");
        break;
    case ROUND_JOINED:
    case ROUND_LEAVING:
    case ROUND_COUNTING:
        if (exchange->is_coordinated || exchange->phase != ROUND_JOINED) {
            fail_with_peer(step, 0, 0, "the store is gone");
            step->effects->items[step->effects->count - 1].is_cut_off = true;
        }
        break;
    case ROUND_IDLE:
    case ROUND_DIAGNOSING:
    case ROUND_ENDED:
        break;
    }
}
