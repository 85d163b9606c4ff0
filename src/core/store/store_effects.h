/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host of a store table does after a step: it sends replies and closes connections, in the
 * order of this list. The list owns its arrays and keeps them from step to step. The values inside
 * replies are borrowed (see store_table.h). The list does not know how replies are spelled or sent.
 */
#ifndef MUSTER_CORE_STORE_STORE_EFFECTS_H
#define MUSTER_CORE_STORE_STORE_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store/store_request.h"

#define STORE_REASON_SIZE 384

struct store_connection;

enum store_effect_kind {
    STORE_EFFECT_REPLY, /* send `reply` */
    STORE_EFFECT_CLOSE, /* close the connection and log `reason` */
};

struct store_effect {
    enum store_effect_kind kind;
    bool may_wait; /* nobody waits for the reply: it may go with the next of its connection */
    struct store_connection *connection;
    union {
        struct store_reply reply;
        const char *reason; /* fixed text, or text in the list that is valid until the reset */
    };
};

/* A zeroed struct is a valid empty list. */
struct store_effects {
    struct store_effect *items;
    size_t count;
    size_t capacity;
    struct slice *blobs; /* the items of the list reply; a step has at most one */
    size_t blob_capacity;
    char reason[STORE_REASON_SIZE];
    bool is_full; /* the step closes its connection because the store has no room */
};

/* Empties the list. The host calls it before each step. */
void store_effects_reset(struct store_effects *effects);
void store_effects_clear(struct store_effects *effects);

void store_effects_reply(struct store_effects *effects, struct store_connection *connection,
    const struct store_reply *reply);
/* The reply to a QUEUE_POP that gives way: there is no item. */
void store_effects_give_way(struct store_effects *effects, struct store_connection *connection);
/* Whether there is memory for so many effects more. A step asks before it wakes many clients. */
bool store_effects_have_room(struct store_effects *effects, size_t count);
/* `reason` is fixed text. */
void store_effects_close(
    struct store_effects *effects, struct store_connection *connection, const char *reason);
/* Whether the step, which has carried out the request, has set the key of the request to its
 * value. */
bool store_effects_have_written(
    const struct store_effects *effects, const struct store_request *request);
/* Returns room for the items of a list reply, valid until the reset. */
struct slice *store_effects_blobs(struct store_effects *effects, size_t count);

#endif
