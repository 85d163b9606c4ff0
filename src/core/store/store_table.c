/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "core/store/store_request.h"

/* What the store holds for each key: a value, a queue, and the list of the connections that wait
 * for the key. An entry exists as long as it has one of the three. Every byte counts against one
 * memory limit. For each function that adds something, another function tells its cost beforehand,
 * so that a request can be refused before it has changed anything. */

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

/* Which connection waits for which keys. A wait is one block of memory: the connection, how many
 * keys it still misses, and one registration per such key, which is a member of the list of the
 * key's entry. So waking the N waits for a key takes O(N), and forgetting a wait takes time only
 * for its own registrations. */

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

/* One request that the store carries out. */
struct store_step {
    struct store_entries *entries;
    struct store_waiters *waiters;
    struct store_connection *connection;
    const struct store_request *request;
    struct store_effects *effects;
};

#define ALLOCATION_SIZE 16   /* about what malloc adds to each allocation */
#define LEAST_CAPACITY 24    /* every counter fits, so ADD never reallocates */
#define SHRINK_CAPACITY 4096 /* larger buffers are freed when they are mostly unused */
#define SHRINK_FACTOR 4

static void store_entries_init(struct store_entries *entries, size_t memory_limit) {
    *entries = (struct store_entries){.table = table_new(free), .memory_limit = memory_limit};
}

/* Whether there is room for `size` more bytes. */
static bool store_entries_have_room(const struct store_entries *entries, size_t size) {
    size_t limit = entries->memory_limit - (entries->is_owners ? 0 : entries->owner_reserve);
    size_t left = entries->reserved < limit ? limit - entries->reserved : 0;
    return size <= left && entries->memory <= left - size && spare_memory_is_enough_for(size, 2);
}

/* The entry, or NULL. */
static struct store_entry *store_entries_find(
    const struct store_entries *entries, struct slice key) {
    return table_get(entries->table, key);
}

/* The cost of store_entries_add. */
static size_t store_entries_add_size(struct slice key) {
    return sizeof(struct store_entry) + ALLOCATION_SIZE + TABLE_ENTRY_SIZE + key.length;
}

/* Adds an entry for a key that has none. The caller releases it if it gets no contents. */
static struct store_entry *store_entries_add(struct store_entries *entries, struct slice key) {
    struct store_entry *entry = memory_allocate(sizeof *entry);
    entry->key = table_put(entries->table, key, entry);
    entries->memory += store_entries_add_size(key);
    return entry;
}

static bool holds_nothing(const struct store_entry *entry) {
    return !entry->has_value && entry->queue_front == NULL && entry->first_waiter == NULL;
}

/* Frees the entry if it holds nothing. */
static void store_entries_release(struct store_entries *entries, struct store_entry *entry) {
    if (holds_nothing(entry)) {
        entries->memory -= store_entries_add_size(entry->key);
        (void)table_remove(entries->table, entry->key);
    }
}

static bool sweep_entry(void *context, struct slice key, void *value) {
    struct store_entries *entries = context;
    bool is_empty = holds_nothing(value);
    if (is_empty) {
        entries->memory -= store_entries_add_size(key);
    }
    return is_empty;
}

/* Frees every entry that holds nothing. */
static void store_entries_sweep(struct store_entries *entries) {
    table_remove_if(entries->table, sweep_entry, entries);
}

static bool store_entry_is_present(const struct store_entry *entry) {
    return entry != NULL && (entry->has_value || entry->queue_front != NULL);
}

/* `entry` may be NULL, which counts as an entry that holds nothing. */
static struct slice store_entry_value(const struct store_entry *entry) {
    return entry != NULL && entry->has_value ? (struct slice){entry->value, entry->value_length}
                                             : (struct slice){0};
}

static size_t capacity_for(size_t length) {
    return length < LEAST_CAPACITY ? LEAST_CAPACITY : length;
}

/* The additional cost of a value of this length; 0 when it fits into the memory of the old value.
 * NULL stands for an entry that is not added yet; the result does not contain the cost of adding
 * it. */
static size_t store_entry_growth(const struct store_entry *entry, size_t length) {
    size_t held = entry == NULL ? 0 : entry->value_capacity;
    size_t wanted = capacity_for(length);
    if (wanted <= held) {
        return 0;
    }
    return wanted - held + (held == 0 ? ALLOCATION_SIZE : 0);
}

static void free_value(struct store_entries *entries, struct store_entry *entry) {
    if (entry->value_capacity > 0) {
        entries->memory -= entry->value_capacity + ALLOCATION_SIZE;
        free(entry->value);
        entry->value = NULL;
        entry->value_capacity = 0;
    }
}

static void resize_value(
    struct store_entries *entries, struct store_entry *entry, size_t capacity) {
    entries->memory -= entry->value_capacity == 0 ? 0 : entry->value_capacity + ALLOCATION_SIZE;
    entries->memory += capacity + ALLOCATION_SIZE;
    entry->value = memory_reallocate(entry->value, capacity);
    entry->value_capacity = capacity;
}

static void mark_present(struct store_entries *entries, struct store_entry *entry) {
    if (!entry->has_value) {
        entry->has_value = true;
        entries->value_count++;
    }
}

static bool is_oversized(const struct store_entry *entry, size_t length) {
    return entry->value_capacity > SHRINK_CAPACITY &&
           length < entry->value_capacity / SHRINK_FACTOR;
}

