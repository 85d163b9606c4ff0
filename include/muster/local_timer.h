/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers between a program and the children it forks, without an agent and without a
 * file. The children put requests into a queue that they inherit. The parent serves the queue, and
 * ends (SIGKILL) a child that has not finished something in time.
 *
 *     struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
 *     if (fork() == 0) {
 *         muster_local_timer_acquire(queue, "load a batch", 30);
 *         …
 *         muster_local_timer_release(queue, "load a batch");
 *         _exit(0);
 *     }
 *     struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
 *     while (there are children) {
 *         muster_local_timer_serve(server, 1, NULL);
 *     }
 *
 * Compare LocalTimerClient, LocalTimerServer and MultiprocessingRequestQueue in
 * torch/distributed/elastic/timer/local_timer.py and TimerServer in its api.py. The differences: A
 * deadline is noticed when it is due, not at the end of an interval. Only descendants of the parent
 * can be ended. A new process that got the pid of a dead one is not ended. There is no thread; the
 * parent calls muster_local_timer_serve.
 *
 * All processes and threads may use the queue at the same time. Only one thread may use a server.
 * Functions return 0, or -1 with errno set. When memory is exhausted, the program is ended.
 *
 * Link with -lmuster-local-timer. */
#ifndef MUSTER_LOCAL_TIMER_H
#define MUSTER_LOCAL_TIMER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The maximum length of a scope, in bytes. */
#define MUSTER_LOCAL_TIMER_SCOPE_SIZE 479

/* The queue: MultiprocessingRequestQueue. */

struct muster_local_timer_queue;

/* Call it before the children are forked. NULL with errno set on failure. Programs that the
 * children execute do not inherit the queue. */
struct muster_local_timer_queue *muster_local_timer_queue_new(void);
/* Each process frees its own copy. Accepts NULL. */
void muster_local_timer_queue_free(struct muster_local_timer_queue *queue);

/* The number of requests in the queue. */
size_t muster_local_timer_queue_size(const struct muster_local_timer_queue *queue);

/* A process holds one timer per scope. Acquiring a scope again sets a new deadline. */
struct muster_local_timer_request {
    long pid;
    const char *scope;
    double expiration; /* seconds since 1970; negative: the timer is released */
};

/* Takes up to `count` requests and calls `visit` for each. Waits for them no longer than `timeout`
 * seconds in all. Returns how many came. */
size_t muster_local_timer_queue_get(struct muster_local_timer_queue *queue, size_t count,
    double timeout, void (*visit)(void *context, const struct muster_local_timer_request *request),
    void *context);

/* For the children: LocalTimerClient. */

/* Asks the parent to end this process in `seconds` from now, unless `scope` is released or acquired
 * again before. When the queue is full, the call waits for room. Errors: ETIMEDOUT when there was
 * no room for 5 seconds, EMSGSIZE when the scope is too long, EINVAL when `seconds` is negative,
 * not a number or too large. */
int muster_local_timer_acquire(
    struct muster_local_timer_queue *queue, const char *scope, double seconds);
/* Releases the timer. Releasing a timer that is not held is no error. */
int muster_local_timer_release(struct muster_local_timer_queue *queue, const char *scope);

/* For the parent: LocalTimerServer. */

struct muster_local_timer_server;

/* The queue is borrowed. */
struct muster_local_timer_server *muster_local_timer_server_new(
    struct muster_local_timer_queue *queue);
/* Accepts NULL. */
void muster_local_timer_server_free(struct muster_local_timer_server *server);

/* A process whose timer has expired. */
struct muster_local_timer_expiry {
    long pid;
    unsigned long long
        start_time; /* from the kernel; together with the pid it identifies a process */
    char scope[MUSTER_LOCAL_TIMER_SCOPE_SIZE + 1]; /* the scope whose deadline passed first */
};

/* Callbacks for the events of a round; each may be NULL. */
struct muster_local_timer_observer {
    void (*ended)(void *context, const struct muster_local_timer_expiry *expiry);
    /* `error` is the errno of muster_local_timer_register. A process that has ended meanwhile is
     * not reported. */
    void (*refused)(void *context, const struct muster_local_timer_request *request, int error);
    void *context;
};

/* Runs one round, as TimerServer's _run_watchdogs does: takes the requests in the queue, or waits
 * for one until `maximum` seconds have passed or a timer is due. Then it ends the processes whose
 * timers have expired. When a process cannot be signalled, the next attempt comes a second later.
 * Returns how many were ended. `observer` may be NULL. */
size_t muster_local_timer_serve(struct muster_local_timer_server *server, double maximum,
    const struct muster_local_timer_observer *observer);

/* The parts of a round, for a program that ends processes itself. */

/* Registers one request. Errors: ESRCH when its process has ended and needs no timer, EPERM when it
 * is no descendant of this process, ENOSPC when there are too many timers, EMSGSIZE when the scope
 * is too long. */
int muster_local_timer_register(
    struct muster_local_timer_server *server, const struct muster_local_timer_request *request);

/* Removes all timers of a process. */
void muster_local_timer_clear(struct muster_local_timer_server *server, long pid);

/* Removes the next process with expired timers, together with all its timers. Returns 1, or 0 when
 * there is none. */
int muster_local_timer_expired(
    struct muster_local_timer_server *server, struct muster_local_timer_expiry *out_expiry);

/* Ends the process. It is no error when the process has already ended. When it cannot be signalled,
 * its timer expires again in a second. */
int muster_local_timer_reap(
    struct muster_local_timer_server *server, const struct muster_local_timer_expiry *expiry);

/* The number of active timers. */
size_t muster_local_timer_count(const struct muster_local_timer_server *server);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
