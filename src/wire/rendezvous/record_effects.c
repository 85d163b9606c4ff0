/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/record_effects.h"

#include <stdlib.h>

#include "base/memory.h"

static void clear(struct record_effect *effect) {
    if (effect->kind == RECORD_EFFECT_SEND) {
        owned_request_clear(&effect->send.own);
    }
    if (effect->state != NULL) {
        rendezvous_state_clear(effect->state);
    }
    free(effect->state);
    free(effect->reason);
}

void record_effects_clear(struct record_effects *effects) {
    for (size_t i = 0; i < effects->count; i++) {
        clear(&effects->items[i]);
    }
    free(effects->items);
    *effects = (struct record_effects){0};
}

struct record_effect *record_effects_add(
    struct record_effects *effects, enum record_effect_kind kind) {
    effects->items = memory_reserve(
        effects->items, &effects->capacity, effects->count + 1, sizeof *effects->items);
    struct record_effect *effect = &effects->items[effects->count++];
    *effect = (struct record_effect){.kind = kind};
    return effect;
}

static const struct rendezvous_state *keep_state(
    struct record_effect *effect, const struct rendezvous_state *state) {
    if (state != NULL) {
        effect->state = memory_allocate(sizeof *effect->state);
        rendezvous_state_copy(state, effect->state);
    }
    return effect->state;
}

static const char *keep_reason(struct record_effect *effect, const char *reason) {
    effect->reason = memory_duplicate_string(reason);
    return effect->reason;
}

void record_effects_tell(struct record_effects *effects, const struct rendezvous_event *event) {
    struct record_effect *effect = record_effects_add(effects, RECORD_EFFECT_TELL);
    effect->told = *event;
    if (event->kind == RENDEZVOUS_EVENT_RECORD) {
        effect->told.state = keep_state(effect, event->state);
    } else if (event->kind == RENDEZVOUS_EVENT_WRITTEN) {
        effect->told.written.state = keep_state(effect, event->written.state);
    } else if (event->kind == RENDEZVOUS_EVENT_STANDING) {
        effect->told.standing.state = keep_state(effect, event->standing.state);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        effect->told.lost.reason = keep_reason(effect, event->lost.reason);
    } else if (event->kind == RENDEZVOUS_EVENT_BROKEN) {
        effect->told.reason = keep_reason(effect, event->reason);
    }
}