static void store_entry_set_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value) {
    size_t capacity = capacity_for(value.length);
    if (capacity > entry->value_capacity || is_oversized(entry, value.length)) {
        free_value(entries, entry); /* before resizing, so that the old bytes are not copied */
        resize_value(entries, entry, capacity);
    }
    if (value.length > 0) {
        memcpy(entry->value, value.data, value.length);
    }
    entry->value_length = value.length;
    mark_present(entries, entry);
}

/* The memory of the value grows by half of its length, if there is room for that, so that many
 * small appends stay cheap. */
static void store_entry_append_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value) {
    size_t length = entry->value_length + value.length;
    if (capacity_for(length) > entry->value_capacity) {
        size_t generous = length + length / 2;
        bool has_room = store_entries_have_room(entries, store_entry_growth(entry, generous));
        resize_value(entries, entry, capacity_for(has_room ? generous : length));
    }
    if (value.length > 0) {
        memcpy(entry->value + entry->value_length, value.data, value.length);
    }
    entry->value_length = length;
    mark_present(entries, entry);
}

static void store_entry_remove_value(struct store_entries *entries, struct store_entry *entry) {
    free_value(entries, entry);
    entry->value_length = 0;
    entries->value_count -= entry->has_value ? 1 : 0;
    entry->has_value = false;
}

/* The cost of an item of this length. */
static size_t store_queue_item_size(size_t length) {
    return sizeof(struct store_queue_item) + ALLOCATION_SIZE + length;
}

static void store_queue_push(
    struct store_entries *entries, struct store_entry *entry, struct slice value) {
    struct store_queue_item *item = memory_allocate(sizeof *item + value.length);
    item->length = value.length;
    if (value.length > 0) {
        memcpy(item->data, value.data, value.length);
    }
    if (entry->queue_back == NULL) {
        entry->queue_front = item;
    } else {
        entry->queue_back->next = item;
    }
    entry->queue_back = item;
    entry->queue_length++;
    entry->queue_bytes += store_queue_item_size(value.length);
    entries->memory += store_queue_item_size(value.length);
}

static struct store_queue_item *remove_front(struct store_entry *entry) {
    struct store_queue_item *item = entry->queue_front;
    entry->queue_front = item->next;
    entry->queue_back = item->next == NULL ? NULL : entry->queue_back;
    entry->queue_length--;
    entry->queue_bytes -= store_queue_item_size(item->length);
    return item;
}

static void free_item(struct store_entries *entries, struct store_queue_item *item) {
    entries->memory -= store_queue_item_size(item->length);
    free(item);
}

static void store_queue_free_taken(struct store_entries *entries) {
    if (entries->taken != NULL) {
        free_item(entries, entries->taken);
        entries->taken = NULL;
    }
}

/* Removes and returns the front of the queue, which must not be empty. It stays, and its memory
 * counts, until store_queue_free_taken. One item at most is taken at a time. */
static struct slice store_queue_take(struct store_entries *entries, struct store_entry *entry) {
    store_queue_free_taken(entries);
    entries->taken = remove_front(entry);
    return (struct slice){entries->taken->data, entries->taken->length};
}

static void store_queue_empty(struct store_entries *entries, struct store_entry *entry) {
    while (entry->queue_front != NULL) {
        free_item(entries, remove_front(entry));
    }
}

static bool empty_entry(void *context, struct slice key, void *value) {
    (void)key;
    struct store_entries *entries = context;
    struct store_entry *entry = value;
    store_entry_remove_value(entries, entry);
    store_queue_empty(entries, entry);
    return true;
}

/* No connection may wait when this is called. */
static void store_entries_clear(struct store_entries *entries) {
    table_each(entries->table, empty_entry, entries);
    table_free(entries->table);
    free(entries->census);
    *entries = (struct store_entries){.memory_limit = entries->memory_limit};
}

/* Waiters. */

/* The cost of a wait for `capacity` missing keys, without the entries of the keys. */
static size_t store_wait_size(size_t capacity) {
    return sizeof(struct store_wait) + capacity * sizeof(struct store_registration);
}

/* Begins a wait for up to `capacity` keys. It becomes the wait of the connection, which must have
 * none. */
static struct store_wait *store_wait_begin(
    struct store_waiters *waiters, struct store_connection *connection, size_t capacity) {
    struct store_wait *wait = memory_allocate(store_wait_size(capacity));
    wait->connection = connection;
    wait->capacity = capacity;
    connection->wait = wait;
    waiters->count++;
    waiters->entries->memory += store_wait_size(capacity);
    return wait;
}

static void end(struct store_waiters *waiters, struct store_wait *wait) {
    wait->connection->wait = NULL;
    waiters->count--;
    waiters->entries->memory -= store_wait_size(wait->capacity);
    free(wait);
}

/* Adds one missing key to the wait, at the end of the list of its entry. A key that is named
 * several times is added once. All keys of a wait are added before anything else happens. */
static void store_wait_add(struct store_wait *wait, struct store_entry *entry) {
    if (entry->last_waiter != NULL && entry->last_waiter->wait == wait) {
        return; /* no other wait can have been added meanwhile */
    }
    struct store_registration *registration = &wait->registrations[wait->count++];
    *registration =
        (struct store_registration){.wait = wait, .entry = entry, .previous = entry->last_waiter};
    if (entry->last_waiter == NULL) {
        entry->first_waiter = registration;
    } else {
        entry->last_waiter->next = registration;
    }
    entry->last_waiter = registration;
    wait->missing++;
}

