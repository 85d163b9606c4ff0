/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence_collector.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/failure/hang_report.h"
#include "host/loop/blocking_pool.h"

enum look_phase {
    LOOK_WAITING, /* in the pool's first queue */
    LOOK_TAKEN,   /* a thread works on it */
    LOOK_FINISHED /* in the pool's second queue */
};

struct look {
    /* Used by the loop only. */
    struct hang_evidence_collector *collector;
    struct look *previous;
    struct look *next;
    struct event_timer *timer;
    struct hang_evidence_answer answer;
    /* Used by all threads; it does not change. */
    struct pool *pool;
    struct hang_evidence_request request;
    /* Protected by the pool's mutex. */
    enum look_phase phase;
    struct look *behind; /* the next look in its queue */
    struct hang_summary summary;
    bool is_complete;
    atomic_bool is_abandoned; /* set by the loop; the thread that works on the look then frees it */
};

struct look_queue {
    struct look *first;
    struct look *last;
};

/* Shared by the threads and the loop; freed by the last user. */
struct pool {
    pthread_mutex_t mutex; /* protects everything below */
    struct look_queue waiting;
    struct look_queue finished;
    struct event_wake *wake; /* used for looks that are not abandoned, so the loop still exists */
    size_t user_count;
    size_t thread_count;
    size_t busy_count; /* threads that work on a look that is not abandoned */
};

struct hang_evidence_collector {
    struct event_loop *loop;
    struct event_wake *wake;
    struct pool *pool;
    struct look *looks;
};

/* Queues. */

static void queue_add(struct look_queue *queue, struct look *look) {
    look->behind = NULL;
    if (queue->last == NULL) {
        queue->first = look;
    } else {
        queue->last->behind = look;
    }
    queue->last = look;
}

static struct look *queue_take(struct look_queue *queue) {
    struct look *look = queue->first;
    if (look != NULL) {
        queue->first = look->behind;
        queue->last = queue->first == NULL ? NULL : queue->last;
    }
    return look;
}

static void queue_remove(struct look_queue *queue, const struct look *look) {
    struct look *before = NULL;
    for (struct look *here = queue->first; here != NULL; here = here->behind) {
        if (here != look) {
            before = here;
            continue;
        }
        *(before == NULL ? &queue->first : &before->behind) = look->behind;
        queue->last = queue->last == look ? before : queue->last;
        return;
    }
}

/* Looks and the pool. */

/* A look may last longer than the process, so it needs a descriptor of its own. Without one the
 * process is not asked. */
