/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/blocking_pool.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "host/loop/clock.h"

/* Stack pages that are not touched use no memory. The resolver's plug-ins may need more stack than
 * our own code. */
#define STACK_SIZE (1024 * 1024)

enum failure_code quiet_thread_start(const char *name, void *(*run)(void *context), void *context,
    pthread_t *out_thread, struct failure *failure) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
    int status = pthread_create(out_thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (status != 0) {
        bool is_short = status == EAGAIN; /* also of memory for its stack */
        return failure_set_system(failure, status, "cannot start the thread %s%s", name,
            is_short ? ", since memory or processes (ulimit -u) are used up" : "");
    }
    pthread_setname_np(*out_thread, name);
    return FAILURE_NONE;
}

/* Blocking pool. */

static const char thread_name[] = "muster-blocking";

enum call_phase {
    CALL_WAITING,
    CALL_TAKEN, /* by a thread */
    CALL_FINISHED,
};

struct blocking_call {
    struct blocking_task task;     /* unchanging */
    struct blocking_answer answer; /* the loop's */
    /* Under the desk's mutex. */
    struct blocking_call *next;
    enum call_phase phase;
    bool is_dropped; /* the thread that has taken it frees it */
};

/* What the threads and the loop share, freed by the last who uses it. */
struct desk {
    pthread_mutex_t mutex;       /* over all that follows */
    struct blocking_call *first; /* all that have not been dropped or answered, in order */
    struct event_wake *wake;     /* for calls that have not been dropped: there is a loop then */
    size_t user_count;
    size_t thread_count;
    /* Where a thread stays: it waits here for the next call. */
    pthread_cond_t came;
    bool keeps_thread;
    bool has_idle_thread;
    bool is_over;
};

struct blocking_pool {
    struct event_wake *wake;
    struct desk *desk;
};

static void free_call(struct blocking_call *call) {
    call->task.free(call->task.subject);
    free(call);
}

static void release_desk(struct desk *desk) {
    pthread_mutex_lock(&desk->mutex);
    size_t users_left = --desk->user_count;
    pthread_mutex_unlock(&desk->mutex);
    if (users_left == 0) {
        pthread_cond_destroy(&desk->came);
        pthread_mutex_destroy(&desk->mutex);
        free(desk);
    }
}

/* Under the mutex. */

static struct blocking_call *find(const struct desk *desk, enum call_phase phase) {
    struct blocking_call *call = desk->first;
    while (call != NULL && call->phase != phase) {
        call = call->next;
    }
    return call;
}

static void append(struct desk *desk, struct blocking_call *call) {
    struct blocking_call **link = &desk->first;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = call;
}

static void remove_from(struct desk *desk, const struct blocking_call *call) {
    struct blocking_call **link = &desk->first;
    while (*link != call) {
        link = &(*link)->next;
    }
    *link = call->next;
}

static size_t count_waiting(const struct desk *desk) {
    size_t count = 0;
    for (const struct blocking_call *call = desk->first; call != NULL; call = call->next) {
        count += call->phase == CALL_WAITING ? 1 : 0;
    }
    return count;
}

static bool may_stay(const struct desk *desk) {
    return desk->keeps_thread && !desk->is_over && !desk->has_idle_thread;
}

/* The threads. */

static struct blocking_call *take(struct desk *desk) {
    pthread_mutex_lock(&desk->mutex);
    struct blocking_call *call;
    while ((call = find(desk, CALL_WAITING)) == NULL && may_stay(desk)) {
        desk->has_idle_thread = true;
        pthread_cond_wait(&desk->came, &desk->mutex);
        desk->has_idle_thread = false;
    }
    if (call != NULL) {
        call->phase = CALL_TAKEN;
    } else {
        desk->thread_count--;
    }
    pthread_mutex_unlock(&desk->mutex);
    return call;
}

static void hand_in(struct desk *desk, struct blocking_call *call) {
    pthread_mutex_lock(&desk->mutex);
    bool is_dropped = call->is_dropped;
    call->phase = CALL_FINISHED;
    if (!is_dropped) {
        event_wake_send(desk->wake);
    }
    pthread_mutex_unlock(&desk->mutex);
    if (is_dropped) {
        free_call(call);
    }
}

static void *run(void *context) {
    struct desk *desk = context;
    struct blocking_call *call;
    while ((call = take(desk)) != NULL) {
        call->task.run(call->task.subject);
        hand_in(desk, call);
    }
    release_desk(desk);
    return NULL;
}

/* A thread for the blocking call that was sent last, if there may be one more; those there are take
 * it otherwise. */