static void unlink_registration(struct store_registration *registration) {
    struct store_entry *entry = registration->entry;
    if (registration->previous == NULL) {
        entry->first_waiter = registration->next;
    } else {
        registration->previous->next = registration->next;
    }
    if (registration->next == NULL) {
        entry->last_waiter = registration->previous;
    } else {
        registration->next->previous = registration->previous;
    }
    registration->entry = NULL;
}

/* Takes the front of the queue, if there is one, and appends the reply to QUEUE_POP. `entry` may be
 * NULL. */
static void store_waiters_answer_pop(struct store_waiters *waiters, struct store_entry *entry,
    struct store_connection *connection, struct store_effects *effects) {
    struct store_reply reply = {.kind = STORE_REPLY_POP};
    reply.pop.front = (struct slice){0};
    reply.pop.length = entry == NULL ? 0 : (int64_t)entry->queue_length;
    if (reply.pop.length > 0) {
        reply.pop.front = store_queue_take(waiters->entries, entry);
    }
    store_effects_reply(effects, connection, &reply);
}

static void answer(struct store_waiters *waiters, const struct store_wait *wait,
    struct store_entry *entry, struct store_effects *effects) {
    const struct store_reply reply = {.kind = STORE_REPLY_BYTE, .byte = STORE_STOP_WAITING};
    if (wait->takes_item) {
        store_waiters_answer_pop(waiters, entry, wait->connection, effects);
    } else {
        store_effects_reply(effects, wait->connection, &reply);
    }
}

/* For the first wait in the list the key is written. Returns true when it misses no other key and
 * gets its reply. */
static bool wake_first(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects) {
    struct store_registration *first = entry->first_waiter;
    struct store_wait *wait = first->wait;
    unlink_registration(first);
    wait->missing--;
    if (wait->missing > 0) {
        return false;
    }
    answer(waiters, wait, entry, effects);
    end(waiters, wait);
    return true;
}

/* The same until one connection is released. For a connection that still misses another key this
 * key counts as written, but the next connection in the list gets its turn. */
static void store_waiters_wake_one(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects) {
    while (entry->first_waiter != NULL && !wake_first(waiters, entry, effects)) {
    }
}

/* The key was written: appends a reply for each connection that now misses no key. */
static void store_waiters_wake_all(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects) {
    while (entry->first_waiter != NULL) {
        (void)wake_first(waiters, entry, effects);
    }
}

/* Forgets the wait of the connection, if it has one, and the entries that existed only for it. */
static void store_waiters_drop(struct store_waiters *waiters, struct store_connection *connection) {
    struct store_wait *wait = connection->wait;
    if (wait == NULL) {
        return;
    }
    for (size_t i = 0; i < wait->count; i++) {
        struct store_entry *entry = wait->registrations[i].entry;
        if (entry != NULL) {
            unlink_registration(&wait->registrations[i]);
            store_entries_release(waiters->entries, entry);
        }
    }
    end(waiters, wait);
}

/* A connection that waits for an item has sent another request: appends the reply that there is
 * none. Other waits stay. */
static void store_waiters_give_way(struct store_waiters *waiters,
    struct store_connection *connection, struct store_effects *effects) {
    if (connection->wait != NULL && connection->wait->takes_item) {
        store_waiters_drop(waiters, connection);
        store_effects_give_way(effects, connection);
    }
}

static void forget(struct store_waiters *waiters, struct store_wait *wait) {
    for (size_t i = 0; i < wait->count; i++) {
        if (wait->registrations[i].entry != NULL) {
            unlink_registration(&wait->registrations[i]);
        }
    }
    end(waiters, wait);
}

/* Forgets every wait for this key. Entries without contents stay, so the caller sweeps them
 * afterwards. Appends the closing of each connection with `reason`, unless `effects` is NULL. */
static void store_waiters_expel(struct store_waiters *waiters, struct store_entry *entry,
    const char *reason, struct store_effects *effects) {
    while (entry->first_waiter != NULL) {
        struct store_wait *wait = entry->first_waiter->wait;
        if (effects != NULL) {
            store_effects_close(effects, wait->connection, reason);
        }
        forget(waiters, wait);
    }
}

/* Census. Which keys take most of a store's memory. The answer is the longest beginning that the
 * keys of at least half of the memory have in common, or one key that alone takes half of it. So a
 * user whose store is full learns who fills it. It looks at every key, so it is asked only then. */

#define NAME_SIZE 65

struct store_census {
    char name[NAME_SIZE]; /* empty: the keys have nothing in common, or there are none */
    bool is_whole_key;    /* else the beginning of keys */
    int percent;          /* of the memory, about */
    size_t memory;        /* of the store when it was taken */
};

/* The keys whose names are compared: about as many, taken evenly from all. */
#define SAMPLE_SIZE ((size_t)4096)

struct sampled {
    struct slice key;
    size_t bytes;
};

struct sampling {
    struct sampled *sample;
    size_t count;
    size_t stride;
    size_t seen;
    size_t bytes;           /* of the sample */
    struct sampled largest; /* of all keys */
};

