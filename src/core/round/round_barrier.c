/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_barrier.h"

#include <inttypes.h>

/* How long this node waits for the store to say how many nodes are in the barrier. */
#define COUNTING_SECONDS 2
/* How often a node in the barrier counts again. The node that came last may have died, or have lost
 * its connection, after it was counted and before it could tell the others. */
#define RECOUNTING_SECONDS 5

#define ANY_VALUE "<val_ignored>" /* the value that torchrun writes */

static bool is_in_barrier(const struct round_step *step) {
    return step->exchange->phase == ROUND_LEAVING || step->exchange->phase == ROUND_COUNTING;
}

/* A node that delegates is told when the record is closed, which whoever passes the barrier asks
 * for. So it does not wait for the key that the others wait for. */
static bool waits_for_last(const struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    bool delegates = exchange->nodes == NULL && !round_step_is_fixed(step);
    return !delegates || exchange->stays_in_barrier;
}

static void count(struct round_step *step, int64_t amount) {
    round_step_add(step, round_step_key(step, ROUND_KEY_NUM_MEMBERS), amount);
}

static void arm_recount(struct round_step *step) {
    const struct round_exchange *exchange = step->exchange;
    struct instant next =
        instant_after(step->event->now, duration_from_seconds(RECOUNTING_SECONDS));
    bool is_last = !exchange->is_barrier_late && instant_is_before(exchange->deadline, next);
    round_step_arm_timer(step, is_last ? exchange->deadline : next);
}

void round_barrier_enter(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase != ROUND_JOINED || exchange->is_cut_off) {
        text_clear(&exchange->reason);
        text_append(&exchange->reason, "this node is in no round");
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
        return;
    }
    exchange->phase = ROUND_LEAVING;
    exchange->stays_in_barrier = step->event->is_host;
    exchange->deadline = instant_after(step->event->now, exchange->settings.exit_barrier_timeout);
    if (exchange->is_coordinated) {
        round_step_arm_timer(step, exchange->deadline);
        round_step_add(step, round_step_attempt_key(step, ROUND_KEY_FINISHED, 0), 1);
    } else if (exchange->settings.has_succession) {
        round_step_arm_timer(step, exchange->deadline);
        round_step_push(
            step, (struct round_effect){.kind = ROUND_EFFECT_SET,
                      .key = round_step_node_key(step, ROUND_KEY_DONE, exchange->group_rank),
                      .text = ANY_VALUE});
        round_step_want(step, round_step_node_key(step, ROUND_KEY_ALL_DONE, exchange->node_count));
    } else {
        arm_recount(step);
        count(step, 1);
        if (waits_for_last(step)) {
            round_step_want(step, round_step_key(step, ROUND_KEY_LAST_MEMBER));
        }
    }
}

static void let_all_go(struct round_step *step) {
    round_step_set(step, ROUND_KEY_LAST_MEMBER, ANY_VALUE);
}

static void pass(struct round_step *step) {
    round_step_disarm_timer(step);
    step->exchange->phase = ROUND_ENDED;
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_PASSED});
}

static void explain_lateness(struct round_exchange *exchange) {
    double seconds = duration_seconds(exchange->settings.exit_barrier_timeout);
    text_clear(&exchange->reason);
    if (exchange->settings.has_succession) {
        text_append_format(&exchange->reason,
            "not all of %d nodes had come to the exit barrier within %g s", exchange->node_count,
            seconds);
    } else {
        text_append_format(&exchange->reason,
            "%" PRId64 " of %d nodes had come to the exit barrier within %g s", exchange->arrived,
            exchange->node_count, seconds);
    }
}

static void end_late(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    explain_lateness(exchange);
    if (exchange->stays_in_barrier && !exchange->settings.has_succession) {
        exchange->phase = ROUND_LEAVING;
        exchange->is_barrier_late = true;
        arm_recount(step);
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_LATE,
                                  .reason = text_string(&exchange->reason)});
    } else {
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
    }
}

/* Every node that sees the barrier complete writes LAST_MEMBER, since the node that came last may
 * have died before it could. */
void round_barrier_take_count(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (!is_in_barrier(step)) {
        return;
    }
    exchange->arrived = step->event->count;
    bool is_complete = exchange->arrived >= exchange->node_count;
    if (is_complete) {
        let_all_go(step);
    }
    if (exchange->phase == ROUND_COUNTING) {
        (is_complete ? pass : end_late)(step);
    } else if (is_complete && !waits_for_last(step)) {
        pass(step);
    }
}

void round_barrier_take_waited(struct round_step *step) {
    if (is_in_barrier(step)) {
        pass(step);
    }
}

void round_barrier_time_out(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    struct instant now = step->event->now;
    if (exchange->phase == ROUND_COUNTING || exchange->settings.has_succession) {
        end_late(step);
        return;
    }
    if (exchange->is_barrier_late || instant_is_before(now, exchange->deadline)) {
        arm_recount(step);
    } else {
        exchange->phase = ROUND_COUNTING;
        round_step_arm_timer(step, instant_after(now, duration_from_seconds(COUNTING_SECONDS)));
    }
    count(step, 0);
}
