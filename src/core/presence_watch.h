/* SPDX-License-Identifier: BSD-3-Clause */
/* Which agents have stalled, as the host of their store judges: their connections stand, but
 * nothing was heard of them for too long (stopped, or starved). Only time in which the host was
 * itself looking counts, so a host that was stopped for a minute accuses nobody. */
#ifndef MUSTER_CORE_PRESENCE_WATCH_H
#define MUSTER_CORE_PRESENCE_WATCH_H

#include <stddef.h>

#include "base/duration.h"
#include "base/text.h"

struct presence_entry {
    char *name;
    struct instant counted_until; /* when it was heard of, or last looked at */
    struct duration silent_for;
};

/* A zeroed struct is valid and empty. */
struct presence_watch {
    struct presence_entry *entries;
    size_t count;
    size_t capacity;
};

void presence_watch_clear(struct presence_watch *watch);

void presence_watch_hear(struct presence_watch *watch, const char *name, struct instant now);
void presence_watch_forget(struct presence_watch *watch, const char *name);

/* Adds the names that have been silent for more than `limit`. One look accounts for at most
 * `patience`: about twice the time between looks. */
void presence_watch_look(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, struct text_list *out_stalled);

#endif