static size_t entry_bytes(const struct store_entry *entry) {
    return store_entries_add_size(entry->key) + entry->value_capacity + entry->queue_bytes;
}

static bool look_at(void *context, struct slice key, void *value) {
    struct sampling *sampling = context;
    struct sampled found = {key, entry_bytes(value)};
    if (found.bytes > sampling->largest.bytes) {
        sampling->largest = found;
    }
    if (sampling->seen++ % sampling->stride == 0) {
        sampling->sample[sampling->count++] = found;
        sampling->bytes += found.bytes;
    }
    return true;
}

static void name_keys(struct store_census *census, struct slice name) {
    size_t length = 0;
    if (name.length > 0 && name.data[0] == '/') {
        name = slice_from(name, 1);
    }
    for (; length < name.length && length + 1 < sizeof census->name; length++) {
        uint8_t byte = name.data[length];
        bool is_plain = byte >= ' ' && byte <= '~' && byte != '\'';
        census->name[length] = is_plain ? (char)byte : '?';
    }
    census->name[length] = '\0';
}

/* Keeps the keys of the sample that go on with the byte that most of them (by memory) have at
 * `position`. False, and nothing changes, when these take less than half of the sample's memory. */
static bool narrow(struct sampling *sampling, size_t position, size_t *out_bytes) {
    size_t bytes_by_next[256] = {0};
    size_t best = 0;
    for (size_t i = 0; i < sampling->count; i++) {
        const struct sampled *each = &sampling->sample[i];
        if (each->key.length > position) {
            bytes_by_next[each->key.data[position]] += each->bytes;
        }
    }
    for (size_t next = 1; next < 256; next++) {
        best = bytes_by_next[next] > bytes_by_next[best] ? next : best;
    }
    if (bytes_by_next[best] == 0 || bytes_by_next[best] < sampling->bytes / 2) {
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < sampling->count; i++) {
        struct sampled each = sampling->sample[i];
        if (each.key.length > position && each.key.data[position] == best) {
            sampling->sample[kept++] = each;
        }
    }
    sampling->count = kept;
    *out_bytes = bytes_by_next[best];
    return true;
}

static bool is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

static void find_beginning(struct sampling *sampling, struct store_census *census) {
    size_t bytes[NAME_SIZE + 1]; /* with a beginning of that length */
    size_t length = 0;
    while (length < NAME_SIZE && narrow(sampling, length, &bytes[length + 1])) {
        length++;
    }
    while (length > 0 && is_digit(sampling->sample[0].key.data[length - 1])) {
        length--; /* the beginning of a number says nothing */
    }
    if (length > 1) {
        name_keys(census, (struct slice){sampling->sample[0].key.data, length});
        census->percent = (int)(bytes[length] * 100 / sampling->bytes);
    }
}

static struct store_census take(const struct store_entries *entries) {
    struct store_census census = {.memory = entries->memory};
    size_t count = table_count(entries->table);
    struct sampling sampling = {.stride = count / SAMPLE_SIZE + 1};
    if (count == 0) {
        return census;
    }
    sampling.sample = memory_allocate((count / sampling.stride + 1) * sizeof *sampling.sample);
    table_each(entries->table, look_at, &sampling);
    if (sampling.largest.bytes >= entries->memory / 2) {
        name_keys(&census, sampling.largest.key);
        census.is_whole_key = true;
        census.percent = (int)(sampling.largest.bytes * 100 / entries->memory);
    } else {
        find_beginning(&sampling, &census);
    }
    free(sampling.sample);
    return census;
}

static const struct store_census *census_of(struct store_entries *entries) {
    size_t tolerance = entries->memory_limit / 8;
    struct store_census *census = entries->census;
    if (census == NULL || entries->memory > census->memory + tolerance ||
        entries->memory + tolerance < census->memory) {
        struct store_census taken = take(entries);
        free(census);
        entries->census = memory_duplicate(&taken, sizeof taken);
    }
    return entries->census;
}

/* A number of bytes, as people read it. */
static void append_size(struct text *out, size_t bytes) {
    if (bytes < (size_t)1 << 20) {
        text_append_format(out, "%zu bytes", bytes);
    } else {
        text_append_format(out, "%.1f MiB", (double)bytes / 1048576);
    }
}

/* Appends how much of the limit is used, and by whom: "14 keys take 3.7 MiB of the store's memory
 * limit of 4.0 MiB; about 98 % of what the keys take is for those that begin with 'leak/'". Names
 * are without the '/' that TCPStore's clients put before each key; bytes that are not printable
 * ASCII, and quotes, are '?'. While the store stays about as full, the keys are not looked at
 * again, so that a client that is refused again and again costs little. */
static void store_census_describe(struct store_entries *entries, struct text *out) {
    const struct store_census *census = census_of(entries);
    text_append_format(out, "%zu keys take ", entries->value_count);
    append_size(out, entries->memory);
    text_append(out, " of the store's memory limit of ");
    append_size(out, entries->memory_limit);
    if (entries->owner_reserve > 0) {
        text_append(out, " (");
        append_size(out, entries->owner_reserve);
        text_append(out, " are kept for the agents)");
    }
    if (entries->reserved > entries->memory_limit / 16) {
        text_append(out, ", unfinished requests and unread replies ");
        append_size(out, entries->reserved);
    }
    if (census->name[0] != '\0') {
        text_append_format(out, "; about %d %% of what the keys take is for %s '%s'",
            census->percent, census->is_whole_key ? "the key" : "those that begin with",
            census->name);
    }
}

