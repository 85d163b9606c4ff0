/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_waiters.h"

#include <stdlib.h>

#include "base/memory.h"

size_t store_wait_size(size_t capacity) {
    return sizeof(struct store_wait) + capacity * sizeof(struct store_registration);
}

struct store_wait *store_wait_begin(
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

void store_wait_add(struct store_wait *wait, struct store_entry *entry) {
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

void store_waiters_answer_pop(struct store_waiters *waiters, struct store_entry *entry,
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

void store_waiters_wake_one(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects) {
    while (entry->first_waiter != NULL && !wake_first(waiters, entry, effects)) {
    }
}

void store_waiters_wake_all(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects) {
    while (entry->first_waiter != NULL) {
        (void)wake_first(waiters, entry, effects);
    }
}

void store_waiters_drop(struct store_waiters *waiters, struct store_connection *connection) {
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

void store_waiters_give_way(struct store_waiters *waiters, struct store_connection *connection,
    struct store_effects *effects) {
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

void store_waiters_expel(struct store_waiters *waiters, struct store_entry *entry,
    const char *reason, struct store_effects *effects) {
    while (entry->first_waiter != NULL) {
        struct store_wait *wait = entry->first_waiter->wait;
        if (effects != NULL) {
            store_effects_close(effects, wait->connection, reason);
        }
        forget(waiters, wait);
    }
}
