/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/presence_watch.h"

#include <stdlib.h>

#include "base/memory.h"

struct presence {
    struct instant counted_until; /* the time of its last sign of life, or of the last look */
    struct duration silent_for;
};

void presence_watch_clear(struct presence_watch *watch) {
    table_free(watch->agents);
    free(watch->absent);
    *watch = (struct presence_watch){0};
}

void presence_watch_hear(struct presence_watch *watch, const char *name, struct instant now) {
    if (watch->agents == NULL) {
        watch->agents = table_new(free);
    }
    struct presence *agent = table_get(watch->agents, slice_from_string(name));
    if (agent == NULL) {
        agent = memory_allocate(sizeof *agent);
        (void)table_put(watch->agents, slice_from_string(name), agent);
    }
    *agent = (struct presence){.counted_until = now};
}

bool presence_watch_knows(const struct presence_watch *watch, const char *name) {
    return watch->agents != NULL && table_get(watch->agents, slice_from_string(name)) != NULL;
}

static struct presence_absence *add_absence(
    struct presence_watch *watch, const struct node_identity *identity) {
    watch->absent = memory_reserve(
        watch->absent, &watch->absent_capacity, watch->absent_count + 1, sizeof *watch->absent);
    struct presence_absence *absence = &watch->absent[watch->absent_count++];
    *absence = (struct presence_absence){.identity = *identity};
    return absence;
}

/* A node whose workers are done may stand in the record for long after it has gone. */
void presence_watch_forget(struct presence_watch *watch, const char *name) {
    struct node_identity identity;
    if (watch->agents != NULL && table_remove(watch->agents, slice_from_string(name)) &&
        node_identity_parse(name, &identity)) {
        add_absence(watch, &identity)->is_known = true;
    }
}

static char *text_of(struct slice name) {
    return text_format("%.*s", (int)name.length, (const char *)name.data);
}

static bool list_name(void *context, struct slice name, void *value) {
    (void)value;
    text_list_add_taken(context, text_of(name));
    return true;
}

void presence_watch_list(const struct presence_watch *watch, struct text_list *out_names) {
    if (watch->agents != NULL) {
        table_each(watch->agents, list_name, out_names);
    }
}

/* Returns how long something was silent that had been so for `silence` until `*counted_until`. */
static struct duration count_silence(struct duration silence, struct instant *counted_until,
    struct instant now, struct duration patience) {
    int64_t passed = instant_until(*counted_until, now).nanoseconds;
    *counted_until = now;
    silence.nanoseconds += passed < patience.nanoseconds ? passed : patience.nanoseconds;
    return silence;
}

struct look {
    struct instant now;
    struct duration patience;
    struct duration limit;
    struct text_list *stalled;
};

static bool look_at(void *context, struct slice name, void *value) {
    const struct look *look = context;
    struct presence *agent = value;
    agent->silent_for =
        count_silence(agent->silent_for, &agent->counted_until, look->now, look->patience);
    if (agent->silent_for.nanoseconds > look->limit.nanoseconds) {
        text_list_add_taken(look->stalled, text_of(name));
    }
    return true;
}

void presence_watch_look(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, struct text_list *out_stalled) {
    struct look look = {now, patience, limit, out_stalled};
    if (watch->agents != NULL) {
        table_each(watch->agents, look_at, &look);
    }
}

/* Nodes that never come. */

static bool is_there(const struct presence_watch *watch, const struct node_identity *identity) {
    struct text name = {0};
    node_identity_write(identity, &name);
    bool is_there = presence_watch_knows(watch, text_string(&name));
    text_clear(&name);
    return is_there;
}

void presence_watch_await(
    struct presence_watch *watch, const struct rendezvous_state *record, struct instant now) {
    struct presence_watch before = *watch;
    struct node_table places = {0};
    *watch = (struct presence_watch){.agents = before.agents};
    for (size_t i = 0; i < before.absent_count; i++) {
        node_table_put(&places, &before.absent[i].identity, i);
    }
    for (size_t i = 0; i < record->count; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        if (!node_identity_is_muster(&node->identity) || is_there(watch, &node->identity)) {
            continue;
        }
        size_t place = node_table_find(&places, &node->identity);
        struct presence_absence *absence = add_absence(watch, &node->identity);
        absence->counted_until = now;
        if (place != NODE_TABLE_ABSENT) {
            *absence = before.absent[place];
        }
        absence->is_done = node->is_done;
    }
    node_table_clear(&places);
    free(before.absent);
}

static bool is_awaited(const struct presence_watch *watch, const struct presence_absence *absence) {
    return !absence->is_known && !is_there(watch, &absence->identity);
}

bool presence_watch_is_awaiting(const struct presence_watch *watch) {
    size_t i = 0;
    while (i < watch->absent_count && !is_awaited(watch, &watch->absent[i])) {
        i++;
    }
    return i < watch->absent_count;
}

bool presence_watch_give_up(struct presence_watch *watch, const struct node_identity *identity) {
    for (size_t i = 0; i < watch->absent_count; i++) {
        struct presence_absence *absence = &watch->absent[i];
        if (node_identity_equals(&absence->identity, identity) && is_awaited(watch, absence)) {
            absence->is_known = true;
            return true;
        }
    }
    return false;
}

void presence_watch_miss(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, void (*missed)(void *context, const struct presence_absence *absence),
    void *context) {
    for (size_t i = 0; i < watch->absent_count; i++) {
        struct presence_absence *absence = &watch->absent[i];
        if (!is_awaited(watch, absence)) {
            continue;
        }
        absence->absent_for =
            count_silence(absence->absent_for, &absence->counted_until, now, patience);
        if (absence->absent_for.nanoseconds >= limit.nanoseconds) {
            absence->is_known = true;
            missed(context, absence);
        }
    }
}