/* Step. */

static void store_step_reply(const struct store_step *step, const struct store_reply *reply) {
    store_effects_reply(step->effects, step->connection, reply);
}

static void store_step_reply_byte(const struct store_step *step, uint8_t byte) {
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_BYTE, .byte = byte});
}

static void store_step_reply_integer(const struct store_step *step, int64_t integer) {
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = integer});
}

static void store_step_reply_blob(const struct store_step *step, struct slice blob) {
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_BLOB, .blob = blob});
}

/* The entry of the key, or NULL. */
static struct store_entry *store_step_find(const struct store_step *step, struct slice key) {
    return store_entries_find(step->entries, key);
}

/* Wakes all waits for this key. A connection that waits for no other key gets its reply. */
static void store_step_wake_all(const struct store_step *step, struct store_entry *entry) {
    store_waiters_wake_all(step->waiters, entry, step->effects);
}

/* The request needs `size` more bytes, which there are not. */
static void refuse(const struct store_step *step, size_t size) {
    struct text reason = {0};
    text_append_format(&reason,
        "%s: there is no room for %zu bytes more: ", store_operation_name(step->request->operation),
        size);
    store_census_describe(step->entries, &reason);
    (void)snprintf(step->effects->reason, sizeof step->effects->reason, "%s", text_string(&reason));
    text_clear(&reason);
    store_effects_close(step->effects, step->connection, step->effects->reason);
    step->effects->is_full = true;
}

/* Whether there is room for `size` more bytes. If not, appends the effect that closes the
 * connection. */
static bool store_step_admit(const struct store_step *step, size_t size) {
    const struct store_entries *entries = step->entries;
    if (store_entries_have_room(entries, size)) {
        return true;
    }
    refuse(step, size);
    return false;
}

/* Whether there is memory to answer all who wait for the key. If not, as store_step_admit. `entry`
 * is the entry of the key, or NULL. */
/* How many wait for one key is not counted: not more than wait at all, and its own answer. */
static bool store_step_admit_wake(const struct store_step *step, const struct store_entry *entry) {
    if (entry == NULL || entry->first_waiter == NULL) {
        return true;
    }
    size_t most = step->waiters->count + 1;
    if (store_effects_have_room(step->effects, most)) {
        return true;
    }
    refuse(step, most * sizeof *step->effects->items);
    return false;
}

/* The cost of a value of this length for the key. `entry` is the entry of the key, or NULL. */
static size_t store_step_write_size(
    const struct store_entry *entry, struct slice key, size_t length) {
    return (entry == NULL ? store_entries_add_size(key) : 0) + store_entry_growth(entry, length);
}

/* Returns `entry`, or adds one for the key when it is NULL. */
static struct store_entry *store_step_obtain(
    const struct store_step *step, struct store_entry *entry, struct slice key) {
    return entry != NULL ? entry : store_entries_add(step->entries, key);
}

/* Gives the key of the request a value. `entry` is the entry of the key, or NULL. Returns the
 * entry; or NULL when there is no room and the connection is to be closed. */
static struct store_entry *store_step_write(
    const struct store_step *step, struct store_entry *entry, struct slice value) {
    struct slice key = step->request->key;
    if (!store_step_admit_wake(step, entry) ||
        !store_step_admit(step, store_step_write_size(entry, key, value.length))) {
        return NULL;
    }
    entry = store_step_obtain(step, entry, key);
    store_entry_set_value(step->entries, entry, value);
    return entry;
}

/* Adds to the counter of the key of the request. A key without a value counts from zero. There must
 * be room for `extra` more bytes. Returns the entry, or NULL when the connection is to be closed.
 */
static struct store_entry *store_step_count(
    const struct store_step *step, int64_t delta, size_t extra, int64_t *out_value) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    int64_t value = 0;
    if (entry != NULL && entry->has_value &&
        store_counter_parse(store_entry_value(entry), &value) != FAILURE_NONE) {
        (void)snprintf(step->effects->reason, sizeof step->effects->reason,
            "%s: the key's value is not a 64-bit decimal number",
            store_operation_name(step->request->operation));
        store_effects_close(step->effects, step->connection, step->effects->reason);
        return NULL;
    }
    value = (int64_t)((uint64_t)value + (uint64_t)delta); /* wraps as in PyTorch */
    uint8_t buffer[STORE_COUNTER_SIZE];
    struct slice text = store_counter_format(value, buffer);
    if (extra > 0 && !store_step_admit(step,
                         extra + store_step_write_size(entry, step->request->key, text.length))) {
        return NULL;
    }
    entry = store_step_write(step, entry, text);
    if (entry != NULL) {
        *out_value = value;
    }
    return entry;
}

/* The operations. */

/* Values and counters. */

/* Operations on values and counters. */
static void store_apply_set(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    entry = store_step_write(step, entry, step->request->value);
    if (entry != NULL) {
        store_step_wake_all(step, entry);
    }
}

