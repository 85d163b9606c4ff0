/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/watchdog.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/memory.h"
#include "base/table.h"

struct timer {
    struct heap_item deadline; /* nanoseconds of wall-clock time; in the heap of its holder */
    const char *scope;         /* owned by the table */
    int signal;
};

/* The timers of one process, which has at least one. */
struct holder {
    struct heap_item deadline; /* of its first timer; in the heap of all holders */
    int64_t pid;
    uint64_t start_time;
    struct table *timers; /* by scope with its NUL */
    struct heap deadlines;
    size_t scope_bytes;
};

struct watchdog {
    struct watchdog_limits limits;
    struct table *holders; /* by pid */
    struct heap deadlines;
    size_t timer_count;
    size_t scope_bytes;
};

void watchdog_request_clear(struct watchdog_request *request) {
    free(request->scope);
    *request = (struct watchdog_request){0};
}

static void free_holder(void *value) {
    struct holder *holder = value;
    table_free(holder->timers);
    heap_clear(&holder->deadlines);
    free(holder);
}

struct watchdog *watchdog_new(const struct watchdog_limits *limits) {
    struct watchdog *watchdog = memory_allocate(sizeof *watchdog);
    watchdog->limits = *limits;
    watchdog->holders = table_new(free_holder);
    return watchdog;
}

void watchdog_free(struct watchdog *watchdog) {
    if (watchdog != NULL) {
        table_free(watchdog->holders);
        heap_clear(&watchdog->deadlines);
        free(watchdog);
    }
}

static struct slice pid_key(const int64_t *pid) {
    return (struct slice){(const uint8_t *)pid, sizeof *pid};
}

static struct slice scope_key(const char *scope) {
    return (struct slice){(const uint8_t *)scope, strlen(scope) + 1};
}

static struct holder *find_holder(const struct watchdog *watchdog, int64_t pid) {
    return table_get(watchdog->holders, pid_key(&pid));
}

void watchdog_forget(struct watchdog *watchdog, int64_t pid) {
    struct holder *holder = find_holder(watchdog, pid);
    if (holder != NULL) {
        watchdog->timer_count -= holder->deadlines.count;
        watchdog->scope_bytes -= holder->scope_bytes;
        heap_remove(&watchdog->deadlines, &holder->deadline);
        table_remove(watchdog->holders, pid_key(&pid));
    }
}

void watchdog_forget_all(struct watchdog *watchdog) {
    table_free(watchdog->holders);
    watchdog->holders = table_new(free_holder);
    heap_clear(&watchdog->deadlines);
    watchdog->timer_count = 0;
    watchdog->scope_bytes = 0;
}

size_t watchdog_timer_count(const struct watchdog *watchdog) {
    return watchdog->timer_count;
}

bool watchdog_find(const struct watchdog *watchdog, int64_t pid, uint64_t *out_start_time) {
    const struct holder *holder = find_holder(watchdog, pid);
    if (holder == NULL) {
        return false;
    }
    *out_start_time = holder->start_time;
    return true;
}

/* Changes of one holder's timers. */

static struct timer *first_timer(const struct holder *holder) {
    return (struct timer *)heap_first(&holder->deadlines);
}

/* Updates the registry after the timers of a holder have changed. */
static void settle(struct watchdog *watchdog, struct holder *holder) {
    const struct heap_item *first = heap_first(&holder->deadlines);
    if (first == NULL) {
        watchdog_forget(watchdog, holder->pid);
    } else if (first->key != holder->deadline.key) {
        heap_move(&watchdog->deadlines, &holder->deadline, first->key);
    }
}

/* The caller settles the holder afterwards. */
static void drop_timer(struct watchdog *watchdog, struct holder *holder, struct timer *timer) {
    struct slice key = scope_key(timer->scope);
    watchdog->timer_count--;
    watchdog->scope_bytes -= key.length;
    holder->scope_bytes -= key.length;
    heap_remove(&holder->deadlines, &timer->deadline);
    table_remove(holder->timers, key);
}

static void insert_timer(
    struct watchdog *watchdog, struct holder *holder, const struct watchdog_request *request) {
    struct timer *timer = memory_allocate(sizeof *timer);
    struct slice key = table_put(holder->timers, scope_key(request->scope), timer);
    timer->scope = (const char *)key.data;
    timer->signal = request->signal;
    heap_insert(&holder->deadlines, &timer->deadline, request->expiration.nanoseconds);
    watchdog->timer_count++;
    watchdog->scope_bytes += key.length;
    holder->scope_bytes += key.length;
}

static struct holder *add_holder(struct watchdog *watchdog, int64_t pid, uint64_t start_time) {
    struct holder *holder = memory_allocate(sizeof *holder);
    holder->pid = pid;
    holder->start_time = start_time;
    holder->timers = table_new(free);
    heap_insert(&watchdog->deadlines, &holder->deadline, INT64_MAX);
    table_put(watchdog->holders, pid_key(&pid), holder);
    return holder;
}

