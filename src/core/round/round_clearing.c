/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_clearing.h"

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

void round_clearing_do(struct round_step *step) {
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