static enum failure_code start_thread(struct desk *desk, struct failure *failure) {
    pthread_t thread;
    pthread_mutex_lock(&desk->mutex);
    bool is_taken = desk->has_idle_thread && count_waiting(desk) == 1; /* by the one that stays */
    bool is_allowed = !is_taken && desk->thread_count < BLOCKING_POOL_MAXIMUM_THREADS;
    if (desk->has_idle_thread) {
        pthread_cond_signal(&desk->came);
    }
    desk->thread_count += is_allowed ? 1 : 0;
    desk->user_count += is_allowed ? 1 : 0;
    pthread_mutex_unlock(&desk->mutex);
    if (!is_allowed) {
        return FAILURE_NONE;
    }
    enum failure_code code = quiet_thread_start(thread_name, run, desk, &thread, failure);
    if (code == FAILURE_NONE) {
        pthread_detach(thread);
        return FAILURE_NONE;
    }
    pthread_mutex_lock(&desk->mutex);
    bool is_nobody_there = --desk->thread_count == 0;
    desk->user_count--;
    pthread_mutex_unlock(&desk->mutex);
    return is_nobody_there ? code : FAILURE_NONE;
}

/* The loop. */

static struct blocking_call *take_finished(struct desk *desk) {
    pthread_mutex_lock(&desk->mutex);
    struct blocking_call *call = find(desk, CALL_FINISHED);
    if (call != NULL) {
        remove_from(desk, call);
    }
    pthread_mutex_unlock(&desk->mutex);
    return call;
}

void blocking_pool_answer_finished(struct blocking_pool *pool) {
    struct blocking_call *call;
    while ((call = take_finished(pool->desk)) != NULL) {
        call->answer.done(call->answer.context, call->task.subject);
        free_call(call);
    }
}

static void some_are_finished(void *context) {
    blocking_pool_answer_finished(context);
}

enum failure_code blocking_pool_new(
    struct event_loop *loop, struct blocking_pool **out_pool, struct failure *failure) {
    struct blocking_pool *pool = memory_allocate(sizeof *pool);
    enum failure_code code = event_wake_new(loop, some_are_finished, pool, &pool->wake, failure);
    if (code != FAILURE_NONE) {
        free(pool);
        return code;
    }
    pool->desk = memory_allocate(sizeof *pool->desk);
    pthread_mutex_init(&pool->desk->mutex, NULL);
    pthread_cond_init(&pool->desk->came, NULL);
    pool->desk->wake = pool->wake;
    pool->desk->user_count = 1;
    *out_pool = pool;
    return FAILURE_NONE;
}

void blocking_pool_keep_thread(struct blocking_pool *pool) {
    pool->desk->keeps_thread = true; /* there are no threads yet */
}

enum failure_code blocking_pool_send(struct blocking_pool *pool, const struct blocking_task *task,
    const struct blocking_answer *answer, struct blocking_call **out_call,
    struct failure *failure) {
    struct blocking_call *call = memory_allocate(sizeof *call);
    call->task = *task;
    call->answer = *answer;
    pthread_mutex_lock(&pool->desk->mutex);
    append(pool->desk, call);
    pthread_mutex_unlock(&pool->desk->mutex);
    enum failure_code code = start_thread(pool->desk, failure);
    if (code == FAILURE_NONE) {
        *out_call = call;
    } else {
        blocking_pool_drop(pool, call);
    }
    return code;
}

void blocking_pool_drop(struct blocking_pool *pool, struct blocking_call *call) {
    struct desk *desk = pool->desk;
    pthread_mutex_lock(&desk->mutex);
    bool is_taken = call->phase == CALL_TAKEN;
    remove_from(desk, call);
    call->is_dropped = true;
    pthread_mutex_unlock(&desk->mutex);
    if (!is_taken) {
        free_call(call);
    }
}

void blocking_pool_free(struct blocking_pool *pool) {
    if (pool == NULL) {
        return;
    }
    struct blocking_call *call;
    /* the loop alone adds and removes */
    while ((call = pool->desk->first) != NULL) {
        blocking_pool_drop(pool, call);
    }
    event_wake_free(pool->wake);
    pthread_mutex_lock(&pool->desk->mutex);
    pool->desk->is_over = true;
    pthread_cond_broadcast(&pool->desk->came);
    pthread_mutex_unlock(&pool->desk->mutex);
    release_desk(pool->desk);
    free(pool);
}

/* For a caller that waits. */

struct wait {
    struct blocking_task task; /* unchanging */
    pthread_mutex_t mutex;     /* over all that follows */
    pthread_cond_t changed;
    struct event_wake *wake; /* NULL: nobody's loop is to be woken */
    bool is_done;
    bool is_left; /* the thread frees it */
};