static bool has_room(const struct watchdog *watchdog, const struct holder *holder,
    const struct watchdog_request *request) {
    const struct watchdog_limits *limits = &watchdog->limits;
    size_t count = holder == NULL ? 0 : holder->deadlines.count;
    size_t length = strlen(request->scope) + 1;
    return count < limits->timers_per_process && watchdog->timer_count < limits->timers &&
           length <= limits->scope_bytes - watchdog->scope_bytes && spare_memory_keep_reserve() &&
           (holder == NULL || heap_has_room(&holder->deadlines));
}

static enum failure_code acquire(struct watchdog *watchdog, const struct watchdog_request *request,
    const struct watchdog_process *process) {
    struct holder *holder = find_holder(watchdog, request->pid);
    if (holder != NULL && holder->start_time != process->start_time) {
        watchdog_forget(watchdog, request->pid);
        holder = NULL;
    }
    struct timer *timer =
        holder == NULL ? NULL : table_get(holder->timers, scope_key(request->scope));
    if (timer == NULL && !has_room(watchdog, holder, request)) {
        return FAILURE_LIMIT;
    }
    if (timer != NULL) {
        timer->signal = request->signal;
        heap_move(&holder->deadlines, &timer->deadline, request->expiration.nanoseconds);
    } else {
        holder = holder == NULL ? add_holder(watchdog, request->pid, process->start_time) : holder;
        insert_timer(watchdog, holder, request);
    }
    settle(watchdog, holder);
    return FAILURE_NONE;
}

static void release(struct watchdog *watchdog, const struct watchdog_request *request) {
    struct holder *holder = find_holder(watchdog, request->pid);
    struct timer *timer =
        holder == NULL ? NULL : table_get(holder->timers, scope_key(request->scope));
    if (timer != NULL) {
        drop_timer(watchdog, holder, timer);
        settle(watchdog, holder);
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

struct visit {
    void (*visit)(void *context, const struct watchdog_request *timer);
    void *context;
};

static bool visit_holder(void *context, struct slice key, void *value) {
    const struct visit *visit = context;
    const struct holder *holder = value;
    (void)key;
    for (size_t i = 0; i < holder->deadlines.count; i++) {
        const struct timer *timer = (const struct timer *)holder->deadlines.items[i];
        struct text scope = {0};
        text_append(&scope, timer->scope);
        const struct watchdog_request request = {.kind = WATCHDOG_ACQUIRE,
            .pid = holder->pid,
            .scope = scope.data,
            .expiration = {timer->deadline.key},
            .signal = timer->signal};
        visit->visit(visit->context, &request);
        text_clear(&scope);
    }
    return true;
}

void watchdog_each(const struct watchdog *watchdog,
    void (*visit)(void *context, const struct watchdog_request *timer), void *context) {
    struct visit visiting = {visit, context};
    table_each(watchdog->holders, visit_holder, &visiting);
}

/* Expiry. */

bool watchdog_next_deadline(const struct watchdog *watchdog, struct wall_time *out_deadline) {
    const struct heap_item *first = heap_first(&watchdog->deadlines);
    if (first == NULL) {
        return false;
    }
    out_deadline->nanoseconds = first->key;
    return true;
}

void watchdog_expiry_clear(struct watchdog_expiry *expiry) {
    text_list_clear(&expiry->scopes);
    free(expiry->expirations);
    *expiry = (struct watchdog_expiry){0};
}

bool watchdog_take_expired(
    struct watchdog *watchdog, struct wall_time now, struct watchdog_expiry *out_expiry) {
    struct holder *holder = (struct holder *)heap_first(&watchdog->deadlines);
    if (holder == NULL || holder->deadline.key > now.nanoseconds) {
        return false;
    }
    struct watchdog_expiry expiry = {.pid = holder->pid, .start_time = holder->start_time};
    struct timer *first;
    while (expiry.signal == 0 && (first = first_timer(holder)) != NULL &&
           first->deadline.key <= now.nanoseconds) {
        expiry.expirations = memory_reserve(expiry.expirations, &expiry.expiration_capacity,
            expiry.scopes.count + 1, sizeof *expiry.expirations);
        expiry.expirations[expiry.scopes.count].nanoseconds = first->deadline.key;
        text_list_add(&expiry.scopes, first->scope);
        expiry.signal = first->signal > 0 ? first->signal : 0;
        drop_timer(watchdog, holder, first);
    }
    if (expiry.signal != 0) {
        watchdog_forget(watchdog, expiry.pid);
    } else {
        settle(watchdog, holder);
    }
    *out_expiry = expiry;
    return true;
}

void watchdog_retry(
    struct watchdog *watchdog, const struct watchdog_expiry *expiry, struct wall_time when) {
    struct watchdog_request request = {
        .kind = WATCHDOG_ACQUIRE,
        .pid = expiry->pid,
        .scope = expiry->scopes.items[expiry->scopes.count - 1],
        .expiration = when,
        .signal = expiry->signal,
    };
    if (find_holder(watchdog, expiry->pid) == NULL) {
        struct holder *holder = add_holder(watchdog, expiry->pid, expiry->start_time);
        insert_timer(watchdog, holder, &request);
        settle(watchdog, holder);
    }
}
