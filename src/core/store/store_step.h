/* SPDX-License-Identifier: BSD-3-Clause */
/* One request that the store carries out, and what several operations have in common: replying,
 * asking for room, writing a value, counting. This is a part of store_table; only store_table and
 * its parts use it. */
#ifndef MUSTER_CORE_STORE_STORE_STEP_H
#define MUSTER_CORE_STORE_STORE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include "core/store/store_effects.h"
#include "core/store/store_entries.h"
#include "core/store/store_waiters.h"

struct store_step {
    struct store_entries *entries;
    struct store_waiters *waiters;
    struct store_connection *connection;
    const struct store_request *request;
    struct store_effects *effects;
};

void store_step_reply(const struct store_step *step, const struct store_reply *reply);
void store_step_reply_byte(const struct store_step *step, uint8_t byte);
void store_step_reply_integer(const struct store_step *step, int64_t integer);
void store_step_reply_blob(const struct store_step *step, struct slice blob);

/* The entry of the key, or NULL. */
struct store_entry *store_step_find(const struct store_step *step, struct slice key);
/* Returns `entry`, or adds one for the key when it is NULL. */
struct store_entry *store_step_obtain(
    const struct store_step *step, struct store_entry *entry, struct slice key);
/* Wakes all waits for this key. A connection that waits for no other key gets its reply. */
void store_step_wake_all(const struct store_step *step, struct store_entry *entry);

/* Whether there is room for `size` more bytes. If not, appends the effect that closes the
 * connection. */
bool store_step_admit(const struct store_step *step, size_t size);
/* Whether there is memory to answer all who wait for the key. If not, as store_step_admit. `entry`
 * is the entry of the key, or NULL. */
bool store_step_admit_wake(const struct store_step *step, const struct store_entry *entry);
/* The cost of a value of this length for the key. `entry` is the entry of the key, or NULL. */
size_t store_step_write_size(const struct store_entry *entry, struct slice key, size_t length);
/* Gives the key of the request a value. `entry` is the entry of the key, or NULL. Returns the
 * entry; or NULL when there is no room and the connection is to be closed. */
struct store_entry *store_step_write(
    const struct store_step *step, struct store_entry *entry, struct slice value);
/* Adds to the counter of the key of the request. A key without a value counts from zero. There must
 * be room for `extra` more bytes. Returns the entry, or NULL when the connection is to be closed.
 */
struct store_entry *store_step_count(
    const struct store_step *step, int64_t delta, size_t extra, int64_t *out_value);

#endif