static void store_apply_append(const struct store_step *step) {
    struct slice key = step->request->key;
    struct slice value = step->request->value;
    struct store_entry *entry = store_step_find(step, key);
    size_t length = store_entry_value(entry).length + value.length;
    if (!store_step_admit_wake(step, entry) ||
        !store_step_admit(step, store_step_write_size(entry, key, length))) {
        return;
    }
    entry = store_step_obtain(step, entry, key);
    store_entry_append_value(step->entries, entry, value);
    store_step_wake_all(step, entry);
}

/* What a COMPARE_SET that has stored nothing is answered. Where the key is missing, that is the
 * expected value, as in compareAndSet of PyTorch's libuv server. */
static void reply_what_is_there(const struct store_step *step, const struct store_entry *entry) {
    bool is_missing = entry == NULL || !entry->has_value;
    store_step_reply_blob(step, is_missing ? step->request->expected : store_entry_value(entry));
}

/* A missing key differs from an empty value. Only an empty expected value matches it. */
static void store_apply_compare_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct store_entry *entry = store_step_find(step, request->key);
    bool is_missing = entry == NULL || !entry->has_value;
    bool is_expected = is_missing ? request->expected.length == 0
                                  : slice_equals(store_entry_value(entry), request->expected);
    if (!is_expected) {
        reply_what_is_there(step, entry);
        return;
    }
    entry = store_step_write(step, entry, request->value);
    if (entry != NULL) {
        store_step_reply_blob(step, store_entry_value(entry));
        store_step_wake_all(step, entry);
    }
}

static void store_apply_get(const struct store_step *step) {
    store_step_reply_blob(step, store_entry_value(store_step_find(step, step->request->key)));
}

static void store_apply_add(const struct store_step *step) {
    int64_t value = 0;
    struct store_entry *entry = store_step_count(step, step->request->number, 0, &value);
    if (entry != NULL) {
        store_step_reply_integer(step, value);
        store_step_wake_all(step, entry);
    }
}

static void store_apply_delete(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    bool is_deleted = entry != NULL && entry->has_value;
    if (is_deleted) {
        store_entry_remove_value(step->entries, entry);
        store_entries_release(step->entries, entry);
    }
    store_step_reply_integer(step, is_deleted ? 1 : 0);
}

static void store_apply_multi_get(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct slice *blobs = store_effects_blobs(step->effects, request->count);
    for (size_t i = 0; i < request->count; i++) {
        blobs[i] = store_entry_value(store_step_find(step, request->keys[i]));
    }
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_BLOBS,
                               .list = {.items = blobs, .count = request->count}});
}

/* Whether somebody waits for one of the keys is looked up only where all who wait were too many. */
static bool admit_multi_wake(const struct store_step *step) {
    const struct store_request *request = step->request;
    if (store_effects_have_room(step->effects, step->waiters->count)) {
        return true;
    }
    for (size_t i = 0; i < request->count; i++) {
        if (!store_step_admit_wake(step, store_step_find(step, request->keys[i]))) {
            return false;
        }
    }
    return true;
}

/* First uses an estimate that is too large but cheap, as admit_wait does. */
static bool admit_multi_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    size_t size = 0;
    for (size_t i = 0; i < request->count; i++) {
        size += store_step_write_size(NULL, request->keys[i], request->values[i].length);
    }
    if (store_entries_have_room(step->entries, size)) {
        return true;
    }
    size = 0;
    for (size_t i = 0; i < request->count; i++) {
        size += store_step_write_size(
            store_step_find(step, request->keys[i]), request->keys[i], request->values[i].length);
    }
    return store_step_admit(step, size);
}

static void store_apply_multi_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    if (!admit_multi_wake(step) || !admit_multi_set(step)) {
        return;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct slice key = request->keys[i];
        struct store_entry *entry = store_step_obtain(step, store_step_find(step, key), key);
        store_entry_set_value(step->entries, entry, request->values[i]);
        store_step_wake_all(step, entry);
    }
}

struct collected_keys {
    struct slice *items;
    size_t count;
    struct slice hidden_prefix;
};

static bool collect_key(void *context, struct slice key, void *value) {
    struct collected_keys *keys = context;
    const struct store_entry *entry = value;
    bool is_hidden = keys->hidden_prefix.length > 0 && slice_starts_with(key, keys->hidden_prefix);
    if (entry->has_value && !is_hidden) {
        keys->items[keys->count++] = key;
    }
    return true;
}

static void store_apply_list_keys(const struct store_step *step) {
    size_t count = step->entries->value_count;
    if (!spare_memory_is_enough_for(count, 2 * sizeof(struct slice))) { /* room may be doubled */
        store_effects_close(
            step->effects, step->connection, "there is no memory for the list of all keys");
        return;
    }
    struct collected_keys keys = {.items = store_effects_blobs(step->effects, count),
        .hidden_prefix = step->connection->hidden_prefix};
    table_each(step->entries->table, collect_key, &keys);
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_KEYS,
                               .list = {.items = keys.items, .count = keys.count}});
}

static void store_apply_count_keys(const struct store_step *step) {
    store_step_reply_integer(step, (int64_t)step->entries->value_count);
}

/* Queues. */

/* Operations on queues. */
static void store_apply_queue_push(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct store_entry *entry = store_step_find(step, request->key);
    size_t size = store_queue_item_size(request->value.length) +
                  (entry == NULL ? store_entries_add_size(request->key) : 0);
    if (!store_step_admit(step, size)) {
        return;
    }
    entry = store_step_obtain(step, entry, request->key);
    store_queue_push(step->entries, entry, request->value);
    store_waiters_wake_one(step->waiters, entry, step->effects);
    store_entries_release(step->entries, entry); /* who waited may have taken the item */
}