static struct wait *wait_new(const struct blocking_task *task) {
    struct wait *wait = memory_allocate(sizeof *wait);
    pthread_condattr_t attributes;
    wait->task = *task;
    pthread_mutex_init(&wait->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wait->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return wait;
}

static void wait_free(struct wait *wait) {
    pthread_cond_destroy(&wait->changed);
    pthread_mutex_destroy(&wait->mutex);
    free(wait);
}

static void *run_alone(void *context) {
    struct wait *wait = context;
    wait->task.run(wait->task.subject);
    pthread_mutex_lock(&wait->mutex);
    wait->is_done = true;
    bool is_left = wait->is_left;
    pthread_cond_broadcast(&wait->changed);
    if (wait->wake != NULL) {
        event_wake_send(wait->wake);
    }
    pthread_mutex_unlock(&wait->mutex);
    if (is_left) {
        wait->task.free(wait->task.subject);
        wait_free(wait);
    }
    return NULL;
}

static bool is_done(struct wait *wait) {
    pthread_mutex_lock(&wait->mutex);
    bool is = wait->is_done;
    pthread_mutex_unlock(&wait->mutex);
    return is;
}

static enum failure_code out_of_patience(struct duration patience, struct failure *failure) {
    return failure_set(
        failure, FAILURE_TIMEOUT, "no answer within %g s", duration_seconds(patience));
}

static enum failure_code wait_without_loop(
    struct wait *wait, struct duration patience, struct failure *failure) {
    struct instant deadline = instant_after(clock_now(), patience);
    const struct timespec until = {
        (time_t)(deadline.nanoseconds / NANOSECONDS_PER_SECOND),
        (long)(deadline.nanoseconds % NANOSECONDS_PER_SECOND),
    };
    pthread_mutex_lock(&wait->mutex);
    while (!wait->is_done &&
           pthread_cond_timedwait(&wait->changed, &wait->mutex, &until) != ETIMEDOUT) {
    }
    bool is_over = !wait->is_done;
    pthread_mutex_unlock(&wait->mutex);
    return is_over ? out_of_patience(patience, failure) : FAILURE_NONE;
}

/* A wait with a loop. */
struct watched_wait {
    struct event_loop *loop;
    bool is_out_of_patience;
};

static void stop_loop(void *context) {
    event_loop_stop(context);
}

static void patience_ends(void *context) {
    struct watched_wait *watched = context;
    watched->is_out_of_patience = true;
    event_loop_stop(watched->loop);
}

static enum failure_code wait_with_loop(struct wait *wait, struct duration patience,
    const struct blocking_watch *watch, struct failure *failure) {
    struct watched_wait watched = {.loop = watch->loop};
    struct instant now = event_loop_now(watch->loop);
    struct event_timer *end = event_timer_new(watch->loop, patience_ends, &watched);
    struct event_timer *silence = event_timer_new(watch->loop, watch->is_silent, watch->context);
    event_timer_set(end, instant_after(now, patience));
    event_timer_set(silence, instant_after(now, watch->silence));
    if (!is_done(wait)) { /* else it was done before the loop could be woken */
        event_loop_run(watch->loop);
    }
    event_timer_free(end);
    event_timer_free(silence);
    if (is_done(wait)) {
        return FAILURE_NONE;
    }
    return watched.is_out_of_patience ? out_of_patience(patience, failure)
                                      : failure_set(failure, FAILURE_CANCELLED, "given up");
}

/* Leaves the task to the thread, if it is not done meanwhile. */
static enum failure_code end_wait(struct wait *wait, enum failure_code code) {
    pthread_mutex_lock(&wait->mutex);
    wait->wake = NULL;
    wait->is_left = code != FAILURE_NONE && !wait->is_done;
    bool is_done_late = code != FAILURE_NONE && wait->is_done;
    pthread_mutex_unlock(&wait->mutex);
    return is_done_late ? FAILURE_NONE : code;
}

enum failure_code blocking_task_run_within(const struct blocking_task *task,
    struct duration patience, const struct blocking_watch *watch, struct failure *failure) {
    pthread_t thread;
    struct wait *wait = wait_new(task);
    struct event_wake *wake = NULL;
    enum failure_code code = FAILURE_NONE;
    if (watch != NULL) {
        code = event_wake_new(watch->loop, stop_loop, watch->loop, &wake, failure);
        wait->wake = wake;
    }
    if (code == FAILURE_NONE) {
        code = quiet_thread_start(thread_name, run_alone, wait, &thread, failure);
    }
    if (code != FAILURE_NONE) {
        event_wake_free(wake);
        task->free(task->subject);
        wait_free(wait);
        return code;
    }
    code = watch == NULL ? wait_without_loop(wait, patience, failure)
                         : wait_with_loop(wait, patience, watch, failure);
    code = end_wait(wait, code);
    event_wake_free(wake);
    if (code == FAILURE_NONE) {
        pthread_join(thread, NULL);
        wait_free(wait);
    } else {
        pthread_detach(thread);
    }
    return code;
}