static struct hang_evidence_dump copy_dump(const struct hang_evidence_dump *dump) {
    int fd = dump->signal == 0 ? -1 : fcntl(dump->fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? (struct hang_evidence_dump){0} : (struct hang_evidence_dump){fd, dump->signal};
}

static void free_look(struct look *look) {
    if (look->request.dump.signal != 0) {
        close(look->request.dump.fd);
    }
    free((void *)(uintptr_t)look->request.reason);
    free((void *)(uintptr_t)look->request.path);
    for (size_t i = 0; i < HANG_EVIDENCE_OUTPUT_COUNT; i++) {
        free((void *)(uintptr_t)look->request.outputs[i]);
    }
    hang_summary_clear(&look->summary);
    free(look);
}

static void pool_release(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    size_t users_left = --pool->user_count;
    pthread_mutex_unlock(&pool->mutex);
    if (users_left == 0) {
        pthread_mutex_destroy(&pool->mutex);
        free(pool);
    }
}

/* The threads. */

static struct look *take_look(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    struct look *look = queue_take(&pool->waiting);
    if (look != NULL) {
        look->phase = LOOK_TAKEN;
    } else {
        pool->busy_count--;
        pool->thread_count--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return look;
}

static void note_summary(void *context, const struct hang_summary *summary) {
    struct look *look = context;
    pthread_mutex_lock(&look->pool->mutex);
    hang_summary_clear(&look->summary);
    hang_summary_copy(summary, &look->summary);
    pthread_mutex_unlock(&look->pool->mutex);
}

static void finish_look(struct pool *pool, struct look *look, bool is_complete) {
    pthread_mutex_lock(&pool->mutex);
    look->is_complete = is_complete;
    bool is_abandoned = look->is_abandoned;
    if (is_abandoned) {
        pool->busy_count++; /* its look was abandoned, and now the thread is free again */
    } else {
        look->phase = LOOK_FINISHED;
        queue_add(&pool->finished, look);
        event_wake_send(pool->wake);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (is_abandoned) {
        free_look(look);
    }
}

static void *run(void *context) {
    struct pool *pool = context;
    struct look *look;
    while ((look = take_look(pool)) != NULL) {
        bool is_complete = hang_evidence_collect(&look->request);
        finish_look(pool, look, is_complete);
    }
    pool_release(pool);
    return NULL;
}

/* Starts a thread for the look that was queued last, if the maximum allows. Otherwise the existing
 * threads take the look later. */
static enum failure_code start_thread(struct pool *pool, struct failure *failure) {
    pthread_t thread;
    pthread_mutex_lock(&pool->mutex);
    bool is_allowed = pool->busy_count < HANG_EVIDENCE_MAXIMUM_COLLECTORS &&
                      pool->thread_count < HANG_EVIDENCE_MAXIMUM_HANGING;
    size_t count = is_allowed ? 1 : 0;
    pool->busy_count += count;
    pool->thread_count += count;
    pool->user_count += count;
    pthread_mutex_unlock(&pool->mutex);
    if (!is_allowed) {
        return FAILURE_NONE;
    }
    enum failure_code code = quiet_thread_start("muster-evidence", run, pool, &thread, failure);
    if (code == FAILURE_NONE) {
        pthread_detach(thread);
        return FAILURE_NONE;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->busy_count--;
    pool->thread_count--;
    pool->user_count--;
    bool is_nobody_there = pool->busy_count == 0;
    pthread_mutex_unlock(&pool->mutex);
    return is_nobody_there ? code : FAILURE_NONE;
}

/* The loop. */

/* Ends the loop's use of the look; what is known so far goes to `out_result`. */
static void detach(struct look *look, struct hang_evidence_result *out_result) {
    struct pool *pool = look->pool;
    struct hang_evidence_collector *collector = look->collector;
    *(look->previous == NULL ? &collector->looks : &look->previous->next) = look->next;
    if (look->next != NULL) {
        look->next->previous = look->previous;
    }
    event_timer_free(look->timer);
    pthread_mutex_lock(&pool->mutex);
    bool is_taken = look->phase == LOOK_TAKEN;
    *out_result = (struct hang_evidence_result){look->is_complete, look->summary};
    look->summary = (struct hang_summary){0};
    if (is_taken) {
        atomic_store(&look->is_abandoned, true);
        pool->busy_count--;
    } else {
        queue_remove(look->phase == LOOK_WAITING ? &pool->waiting : &pool->finished, look);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (!is_taken) {
        free_look(look);
    }
}

static void answer(struct look *look) {
    struct hang_evidence_result result;
    struct hang_evidence_answer answer = look->answer;
    detach(look, &result);
    answer.looked_at(answer.context, &result);
    hang_summary_clear(&result.summary);
}

static void time_is_up(void *context) {
    answer(context);
}

static struct look *first_finished(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    struct look *look = pool->finished.first;
    pthread_mutex_unlock(&pool->mutex);
    return look;
}

static void looks_finished(void *context) {
    struct hang_evidence_collector *collector = context;
    struct look *look;
    while ((look = first_finished(collector->pool)) != NULL) {
        answer(look);
    }
}

enum failure_code hang_evidence_collector_new(struct event_loop *loop,
    struct hang_evidence_collector **out_collector, struct failure *failure) {
    struct hang_evidence_collector *collector = memory_allocate(sizeof *collector);
    collector->loop = loop;
    enum failure_code code =
        event_wake_new(loop, looks_finished, collector, &collector->wake, failure);
    if (code != FAILURE_NONE) {
        free(collector);
        return code;
    }
    collector->pool = memory_allocate(sizeof *collector->pool);
    pthread_mutex_init(&collector->pool->mutex, NULL);
    collector->pool->wake = collector->wake;
    collector->pool->user_count = 1;
    *out_collector = collector;
    return FAILURE_NONE;
}

static struct look *look_new(struct hang_evidence_collector *collector,
    const struct hang_evidence_request *request, const struct hang_evidence_answer *answer) {
    struct look *look = memory_allocate(sizeof *look);
    look->collector = collector;
    look->pool = collector->pool;
    look->answer = *answer;
    look->request = *request;
    look->request.reason = memory_duplicate_string(request->reason);
    look->request.dump = copy_dump(&request->dump);
    look->request.path = memory_duplicate_string(request->path);
    for (size_t i = 0; i < HANG_EVIDENCE_OUTPUT_COUNT; i++) {
        look->request.outputs[i] = memory_duplicate_string(request->outputs[i]);
    }
    atomic_init(&look->is_abandoned, false);
    look->request.is_abandoned = &look->is_abandoned;
    look->request.learnt = note_summary;
    look->request.context = look;
    look->timer = event_timer_new(collector->loop, time_is_up, look);
    look->next = collector->looks;
    if (look->next != NULL) {
        look->next->previous = look;
    }
    collector->looks = look;
    return look;
}

enum failure_code hang_evidence_collector_look(struct hang_evidence_collector *collector,
    const struct hang_evidence_request *request, const struct hang_evidence_answer *answer,
    struct failure *failure) {
    struct pool *pool = collector->pool;
    struct look *look = look_new(collector, request, answer);
    pthread_mutex_lock(&pool->mutex);
    queue_add(&pool->waiting, look);
    pthread_mutex_unlock(&pool->mutex);
    enum failure_code code = start_thread(pool, failure);
    if (code == FAILURE_NONE) {
        event_timer_set(look->timer, request->end);
    } else {
        struct hang_evidence_result nothing;
        detach(look, &nothing);
        hang_summary_clear(&nothing.summary);
    }
    return code;
}

void hang_evidence_collector_drop(struct hang_evidence_collector *collector) {
    while (collector->looks != NULL) {
        struct hang_evidence_result dropped;
        detach(collector->looks, &dropped);
        hang_summary_clear(&dropped.summary);
    }
}

void hang_evidence_collector_free(struct hang_evidence_collector *collector) {
    if (collector == NULL) {
        return;
    }
    hang_evidence_collector_drop(collector); /* after this, no thread wakes the loop */
    event_wake_free(collector->wake);
    pool_release(collector->pool);
    free(collector);
}
