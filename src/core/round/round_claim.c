/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_claim.h"

#include <inttypes.h>

#include "core/rendezvous/rendezvous_state.h"

#define LOOK_SECONDS 1
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
static struct text *begin_reason(struct round_step *step) {
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

static void look_later(struct round_step *step) {
    struct round_claim *claim = &step->exchange->claim;
    struct instant next = instant_after(step->event->now, duration_from_seconds(LOOK_SECONDS));
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
    struct text *reason = begin_reason(step);
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
    look_later(step);
    return false;
}

void round_claim_wait_on(struct round_step *step) {
    const struct round_claim *claim = &step->exchange->claim;
    struct instant now = step->event->now;
    bool is_late = !instant_is_before(now, step->exchange->deadline);
    bool has_other = claim->other.length > 0;
    if (has_other && (is_late || !instant_is_before(now, claim->deadline))) {
        text_append_format(begin_reason(step), ", which is still there after %g s: " ADVICE,
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

void round_claim_look_for_rival(struct round_step *step) {
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
