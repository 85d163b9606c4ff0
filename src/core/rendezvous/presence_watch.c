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

void presence_watch_forget(struct presence_watch *watch, const char *name) {
    if (watch->agents != NULL) {
        (void)table_remove(watch->agents, slice_from_string(name));
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

struct look {
    struct instant now;
    struct duration patience;
    struct duration limit;
    struct text_list *stalled;
};

static bool look_at(void *context, struct slice name, void *value) {
    const struct look *look = context;
    struct presence *agent = value;
    int64_t passed = instant_until(agent->counted_until, look->now).nanoseconds;
    agent->counted_until = look->now;
    agent->silent_for.nanoseconds +=
        passed < look->patience.nanoseconds ? passed : look->patience.nanoseconds;
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
