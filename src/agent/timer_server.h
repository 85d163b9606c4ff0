/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of countdown timers: takes requests from a FIFO, keeps the deadlines, tells when one has
 * passed, and shows who holds what to whoever connects to the socket beside the FIFO. A process's
 * timers end with it; where very many processes hold some, at their deadlines. Who may hold timers
 * and what happens to a process whose timer expires is its user's business.
 *
 * Deadlines are wall-clock times, since clients give them so, and pass when that clock says so: one
 * that is set back postpones them, one that is set forward brings them nearer. */
#ifndef MUSTER_AGENT_TIMER_SERVER_H
#define MUSTER_AGENT_TIMER_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/log.h"
#include "core/watchdog.h"
#include "host/event_loop.h"
#include "wire/kernel_text.h"

/* The socket is at the FIFO's path with this behind it. */
#define TIMER_SERVER_SOCKET_SUFFIX ".list"

struct timer_server;

struct timer_server_settings {
    const struct log *log; /* borrowed */
    /* Whether a process that runs may hold timers, and why another may not. */
    bool (*admits)(void *context, const struct kernel_process_stat *process);
    const char *refusal;
    /* A process has expired timers; false when it is still to be ended, and the call to be repeated
     * in a second. */
    bool (*expired)(void *context, const struct watchdog_expiry *expiry);
    void *context;
};

/* Makes the FIFO at `path`; requests are not served before timer_server_begin. Fails as
 * timer_fifo_new does. */
__attribute__((warn_unused_result)) enum failure_code timer_server_new(struct event_loop *loop,
    const char *path, const struct timer_server_settings *settings,
    struct timer_server **out_server, struct failure *failure);

/* Removes the FIFO. Accepts NULL; not from inside a callback. */
void timer_server_free(struct timer_server *server);

/* From now on requests are served; what was written before is dropped. */
void timer_server_begin(struct timer_server *server);

/* All timers are forgotten, and no requests are served. */
void timer_server_end(struct timer_server *server);

/* When it last had nothing overdue to do: now, or when the timer was due that it has not seen to,
 * or since when a process is to be ended and cannot be. */
struct wall_time timer_server_last_progress(
    const struct timer_server *server, struct wall_time now);

/* When the next timer expires, now if that has passed; false when there is none. */
bool timer_server_next_expiry(const struct timer_server *server, struct instant *out_when);

/* How many timers are held; how many requests have come, also those that were refused. */
size_t timer_server_timer_count(const struct timer_server *server);
uint64_t timer_server_request_count(const struct timer_server *server);

/* A process has ended and was reaped, which may come to be known here first. */
void timer_server_forget(struct timer_server *server, pid_t pid);

#endif
