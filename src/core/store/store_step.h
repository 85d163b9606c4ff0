/* SPDX-License-Identifier: BSD-3-Clause */
/* One request that the store carries out, and what several operations have in common: replying,
 * asking for room, writing a value, counting. This is a part of store_table; only store_table and
 * its parts use it. */
#ifndef MUSTER_CORE_STORE_STORE_STEP_H
#define MUSTER_CORE_STORE_STORE_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/table.h"
#include "base/text.h"
#include "core/store/store_effects.h"
#include "core/store/store_table.h"

/* What the store holds for each key: a value, a queue, and the list of the connections that wait
 * for the key. An entry exists as long as it has one of the three. Every byte counts against one
 * memory limit. For each function that adds something, another function tells its cost beforehand,
 * so that a request can be refused before it has changed anything. This is a part of store_table;
 * only store_table and its parts use it. */

struct store_census;
struct store_registration;

struct store_queue_item {
    struct store_queue_item *next;
    size_t length;
    uint8_t data[];
};

struct store_entry {
    struct slice key; /* owned by the hash table */
    bool has_value;
    uint8_t *value;
    size_t value_length;
    size_t value_capacity;
    struct store_queue_item *queue_front;
    struct store_queue_item *queue_back;
    size_t queue_length;
    size_t queue_bytes;                      /* memory of the items in the queue */
    struct store_registration *first_waiter; /* store_waiters maintains both */
    struct store_registration *last_waiter;
};

struct store_entries {
    struct table *table;
    size_t memory;       /* bytes held, bookkeeping included */
    size_t memory_limit; /* for `memory` and `reserved` together */
    size_t reserved;     /* what other users have taken of the limit */
    /* The part of the limit that requests for the keys of the store's owner may use alone, and
     * whether the present request is one. */
    size_t owner_reserve;
    bool is_owners;
    struct store_census *census;    /* or NULL; store_census maintains it */
    struct store_queue_item *taken; /* or NULL; see store_queue_take */
    size_t value_count;             /* entries that have a value */
};

void store_entries_init(struct store_entries *entries, size_t memory_limit);
/* No connection may wait when this is called. */
void store_entries_clear(struct store_entries *entries);

/* Whether there is room for `size` more bytes. */
bool store_entries_have_room(const struct store_entries *entries, size_t size);

/* The entry, or NULL. */
struct store_entry *store_entries_find(const struct store_entries *entries, struct slice key);
/* Adds an entry for a key that has none. The caller releases it if it gets no contents. */
struct store_entry *store_entries_add(struct store_entries *entries, struct slice key);
/* The cost of store_entries_add. */
size_t store_entries_add_size(struct slice key);
/* Frees the entry if it holds nothing. */
void store_entries_release(struct store_entries *entries, struct store_entry *entry);
/* Frees every entry that holds nothing. */
void store_entries_sweep(struct store_entries *entries);

void store_entry_set_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value);
void store_entry_remove_value(struct store_entries *entries, struct store_entry *entry);

/* The cost of an item of this length. */
size_t store_queue_item_size(size_t length);
void store_queue_push(struct store_entries *entries, struct store_entry *entry, struct slice value);
/* Removes and returns the front of the queue, which must not be empty. It stays, and its memory
 * counts, until store_queue_free_taken. One item at most is taken at a time. */
struct slice store_queue_take(struct store_entries *entries, struct store_entry *entry);
void store_queue_free_taken(struct store_entries *entries);
void store_queue_empty(struct store_entries *entries, struct store_entry *entry);

/* Which connection waits for which keys. A wait is one block of memory: the connection, how many
 * keys it still misses, and one registration per such key, which is a member of the list of the
 * key's entry. So waking the N waits for a key takes O(N), and forgetting a wait takes time only
 * for its own registrations. This is a part of store_table; only store_table and its parts use it.
 */

struct store_registration {
    struct store_wait *wait;
    struct store_entry *entry; /* NULL once the key was written */
    struct store_registration *previous;
    struct store_registration *next;
};

struct store_wait {
    struct store_connection *connection;
    size_t missing;  /* registrations whose key was not written yet */
    size_t count;    /* registrations made */
    size_t capacity; /* the room for registrations */
    bool takes_item; /* its one key is that of a queue, and the reply is the front */
    struct store_registration registrations[];
};

struct store_waiters {
    struct store_entries *entries; /* borrowed; has the lists, and counts the memory */
    size_t count;                  /* connections that wait */
};

/* A connection that waits for an item has sent another request: appends the reply that there is
 * none. Other waits stay. */
void store_waiters_give_way(struct store_waiters *waiters, struct store_connection *connection,
    struct store_effects *effects);

/* Forgets the wait of the connection, if it has one, and the entries that existed only for it. */
void store_waiters_drop(struct store_waiters *waiters, struct store_connection *connection);
/* Forgets every wait for this key. Entries without contents stay, so the caller sweeps them
 * afterwards. Appends the closing of each connection with `reason`, unless `effects` is NULL. */
void store_waiters_expel(struct store_waiters *waiters, struct store_entry *entry,
    const char *reason, struct store_effects *effects);

/* Which keys take most of a store's memory. The answer is the longest beginning that the keys of at
 * least half of the memory have in common, or one key that alone takes half of it. So a user whose
 * store is full learns who fills it. It looks at every key, so it is asked only then. This is a
 * part of store_table; only store_table and its parts use it. */

/* Appends how much of the limit is used, and by whom: "14 keys take 3.7 MiB of the store's memory
 * limit of 4.0 MiB; about 98 % of what the keys take is for those that begin with 'leak/'". Names
 * are without the '/' that TCPStore's clients put before each key; bytes that are not printable
 * ASCII, and quotes, are '?'. While the store stays about as full, the keys are not looked at
 * again, so that a client that is refused again and again costs little. */
void store_census_describe(struct store_entries *entries, struct text *out);

struct store_step {
    struct store_entries *entries;
    struct store_waiters *waiters;
    struct store_connection *connection;
    const struct store_request *request;
    struct store_effects *effects;
};

void store_step_reply(const struct store_step *step, const struct store_reply *reply);

/* The operations of the store, one function each. This is a part of store_table. store_table.h and
 * store_request.h say what each operation does. */

/* Operations on values and counters. */
void store_apply_set(const struct store_step *step);
void store_apply_append(const struct store_step *step);
void store_apply_compare_set(const struct store_step *step);
void store_apply_get(const struct store_step *step);
void store_apply_add(const struct store_step *step);
void store_apply_delete(const struct store_step *step);
void store_apply_multi_get(const struct store_step *step);
void store_apply_multi_set(const struct store_step *step);
void store_apply_count_keys(const struct store_step *step);
void store_apply_list_keys(const struct store_step *step);

/* Operations on queues. */
void store_apply_queue_push(const struct store_step *step);
void store_apply_queue_pop(const struct store_step *step);
void store_apply_queue_length(const struct store_step *step);

/* Operations on keys alone: checking for keys, waiting for keys, and the barrier. */
void store_apply_check(const struct store_step *step);
void store_apply_wait(const struct store_step *step);
void store_apply_cancel_wait(const struct store_step *step);
void store_apply_barrier(const struct store_step *step);

/* Any operation that the host does not let the client make; see store_table_refuse. */
void store_apply_refused(const struct store_step *step, const char *reason);

#endif