static int64_t queue_length(const struct store_entry *entry) {
    return entry == NULL ? 0 : (int64_t)entry->queue_length;
}

static void wait_for_item(const struct store_step *step) {
    struct slice key = step->request->key;
    size_t size = store_wait_size(1);
    size += store_step_find(step, key) == NULL ? store_entries_add_size(key) : 0;
    if (!store_step_admit(step, size)) {
        return;
    }
    store_waiters_drop(step->waiters, step->connection);
    struct store_wait *wait = store_wait_begin(step->waiters, step->connection, 1);
    wait->takes_item = true;
    store_wait_add(wait, store_step_obtain(step, store_step_find(step, key), key));
}

static void store_apply_queue_pop(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    if (step->entries->is_owners && queue_length(entry) == 0) {
        wait_for_item(step);
        return;
    }
    store_waiters_answer_pop(step->waiters, entry, step->connection, step->effects);
    if (entry != NULL) {
        store_entries_release(step->entries, entry);
    }
}

static void store_apply_queue_length(const struct store_step *step) {
    store_step_reply_integer(step, queue_length(store_step_find(step, step->request->key)));
}

/* Checking for keys, waiting for keys, and the barrier. */

static void store_apply_barrier(const struct store_step *step) {
    int64_t arrived = 0;
    struct store_entry *entry = store_step_count(step, 1, store_wait_size(1), &arrived);
    if (entry == NULL) {
        return;
    }
    struct store_waiters *waiters = step->waiters;
    store_waiters_drop(waiters, step->connection);
    if (arrived >= step->request->number) {
        store_step_reply_byte(step, STORE_STOP_WAITING);
        store_step_wake_all(step, entry);
        return;
    }
    store_wait_add(store_wait_begin(waiters, step->connection, 1), entry);
}

/* Operations on keys alone: checking for keys, waiting for keys, and the barrier. */
static void store_apply_check(const struct store_step *step) {
    const struct store_request *request = step->request;
    for (size_t i = 0; i < request->count; i++) {
        if (!store_entry_is_present(store_step_find(step, request->keys[i]))) {
            store_step_reply_byte(step, STORE_NOT_READY);
            return;
        }
    }
    store_step_reply_byte(step, STORE_READY);
}

/* Whether there is room for a wait for all these keys. The first estimate assumes that all keys are
 * missing and new, and needs no look at them. Only if there is no room for that, it looks at each
 * key. */
static bool admit_wait(const struct store_step *step) {
    const struct store_request *request = step->request;
    size_t size = store_wait_size(request->count);
    for (size_t i = 0; i < request->count; i++) {
        size += store_entries_add_size(request->keys[i]);
    }
    if (store_entries_have_room(step->entries, size)) {
        return true;
    }
    for (size_t i = 0; i < request->count; i++) {
        if (store_step_find(step, request->keys[i]) != NULL) {
            size -= store_entries_add_size(request->keys[i]);
        }
    }
    return store_step_admit(step, size);
}

static void store_apply_wait(const struct store_step *step) {
    const struct store_request *request = step->request;
    if (!admit_wait(step)) {
        return;
    }
    store_waiters_drop(step->waiters, step->connection);
    struct store_wait *wait = NULL;
    for (size_t i = 0; i < request->count; i++) {
        struct store_entry *entry = store_step_find(step, request->keys[i]);
        if (store_entry_is_present(entry)) {
            continue;
        }
        if (wait == NULL) {
            wait = store_wait_begin(step->waiters, step->connection, request->count - i);
        }
        store_wait_add(wait, store_step_obtain(step, entry, request->keys[i]));
    }
    if (wait == NULL) {
        store_step_reply_byte(step, STORE_STOP_WAITING);
    }
}

static void store_apply_cancel_wait(const struct store_step *step) {
    store_waiters_drop(step->waiters, step->connection);
    store_step_reply_byte(step, STORE_WAIT_CANCELLED);
}

/* What is refused. */

/* Any operation that the host does not let the client make; see store_table_refuse. */
static void store_apply_refused(const struct store_step *step, const char *reason) {
    const struct store_request *request = step->request;
    if (request->operation == STORE_COMPARE_SET) {
        reply_what_is_there(step, store_step_find(step, request->key));
    } else if (request->operation == STORE_DELETE) {
        store_step_reply_integer(step, 0);
    } else if (store_operation_reply_kind(request->operation) != STORE_REPLY_NONE) {
        store_effects_close(step->effects, step->connection, reason);
    }
}

/* The table. */

struct store_table {
    struct store_entries entries;
    struct store_waiters waiters;
    struct slice own_prefix; /* borrowed; empty: there are no own keys */
};

struct store_table *store_table_new(const struct store_limits *limits) {
    struct store_table *table = memory_allocate(sizeof *table);
    store_entries_init(&table->entries, limits->memory_bytes);
    table->waiters.entries = &table->entries;
    return table;
}

/* The arguments of a renewal, for each entry. */
struct renewal {
    struct store_table *table;
    struct slice kept_prefix;
    struct store_effects *effects;
};

