/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers between a program and its children, without an agent and without a file. The
 * children, and the programs that they execute, put requests into a queue that they inherit. The
 * parent serves the queue, and ends (SIGKILL) a child that has not finished something in time.
 *
 *     struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
 *     if (fork() == 0) {
 *         MUSTER_LOCAL_TIMER_SCOPE(queue, "load a batch", 30);   released at the end of this block
 *         …
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
 * parent calls muster_local_timer_serve, when muster_local_timer_server_fd is readable or at any
 * other time.
 *
 * All processes and threads may use the queue at the same time. Only one thread may use a server,
 * and only of the process that has made it. Functions return 0, or -1 with errno set; those that
 * return a number of things return 0 with errno set. EINVAL when NULL was given where it may not
 * be, a time that is no number, or a server in a child that was forked; nothing else happens then.
 * SIGPIPE is not raised. ENOMEM where there is not enough memory. Callbacks may call every function
 * but those that free the queue and the server which have called back.
 *
 * Link with -lmuster. */
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
 * children execute do not inherit the queue, unless it is handed on. */
struct muster_local_timer_queue *muster_local_timer_queue_new(void);
/* Each process frees its own copy. Accepts NULL. */
void muster_local_timer_queue_free(struct muster_local_timer_queue *queue);

/* For programs that the children execute. */

/* The variable of the environment in which such a program looks for the queue. */
#define MUSTER_LOCAL_TIMER_VARIABLE "MUSTER_LOCAL_TIMER_QUEUE"
/* Room for every name of a queue, with its end. */
#define MUSTER_LOCAL_TIMER_NAME_SIZE 64

/* From now on, programs that this process executes inherit the queue, as an open descriptor; its
 * name, "DESCRIPTOR:INODE", is written to `out_name`. The caller puts it into the environment that
 * those programs get. Allocates no memory; call it between fork and exec, so that no other program
 * inherits the queue, or before fork. Errors: ERANGE when `size` is too small. */
int muster_local_timer_queue_hand_on(
    struct muster_local_timer_queue *queue, char *out_name, size_t size);

/* In the program that was executed: the queue of that name, or with NULL of the name in
 * $MUSTER_LOCAL_TIMER_QUEUE. Requests can be put into it, and it cannot be served. The inherited
 * descriptor stays open, for programs that this one executes. NULL with errno set on failure:
 * ENOENT without the variable, EINVAL for what is no name, EBADF when the descriptor did not get
 * here, or is something else by now. */
struct muster_local_timer_queue *muster_local_timer_queue_open(const char *name);

/* The number of requests in the queue. */
size_t muster_local_timer_queue_size(const struct muster_local_timer_queue *queue);

/* A process holds one timer per scope. Acquiring a scope again sets a new deadline. */
struct muster_local_timer_request {
    long pid;
    const char *scope;
    double expiration; /* seconds since 1970; negative: the timer is released */
};

/* Takes up to `count` requests and calls `visit` for each. Waits for them no longer than `timeout`
 * seconds in all. Returns how many came. EINVAL for a queue that was opened by its name. */
size_t muster_local_timer_queue_get(struct muster_local_timer_queue *queue, size_t count,
    double timeout, void (*visit)(void *context, const struct muster_local_timer_request *request),
    void *context);

/* A queue of the program's own: TimerClient and RequestQueue, to be extended. Since 0.3. */

struct muster_local_timer_queue_functions {
    /* Of a process that asks: takes a timer, or a release of it, whose `pid` is that of the
     * process. Returns 0 or an errno, with which muster_local_timer_acquire fails. NULL: none can
     * be put in. */
    int (*put)(void *context, const struct muster_local_timer_request *request);
    /* The number of requests that can be had at once. NULL: it is not known, and one is asked for.
     */
    size_t (*size)(void *context);
    /* Calls `visit` with `visitor` for up to `count` requests, for which it waits up to `timeout`
     * seconds in all, not at all where that is 0 or less. Returns how many there were. NULL: the
     * queue cannot be served. */
    size_t (*get)(void *context, size_t count, double timeout,
        void (*visit)(void *context, const struct muster_local_timer_request *request),
        void *visitor);
    /* Readable where there are requests, or -1. Then muster_local_timer_server_fd is readable when
     * a timer is due, and not when a request has come. */
    int fd;
    void *context;
};

/* All functions of queues and servers take it; requests go to these functions and come from them,
 * in the process that calls. The struct is copied, `fd` is borrowed. It cannot be handed on
 * (EINVAL). NULL with errno set on failure: EINVAL with NULL, or with neither `put` nor `get`,
 * ENOMEM. */
struct muster_local_timer_queue *muster_local_timer_queue_over(
    const struct muster_local_timer_queue_functions *functions);

/* For the children: LocalTimerClient. */

/* Asks the parent to end this process in `seconds` from now, unless `scope` is released or acquired
 * again before. When the queue is full, the call waits for room. Errors: ETIMEDOUT when there was
 * no room for 5 seconds, EMSGSIZE when the scope is too long, EINVAL when `seconds` is negative,
 * not a number or too large, EPIPE when the parent is gone; what a queue of one's own says. */
int muster_local_timer_acquire(
    struct muster_local_timer_queue *queue, const char *scope, double seconds);
/* Releases the timer. Releasing a timer that is not held is no error. */
int muster_local_timer_release(struct muster_local_timer_queue *queue, const char *scope);

/* For MUSTER_LOCAL_TIMER_SCOPE. */
struct muster_local_timer_scope {
    struct muster_local_timer_queue *queue;
    const char *scope;
    int error; /* of the acquire: 0 or an errno; with an errno there is nothing to release */
};
struct muster_local_timer_scope muster_local_timer_scope_begin(
    struct muster_local_timer_queue *queue, const char *scope, double seconds);
void muster_local_timer_scope_end(struct muster_local_timer_scope *scope);

#define MUSTER_LOCAL_TIMER_JOIN_(left, right) left##right
#define MUSTER_LOCAL_TIMER_JOIN(left, right) MUSTER_LOCAL_TIMER_JOIN_(left, right)

/* Holds a timer from here to the end of the enclosing block, however the block is left (in C++ also
 * by an exception): timer.expires(). `name` must live as long as the block. */
#define MUSTER_LOCAL_TIMER_SCOPE(queue, name, seconds)                                             \
    __attribute__((cleanup(muster_local_timer_scope_end), unused)) struct muster_local_timer_scope \
    MUSTER_LOCAL_TIMER_JOIN(muster_local_timer_scope_, __LINE__) =                                 \
        muster_local_timer_scope_begin((queue), (name), (seconds))

/* For the parent: LocalTimerServer. */

struct muster_local_timer_server;

/* The queue is borrowed. NULL with errno set on failure: EINVAL for a queue that was opened by its
 * name, EMFILE and the like. */
struct muster_local_timer_server *muster_local_timer_server_new(
    struct muster_local_timer_queue *queue);
/* Accepts NULL. */
void muster_local_timer_server_free(struct muster_local_timer_server *server);

/* To be polled for reading: readable when there are requests or a timer is due. Then call
 * muster_local_timer_serve with 0. -1 with errno set on failure. */
int muster_local_timer_server_fd(const struct muster_local_timer_server *server);

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
 * is too long, EINVAL for an expiration after the year 2261. */
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
