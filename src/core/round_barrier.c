/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round_barrier.h"

#include <inttypes.h>

/* How long the store is given to say how many had come. */
#define COUNTING_SECONDS 2

#define ANY_VALUE "<val_ignored>" /* upstream's */

static bool is_in_barrier(const struct round_step *step) {
    return step->exchange->phase == ROUND_LEAVING || step->exchange->phase == ROUND_COUNTING;
}

static void wait_for_last(struct round_step *step) {
    round_step_want(step, round_step_key(step, ROUND_KEY_LAST_MEMBER));
}

void round_barrier_enter(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (exchange->phase != ROUND_JOINED) {
        text_clear(&exchange->reason);
        text_append(&exchange->reason, "this node is in no round");
        round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
        return;
    }
    exchange->phase = ROUND_LEAVING;
    round_step_arm_timer(
        step, instant_after(step->event->now, exchange->settings.exit_barrier_timeout));
    round_step_add(step, 1);
    wait_for_last(step);
}

static void let_all_go(struct round_step *step) {
    round_step_set(step, ROUND_KEY_LAST_MEMBER, ANY_VALUE);
}

static void pass(struct round_step *step) {
    round_step_disarm_timer(step);
    step->exchange->phase = ROUND_ENDED;
    round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_PASSED});
}

static void fail(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    text_clear(&exchange->reason);
    text_append_format(&exchange->reason,
        "%" PRId64 " of %d nodes had come to the exit barrier within %g s", exchange->come,
        exchange->node_count, duration_seconds(exchange->settings.exit_barrier_timeout));
    round_step_end(step, ROUND_EFFECT_BARRIER_FAILED);
}

/* Whoever sees that all have come says so: the one that came last may not have lived to. */
void round_barrier_take_count(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    if (!is_in_barrier(step)) {
        return;
    }
    exchange->come = step->event->count;
    bool is_complete = exchange->come >= exchange->node_count;
    if (is_complete) {
        let_all_go(step);
    }
    if (exchange->phase == ROUND_COUNTING) {
        (is_complete ? pass : fail)(step);
    }
}

void round_barrier_take_waited(struct round_step *step) {
    if (is_in_barrier(step)) {
        pass(step);
    }
}

void round_barrier_time_out(struct round_step *step) {
    if (step->exchange->phase == ROUND_COUNTING) {
        fail(step);
        return;
    }
    step->exchange->phase = ROUND_COUNTING;
    round_step_arm_timer(
        step, instant_after(step->event->now, duration_from_seconds(COUNTING_SECONDS)));
    round_step_add(step, 0);
}
