/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers between a program and the children it forks, without an agent and without a
 * file: the children put requests into a queue that they inherit, the parent serves it, and ends
 * (SIGKILL) the child that is not through with something in time.
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
 * torch/distributed/elastic/timer/local_timer.py and TimerServer in its api.py. What differs: a
 * deadline is noticed when it is due and not at the end of an interval; only descendants of the
 * parent can be ended; a process that got the pid of one that died is not; there is no thread, the
 * parent calls muster_local_timer_serve.
 *
 * The queue may be used by all processes and threads at a time, a server by one thread. Functions
 * return 0, or -1 with errno set. A program that runs out of memory ends.
 *
 * Link with -lmuster-local-timer. */
#ifndef MUSTER_LOCAL_TIMER_H
#define MUSTER_LOCAL_TIMER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The longest scope, in bytes. */
#define MUSTER_LOCAL_TIMER_SCOPE_SIZE 479

/* The queue: MultiprocessingRequestQueue. */

struct muster_local_timer_queue;

/* Before the children are forked; NULL with errno set. Programs that they execute do not inherit
 * it. */
struct muster_local_timer_queue *muster_local_timer_queue_new(void);
/* Each process frees its own copy. Accepts NULL. */
void muster_local_timer_queue_free(struct muster_local_timer_queue *queue);

/* How many requests wait. */
size_t muster_local_timer_queue_size(const struct muster_local_timer_queue *queue);

/* A process holds a timer per scope, acquiring it again sets it anew. */
struct muster_local_timer_request {
    long pid;
    const char *scope;
    double expiration; /* seconds since 1970; negative: the timer is released */
};

/* Takes up to `count` requests and calls `visit` for each. It waits for them no longer than
 * `timeout` seconds in all. Returns how many came. */
size_t muster_local_timer_queue_get(struct muster_local_timer_queue *queue, size_t count,
    double timeout, void (*visit)(void *context, const struct muster_local_timer_request *request),
    void *context);

/* The children's side: LocalTimerClient. */

/* Asks for this process to be ended in `seconds` from now, unless `scope` is released or acquired
 * again before. When the queue is full, this waits for room; ETIMEDOUT after 5 seconds. EMSGSIZE
 * when the scope is too long, EINVAL when `seconds` is no number of seconds that can be. */
int muster_local_timer_acquire(
    struct muster_local_timer_queue *queue, const char *scope, double seconds);
/* Gives the timer back; one that is not held is fine. */
int muster_local_timer_release(struct muster_local_timer_queue *queue, const char *scope);

/* The parent's side: LocalTimerServer. */

struct muster_local_timer_server;

/* The queue is borrowed. */
struct muster_local_timer_server *muster_local_timer_server_new(
    struct muster_local_timer_queue *queue);
/* Accepts NULL. */
void muster_local_timer_server_free(struct muster_local_timer_server *server);

/* A process whose time was up. */
struct muster_local_timer_expiry {
    long pid;
    unsigned long long start_time; /* the kernel's; with the pid it names a process for good */
    char scope[MUSTER_LOCAL_TIMER_SCOPE_SIZE + 1]; /* whose deadline passed first */
};

/* Told what happens in a round; either may be NULL. */
struct muster_local_timer_observer {
    void (*ended)(void *context, const struct muster_local_timer_expiry *expiry);
    /* `error` is that of muster_local_timer_register; not of a process that has ended since. */
    void (*refused)(void *context, const struct muster_local_timer_request *request, int error);
    void *context;
};

/* One round, as TimerServer's _run_watchdogs: takes what requests there are, or waits for one until
 * `maximum` seconds have passed or a timer is due, and ends whose timers have expired. A process
 * that may not be signalled is tried again a second later. Returns how many were ended. `observer`
 * may be NULL. */
size_t muster_local_timer_serve(struct muster_local_timer_server *server, double maximum,
    const struct muster_local_timer_observer *observer);

/* The parts of a round, for a program that sees to the processes itself. */

/* Takes in one request; ESRCH when its process has ended and needs no timer, EPERM when it is no
 * descendant of this one, ENOSPC when there are too many timers, EMSGSIZE when the scope is too
 * long. */
int muster_local_timer_register(
    struct muster_local_timer_server *server, const struct muster_local_timer_request *request);

/* Ends all timers of a process. */
void muster_local_timer_clear(struct muster_local_timer_server *server, long pid);

/* Takes out the next process with expired timers, and all its timers. Returns 1, or 0 when there is
 * none. */
int muster_local_timer_expired(
    struct muster_local_timer_server *server, struct muster_local_timer_expiry *out_expiry);

/* Ends the process; one that has ended already is fine. Otherwise its timer expires again in a
 * second. */
int muster_local_timer_reap(
    struct muster_local_timer_server *server, const struct muster_local_timer_expiry *expiry);

/* How many timers are held. */
size_t muster_local_timer_count(const struct muster_local_timer_server *server);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
