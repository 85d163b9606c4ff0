/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_fixed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/round/round_barrier.h"
#include "core/round/round_claim.h"
#include "core/workers/signal_name.h"

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

void round_fixed_begin(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    exchange->round = ROUND_OF_FIXED_NODES;
    exchange->restarts = step->event->begin.attempt;
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

void round_fixed_meet(struct round_step *step) {
    step->exchange->phase = ROUND_JOINING;
    round_step_add(step, round_step_key(step, ROUND_KEY_INIT), 1);
}

void round_fixed_start(struct round_step *step) {
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

void round_fixed_wait_on(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    if (is_meeting(exchange) && instant_is_before(step->event->now, exchange->deadline)) {
        round_step_push_key(
            step, ROUND_EFFECT_CHECK, round_step_attempt_key(step, ROUND_KEY_START, 0));
        round_claim_look_for_rival(step);
        look_later(step);
    } else {
        round_fixed_join_late(step);
    }
}

void round_fixed_take_checked(struct round_step *step) {
    if (step->event->is_present && is_meeting(step->exchange)) {
        round_step_push_key(step, ROUND_EFFECT_GET, step->event->key);
    }
}

/* Ends that this node finds by itself. */

void round_fixed_restart(struct round_step *step) {
    if (step->exchange->is_coordinated && step->exchange->phase == ROUND_JOINED) {
        decide(step, round_step_attempt_key(step, ROUND_KEY_END, 0), "restart");
    }
}

void round_fixed_fail(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase != ROUND_ENDED) {
        round_step_disarm_timer(step);
        if (exchange->is_coordinated || is_meeting(exchange)) {
            write_failure(step, 0, step->event->signal);
        }
        exchange->phase = ROUND_ENDED;
    }
}

static void fail_unreached(struct round_step *step, const char *what) {
    round_step_fail(
        step, "%s: no connection to the job's store at %s", what, step->exchange->settings.where);
}

void round_fixed_join_late(struct round_step *step) {
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

void round_fixed_leave_late(struct round_step *step) {
    if (step->exchange->stays_in_barrier) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_LATE,
                                  .reason = "other nodes still work"});
    } else {
        write_failure(step, 1, 0);
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
    }
}

/* What the other nodes say. */

void round_fixed_take_count(struct round_step *step) {
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
    fail_with_peer(
        step, (int)node, (int)signal, signal != 0 ? "a node was told to end" : "a node failed");
}

static void take_restart(struct round_step *step) {
    round_step_disarm_timer(step);
    step->exchange->phase = ROUND_JOINED;
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_PEER_RESTART,
                              .attempt = step->exchange->restarts + 1});
}

/* A decision about an earlier attempt is ignored. */
void round_fixed_take_decision(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    const struct round_key *key = &step->event->key;
    const char *decision = step->event->values.decision;
    if (exchange->phase == ROUND_ENDED || key->round != exchange->restarts) {
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
void round_fixed_take_renewed(struct round_step *step) {
    struct round_key key = round_step_attempt_key(step, ROUND_KEY_START, 0);
    decide(step, key, "go");
    round_step_want(step, key);
}

void round_fixed_lose_connection(struct round_step *step) {
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
        }
        break;
    case ROUND_IDLE:
    case ROUND_DIAGNOSING:
    case ROUND_ENDED:
        break;
    }
}
