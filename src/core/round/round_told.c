/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_told.h"

#include "core/round/round_address.h"

static bool take_ranks(struct round_step *step, const struct rank_assignment *ranks) {
    struct round_exchange *exchange = step->exchange;
    exchange->ranks = *ranks;
    exchange->has_ranks = true;
    bool are_sound = ranks->world_size - ranks->base_rank >= exchange->settings.local_world_size;
    if (!are_sound) {
        round_step_fail(step, "the host of the job's store has told ranks that make no sense");
    }
    return are_sound;
}

bool round_told_begin(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct rank_assignment *ranks = &step->event->begin.ranks;
    exchange->is_held = step->event->begin.is_held;
    exchange->is_ranked = exchange->is_held || ranks->world_size > 0;
    return exchange->is_held || !exchange->is_ranked || take_ranks(step, ranks);
}

void round_told_take_release(struct round_step *step) {
    struct round_exchange *exchange = step->exchange;
    const struct round_event *event = step->event;
    if (exchange->phase != ROUND_JOINING || !exchange->is_held) {
        return;
    }
    exchange->is_held = false;
    if (!take_ranks(step, &event->released.ranks)) {
        return;
    }
    if (round_step_is_first(step)) {
        round_step_join(step);
    } else if (event->released.master_address != NULL) {
        round_address_be_told(step, event->released.master_address, event->released.master_port);
    } else {
        round_address_start(step);
    }
}

void round_told_note_opened(struct round_step *step) {
    const struct round_address *agreed = &step->exchange->address;
    if (step->exchange->is_ranked) {
        round_step_push(step, (struct round_effect){.kind = ROUND_EFFECT_OPENED,
                                  .opened = {text_string(&agreed->text), agreed->port}});
    }
}
