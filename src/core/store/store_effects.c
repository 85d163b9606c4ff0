/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_effects.h"

#include <stdlib.h>

#include "base/memory.h"

/* An array that is larger than this is freed at the reset. */
#define KEPT_EFFECTS 1024
#define KEPT_BLOBS 4096

void store_effects_reset(struct store_effects *effects) {
    effects->count = 0;
    effects->is_full = false;
    if (effects->capacity > KEPT_EFFECTS) {
        free(effects->items);
        effects->items = NULL;
        effects->capacity = 0;
    }
    if (effects->blob_capacity > KEPT_BLOBS) {
        free(effects->blobs);
        effects->blobs = NULL;
        effects->blob_capacity = 0;
    }
}

void store_effects_clear(struct store_effects *effects) {
    free(effects->items);
    free(effects->blobs);
    *effects = (struct store_effects){0};
}

bool store_effects_have_room(struct store_effects *effects, size_t count) {
    size_t needed = effects->count + count;
    if (needed <= effects->capacity || needed <= KEPT_EFFECTS) {
        return true;
    }
    if (!spare_memory_is_there(needed * sizeof *effects->items)) {
        return false;
    }
    effects->items =
        memory_reserve(effects->items, &effects->capacity, needed, sizeof *effects->items);
    return true;
}

static struct store_effect *append(struct store_effects *effects) {
    effects->items = memory_reserve(
        effects->items, &effects->capacity, effects->count + 1, sizeof *effects->items);
    return &effects->items[effects->count++];
}

void store_effects_reply(struct store_effects *effects, struct store_connection *connection,
    const struct store_reply *reply) {
    struct store_effect *effect = append(effects);
    effect->kind = STORE_EFFECT_REPLY;
    effect->may_wait = false;
    effect->connection = connection;
    effect->reply = *reply;
}

void store_effects_give_way(struct store_effects *effects, struct store_connection *connection) {
    const struct store_reply none = {.kind = STORE_REPLY_POP};
    store_effects_reply(effects, connection, &none);
    effects->items[effects->count - 1].may_wait = true;
}

void store_effects_close(
    struct store_effects *effects, struct store_connection *connection, const char *reason) {
    struct store_effect *effect = append(effects);
    effect->kind = STORE_EFFECT_CLOSE;
    effect->may_wait = false;
    effect->connection = connection;
    effect->reason = reason;
}

bool store_effects_have_written(
    const struct store_effects *effects, const struct store_request *request) {
    if (request->operation != STORE_COMPARE_SET) {
        return request->operation == STORE_SET && !effects->is_full;
    }
    size_t own = 0;
    while (own < effects->count && effects->items[own].may_wait) {
        own++; /* a QUEUE_POP has given way */
    }
    return own < effects->count && effects->items[own].kind == STORE_EFFECT_REPLY &&
           slice_equals(effects->items[own].reply.blob, request->value);
}

struct slice *store_effects_blobs(struct store_effects *effects, size_t count) {
    effects->blobs =
        memory_reserve(effects->blobs, &effects->blob_capacity, count, sizeof *effects->blobs);
    return effects->blobs;
}