static bool forget_entry(void *context, struct slice key, void *value) {
    const struct renewal *renewal = context;
    struct store_table *table = renewal->table;
    struct store_entry *entry = value;
    if (!slice_starts_with(key, renewal->kept_prefix) || renewal->kept_prefix.length == 0) {
        store_waiters_expel(&table->waiters, entry,
            "the store was renewed while this client waited", renewal->effects);
        store_entry_remove_value(&table->entries, entry);
        store_queue_empty(&table->entries, entry);
    }
    return true;
}

/* `effects` is NULL when the connections are not to be closed. */
static void renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects) {
    struct renewal renewal = {table, kept_prefix, effects};
    store_queue_free_taken(&table->entries);
    table_each(table->entries.table, forget_entry, &renewal);
    store_entries_sweep(&table->entries);
}

void store_table_renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects) {
    renew(table, kept_prefix, effects);
}

void store_table_free(struct store_table *table) {
    if (table == NULL) {
        return;
    }
    renew(table, (struct slice){0}, NULL);
    store_entries_clear(&table->entries);
    free(table);
}

void store_table_disconnect(struct store_table *table, struct store_connection *connection) {
    store_waiters_drop(&table->waiters, connection);
}

void store_table_reserve_memory(struct store_table *table, size_t taken_bytes) {
    table->entries.reserved = taken_bytes;
}

void store_table_own(struct store_table *table, struct slice own_prefix) {
    if (own_prefix.length > 0) {
        table->own_prefix = own_prefix;
        table->entries.owner_reserve = store_memory_reserve(table->entries.memory_limit);
    }
}

void store_table_describe(struct store_table *table, struct text *out) {
    store_census_describe(&table->entries, out);
}

/* Of a request with several keys the first one counts: a client puts the same prefix before all. */
static bool is_owners(const struct store_table *table, const struct store_request *request) {
    struct slice key = request->count > 0 ? request->keys[0] : request->key;
    return table->own_prefix.length > 0 && slice_starts_with(key, table->own_prefix);
}

size_t store_table_memory(const struct store_table *table) {
    return table->entries.memory;
}

size_t store_table_waiting(const struct store_table *table) {
    return table->waiters.count;
}

static void apply_nothing(const struct store_step *step) {
    (void)step;
}

static void apply_ping(const struct store_step *step) {
    const struct store_reply reply = {.kind = STORE_REPLY_NONCE, .nonce = step->request->nonce};
    store_step_reply(step, &reply);
}

static void (*const operations[STORE_OPERATION_COUNT])(const struct store_step *step) = {
    [STORE_VALIDATE] = apply_nothing, /* the decoder has checked it */
    [STORE_SET] = store_apply_set,
    [STORE_COMPARE_SET] = store_apply_compare_set,
    [STORE_GET] = store_apply_get,
    [STORE_ADD] = store_apply_add,
    [STORE_CHECK] = store_apply_check,
    [STORE_WAIT] = store_apply_wait,
    [STORE_COUNT_KEYS] = store_apply_count_keys,
    [STORE_DELETE] = store_apply_delete,
    [STORE_APPEND] = store_apply_append,
    [STORE_MULTI_GET] = store_apply_multi_get,
    [STORE_MULTI_SET] = store_apply_multi_set,
    [STORE_CANCEL_WAIT] = store_apply_cancel_wait,
    [STORE_PING] = apply_ping,
    [STORE_QUEUE_PUSH] = store_apply_queue_push,
    [STORE_QUEUE_POP] = store_apply_queue_pop,
    [STORE_QUEUE_LENGTH] = store_apply_queue_length,
    [STORE_LIST_KEYS] = store_apply_list_keys,
    [STORE_BARRIER] = store_apply_barrier,
};

static struct store_step step_of(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects) {
    return (struct store_step){
        .entries = &table->entries,
        .waiters = &table->waiters,
        .connection = connection,
        .request = request,
        .effects = effects,
    };
}

void store_table_refuse(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, const char *reason, struct store_effects *effects) {
    const struct store_step step = step_of(table, connection, request, effects);
    store_queue_free_taken(&table->entries);
    store_waiters_give_way(&table->waiters, connection, effects);
    store_apply_refused(&step, reason);
}

void store_table_apply(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects) {
    const struct store_step step = step_of(table, connection, request, effects);
    store_queue_free_taken(&table->entries);
    store_waiters_give_way(&table->waiters, connection, effects);
    table->entries.is_owners = is_owners(table, request);
    operations[request->operation](&step);
}

static void empty_queue(struct store_table *table, struct slice key) {
    struct store_entry *entry = store_entries_find(&table->entries, key);
    if (entry != NULL) {
        store_queue_empty(&table->entries, entry);
        store_entries_release(&table->entries, entry);
    }
}

void store_table_tell(struct store_table *table, struct slice key, struct slice value,
    struct store_effects *effects) {
    const struct store_request push = {.operation = STORE_QUEUE_PUSH, .key = key, .value = value};
    const struct store_step step = step_of(table, NULL, &push, effects);
    store_queue_free_taken(&table->entries);
    empty_queue(table, key);
    table->entries.is_owners = is_owners(table, &push);
    size_t size = store_queue_item_size(value.length) + store_entries_add_size(key);
    if (value.length > 0 && store_entries_have_room(&table->entries, size)) {
        store_apply_queue_push(&step);
    }
}
