/* SPDX-License-Identifier: BSD-3-Clause */
/* Which agents have stalled, as the host of their store judges: their connections stand, but
 * nothing was heard of them for too long (stopped, or starved). Only time in which the host was
 * itself looking counts, so a host that was stopped for a minute accuses nobody. */
#ifndef MUSTER_CORE_PRESENCE_WATCH_H
#define MUSTER_CORE_PRESENCE_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "base/text.h"

struct presence_entry {
    char *name;
    struct duration silent_for;
};

/* A zeroed struct is valid and empty. */
struct presence_watch {
    struct presence_entry *entries;
    size_t count;
    size_t capacity;
    struct instant last_look;
    bool has_looked;
};

void presence_watch_clear(struct presence_watch *watch);

void presence_watch_hear(struct presence_watch *watch, const char *name);
void presence_watch_forget(struct presence_watch *watch, const char *name);

/* Adds the names that have been silent for more than `limit`. One look accounts for at most
 * `patience`: about twice the time between looks. */
void presence_watch_look(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, struct text_list *out_stalled);

#endif
