/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/presence_watch.h"

#include <stdlib.h>

#include "base/memory.h"

void presence_watch_clear(struct presence_watch *watch) {
    for (size_t i = 0; i < watch->count; i++) {
        free(watch->entries[i].name);
    }
    free(watch->entries);
    *watch = (struct presence_watch){0};
}

static struct presence_entry *find(const struct presence_watch *watch, const char *name) {
    for (size_t i = 0; i < watch->count; i++) {
        if (text_equals(watch->entries[i].name, name)) {
            return &watch->entries[i];
        }
    }
    return NULL;
}

void presence_watch_hear(struct presence_watch *watch, const char *name, struct instant now) {
    struct presence_entry *entry = find(watch, name);
    if (entry == NULL) {
        watch->entries = memory_reserve(
            watch->entries, &watch->capacity, watch->count + 1, sizeof *watch->entries);
        entry = &watch->entries[watch->count++];
        *entry = (struct presence_entry){.name = memory_duplicate_string(name)};
    }
    entry->counted_until = now;
    entry->silent_for = (struct duration){0};
}

void presence_watch_forget(struct presence_watch *watch, const char *name) {
    struct presence_entry *entry = find(watch, name);
    if (entry != NULL) {
        free(entry->name);
        *entry = watch->entries[--watch->count];
    }
}

void presence_watch_look(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, struct text_list *out_stalled) {
    for (size_t i = 0; i < watch->count; i++) {
        struct presence_entry *entry = &watch->entries[i];
        int64_t passed = instant_until(entry->counted_until, now).nanoseconds;
        entry->counted_until = now;
        entry->silent_for.nanoseconds +=
            passed < patience.nanoseconds ? passed : patience.nanoseconds;
        if (entry->silent_for.nanoseconds > limit.nanoseconds) {
            text_list_add(out_stalled, entry->name);
        }
    }
}
