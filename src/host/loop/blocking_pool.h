/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking calls: tasks that may never end, because a dead disk holds them up. They are carried out
 * on threads of their own. A blocking call owns its subject and uses nothing else, so a thread that
 * hangs is left behind together with the subject, and nobody waits for it. This module knows
 * nothing of files: the caller gives the function that does the work. */
#ifndef MUSTER_HOST_LOOP_BLOCKING_POOL_H
#define MUSTER_HOST_LOOP_BLOCKING_POOL_H

#include <pthread.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"

/* Starts a thread with a small stack to which no signal is ever delivered: the store thread, the
 * log thread, and threads for work that may block. */

/* `name` (at most 15 characters) is shown by ps and top. The caller joins the thread. */
__attribute__((warn_unused_result)) enum failure_code quiet_thread_start(const char *name,
    void *(*run)(void *context), void *context, pthread_t *out_thread, struct failure *failure);

/* The maximum number of blocking calls at a time. While that many hang, the others wait. They can
 * still be dropped. */
#define BLOCKING_POOL_MAXIMUM_THREADS 4

struct blocking_pool;
struct blocking_call;

struct blocking_task {
    void (*run)(void *subject);  /* called on a blocking call's thread */
    void (*free)(void *subject); /* called on any thread, when the subject is not needed any more */
    void *subject;
};

/* The loop calls `done` once, never from within a function below, and not if the blocking call was
 * dropped. `done` may take things out of the subject. The rest is freed after the call. */
struct blocking_answer {
    void (*done)(void *context, void *subject);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code blocking_pool_new(
    struct event_loop *loop, struct blocking_pool **out_pool, struct failure *failure);

/* One thread stays when there is nothing to do, once there has been one. So what could be carried
 * out once is not refused later because processes are used up. Before the first call is sent. */
void blocking_pool_keep_thread(struct blocking_pool *pool);

/* Drops all blocking calls. Accepts NULL. Must not be called from within an answer. */
void blocking_pool_free(struct blocking_pool *pool);

/* Blocking calls begin in the order in which they were sent. `*out_call` is valid until the
 * answer. When no thread can be started, this fails and frees the subject. */
__attribute__((warn_unused_result)) enum failure_code blocking_pool_send(struct blocking_pool *pool,
    const struct blocking_task *task, const struct blocking_answer *answer,
    struct blocking_call **out_call, struct failure *failure);

/* Answers now what the loop would answer in its next turn. Not from within an answer. */
void blocking_pool_answer_finished(struct blocking_pool *pool);

/* Gives the blocking call up: there will be no answer. */
void blocking_pool_drop(struct blocking_pool *pool, struct blocking_call *call);

/* What a caller does while it waits: its loop runs. Whoever does not want to wait any longer stops
 * it (event_loop_stop). */
struct blocking_watch {
    struct event_loop *loop;
    struct duration silence;          /* after so long … */
    void (*is_silent)(void *context); /* … this is called once */
    void *context;
};

/* For a caller whose loop does not run yet, or no longer: waits until the task is done, and then
 * leaves the subject to the caller. `watch` may be NULL. FAILURE_TIMEOUT when that takes longer
 * than `patience`, FAILURE_CANCELLED when the watch's loop was stopped, FAILURE_SYSTEM when no
 * thread can be started or no loop be woken. The subject is not the caller's any more after a
 * failure. */
__attribute__((warn_unused_result)) enum failure_code blocking_task_run_within(
    const struct blocking_task *task, struct duration patience, const struct blocking_watch *watch,
    struct failure *failure);

#endif
