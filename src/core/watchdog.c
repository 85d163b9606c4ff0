/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/table.h"

struct timer {
    char *scope;
    int64_t expiration; /* nanoseconds of wall-clock time */
    int signal;
};

/* The timers of one process, the first to expire first. */
struct holder {
    int64_t pid;
    uint64_t start_time;
    struct timer *timers;
    size_t count;
    size_t capacity;
};

struct watchdog {
    struct table *holders; /* by pid; each has a timer at least */
    size_t timer_count;
};

void watchdog_request_clear(struct watchdog_request *request) {
    free(request->scope);
    *request = (struct watchdog_request){0};
}

static void free_holder(void *value) {
    struct holder *holder = value;
    for (size_t i = 0; i < holder->count; i++) {
        free(holder->timers[i].scope);
    }
    free(holder->timers);
    free(holder);
}

struct watchdog *watchdog_new(void) {
    struct watchdog *watchdog = memory_allocate(sizeof *watchdog);
    watchdog->holders = table_new(free_holder);
    return watchdog;
}

void watchdog_free(struct watchdog *watchdog) {
    if (watchdog != NULL) {
        table_free(watchdog->holders);
        free(watchdog);
    }
}

static struct slice key_of(const int64_t *pid) {
    return (struct slice){(const uint8_t *)pid, sizeof *pid};
}

static struct holder *find_holder(const struct watchdog *watchdog, int64_t pid) {
    return table_get(watchdog->holders, key_of(&pid));
}

void watchdog_forget(struct watchdog *watchdog, int64_t pid) {
    const struct holder *holder = find_holder(watchdog, pid);
    if (holder != NULL) {
        watchdog->timer_count -= holder->count;
        table_remove(watchdog->holders, key_of(&pid));
    }
}

void watchdog_forget_all(struct watchdog *watchdog) {
    table_free(watchdog->holders);
    watchdog->holders = table_new(free_holder);
    watchdog->timer_count = 0;
}

size_t watchdog_timer_count(const struct watchdog *watchdog) {
    return watchdog->timer_count;
}

/* Changes of one holder's timers. */

/* The index of the scope's timer, or the count. */
static size_t find_timer(const struct holder *holder, const char *scope) {
    size_t i = 0;
    while (i < holder->count && !text_equals(holder->timers[i].scope, scope)) {
        i++;
    }
    return i;
}

/* The holder may be left without timers; then it has to be forgotten. */
static void drop_timers(
    struct watchdog *watchdog, struct holder *holder, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        free(holder->timers[i].scope);
    }
    holder->count -= count;
    watchdog->timer_count -= count;
    for (size_t i = first; i < holder->count; i++) {
        holder->timers[i] = holder->timers[i + count];
    }
}

static void insert_timer(
    struct watchdog *watchdog, struct holder *holder, const struct watchdog_request *request) {
    holder->timers = memory_reserve(
        holder->timers, &holder->capacity, holder->count + 1, sizeof *holder->timers);
    size_t place = holder->count++;
    while (place > 0 && holder->timers[place - 1].expiration > request->expiration.nanoseconds) {
        holder->timers[place] = holder->timers[place - 1];
        place--;
    }
    holder->timers[place] = (struct timer){
        .scope = memory_duplicate_string(request->scope),
        .expiration = request->expiration.nanoseconds,
        .signal = request->signal,
    };
    watchdog->timer_count++;
}

static struct holder *add_holder(struct watchdog *watchdog, int64_t pid, uint64_t start_time) {
    struct holder *holder = memory_allocate(sizeof *holder);
    holder->pid = pid;
    holder->start_time = start_time;
    table_put(watchdog->holders, key_of(&pid), holder);
    return holder;
}

static enum failure_code acquire(struct watchdog *watchdog, const struct watchdog_request *request,
    const struct watchdog_process *process) {
    struct holder *holder = find_holder(watchdog, request->pid);
    if (holder != NULL && holder->start_time != process->start_time) {
        watchdog_forget(watchdog, request->pid);
        holder = NULL;
    }
    size_t count = holder == NULL ? 0 : holder->count;
    size_t old = holder == NULL ? 0 : find_timer(holder, request->scope);
    if (old == count && (count >= WATCHDOG_MAXIMUM_TIMERS_PER_PROCESS ||
                            watchdog->timer_count >= WATCHDOG_MAXIMUM_TIMERS)) {
        return FAILURE_LIMIT;
    }
    if (holder == NULL) {
        holder = add_holder(watchdog, request->pid, process->start_time);
    } else if (old < count) {
        drop_timers(watchdog, holder, old, 1);
    }
    insert_timer(watchdog, holder, request);
    return FAILURE_NONE;
}

static void release(struct watchdog *watchdog, const struct watchdog_request *request) {
    struct holder *holder = find_holder(watchdog, request->pid);
    size_t place = holder == NULL ? 0 : find_timer(holder, request->scope);
    if (holder == NULL || place == holder->count) {
        return;
    }
    drop_timers(watchdog, holder, place, 1);
    if (holder->count == 0) {
        watchdog_forget(watchdog, request->pid);
    }
}

enum failure_code watchdog_take(struct watchdog *watchdog, const struct watchdog_request *request,
    const struct watchdog_process *process) {
    switch (request->kind) {
    case WATCHDOG_RELEASE:
        release(watchdog, request);
        return FAILURE_NONE;
    case WATCHDOG_ACQUIRE:
        return process->is_ours ? acquire(watchdog, request, process) : FAILURE_INVALID;
    }
    return FAILURE_INVALID;
}

/* Expiry. */

struct search {
    struct holder *first; /* the holder of the timer that expires first */
};

static bool compare_holder(void *context, struct slice key, void *value) {
    struct search *search = context;
    struct holder *holder = value;
    (void)key;
    if (search->first == NULL ||
        holder->timers[0].expiration < search->first->timers[0].expiration) {
        search->first = holder;
    }
    return true;
}

static struct holder *find_first(const struct watchdog *watchdog) {
    struct search search = {0};
    table_each(watchdog->holders, compare_holder, &search);
    return search.first;
}

bool watchdog_next_deadline(const struct watchdog *watchdog, struct wall_time *out_deadline) {
    const struct holder *first = find_first(watchdog);
    if (first == NULL) {
        return false;
    }
    out_deadline->nanoseconds = first->timers[0].expiration;
    return true;
}

void watchdog_expiry_clear(struct watchdog_expiry *expiry) {
    text_list_clear(&expiry->scopes);
    *expiry = (struct watchdog_expiry){0};
}

bool watchdog_take_expired(
    struct watchdog *watchdog, struct wall_time now, struct watchdog_expiry *out_expiry) {
    struct holder *holder = find_first(watchdog);
    if (holder == NULL || holder->timers[0].expiration > now.nanoseconds) {
        return false;
    }
    struct watchdog_expiry expiry = {.pid = holder->pid, .start_time = holder->start_time};
    size_t expired = 0;
    while (expiry.signal == 0 && expired < holder->count &&
           holder->timers[expired].expiration <= now.nanoseconds) {
        const struct timer *timer = &holder->timers[expired++];
        text_list_add(&expiry.scopes, timer->scope);
        expiry.signal = timer->signal > 0 ? timer->signal : 0;
    }
    if (expiry.signal == 0) {
        drop_timers(watchdog, holder, 0, expired);
    }
    if (expiry.signal != 0 || holder->count == 0) {
        watchdog_forget(watchdog, expiry.pid);
    }
    *out_expiry = expiry;
    return true;
}
