/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_diagnosis.h"

#include <inttypes.h>

/* How long this node waits for the store to answer all questions. */
#define DIAGNOSIS_SECONDS 2

/* How many missing nodes the reason names. It gives only the number of the others. */
#define NAMED_NODES 8

static void begin_reason(struct round_step *step) {
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
    begin_reason(step);
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
    begin_reason(step);
    conclude(step, "the store does not answer");
}
