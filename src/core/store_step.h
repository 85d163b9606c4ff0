/* SPDX-License-Identifier: BSD-3-Clause */
/* One request on its way through the store, and what several operations have in common: answering,
 * asking for room, writing a value, counting. A part of store_table; not for others. */
#ifndef MUSTER_CORE_STORE_STEP_H
#define MUSTER_CORE_STORE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include "core/store_effects.h"
#include "core/store_entries.h"
#include "core/store_waiters.h"

struct store_step {
    struct store_entries *entries;
    struct store_waiters *waiters;
    struct store_queue_item **popped; /* keeps an item alive until the next step */
    struct store_connection *connection;
    const struct store_request *request;
    struct store_effects *effects;
};

void store_step_reply(const struct store_step *step, const struct store_reply *reply);
void store_step_reply_byte(const struct store_step *step, uint8_t byte);
void store_step_reply_integer(const struct store_step *step, int64_t integer);
void store_step_reply_blob(const struct store_step *step, struct slice blob);

/* The key's entry, or NULL. */
struct store_entry *store_step_find(const struct store_step *step, struct slice key);
/* `entry`, or a new one for the key when that is NULL. */
struct store_entry *store_step_obtain(
    const struct store_step *step, struct store_entry *entry, struct slice key);
/* Releases whoever waits for nothing else than this key. */
void store_step_wake_all(const struct store_step *step, struct store_entry *entry);

/* Whether so many more bytes may be held; if not, the connection is to be closed. */
bool store_step_admit(const struct store_step *step, size_t size);
/* What giving the key a value of this length costs; `entry` is the key's, or NULL. */
size_t store_step_write_size(const struct store_entry *entry, struct slice key, size_t length);
/* Gives the request's key a value; `entry` is the key's, or NULL. The result is the entry, or NULL
 * when there is no room and the connection is to be closed. */
struct store_entry *store_step_write(
    const struct store_step *step, struct store_entry *entry, struct slice value);
/* Adds to the counter under the request's key; a key without a value counts from zero. `extra`
 * more bytes must find room. The result is the entry, or NULL when the connection is to be closed.
 */
struct store_entry *store_step_count(
    const struct store_step *step, int64_t delta, size_t extra, int64_t *out_value);

#endif
