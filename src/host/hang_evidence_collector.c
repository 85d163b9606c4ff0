/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/hang_evidence_collector.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "host/hang_report.h"
#include "host/quiet_thread.h"

/* What the threads work on, freed by the last who uses it: the loop or one of them. */
struct work {
    pthread_mutex_t mutex; /* over all that follows but the requests, which do not change */
    size_t user_count;
    size_t next; /* request that nobody works on yet */
    size_t finished_count;
    struct event_wake *wake; /* NULL once the loop no longer cares */
    struct hang_evidence_result *results;
    atomic_bool is_abandoned;
    struct hang_evidence_request *requests;
    size_t count;
};

struct hang_evidence_collection {
    struct event_loop *loop;
    struct work *work;
    struct event_wake *wake;
    struct event_timer *timer;
    bool is_settled;
    void (*done)(void *context, const struct hang_evidence_result *results, size_t count);
    void *context;
};

/* Shared work. */

static void copy_request(struct hang_evidence_request *copy,
    const struct hang_evidence_request *request, struct work *work, struct instant end) {
    *copy = *request;
    copy->reason = memory_duplicate_string(request->reason);
    copy->path = memory_duplicate_string(request->path);
    for (size_t i = 0; i < HANG_EVIDENCE_OUTPUT_COUNT; i++) {
        copy->outputs[i] = memory_duplicate_string(request->outputs[i]);
    }
    copy->end = end;
    copy->is_abandoned = &work->is_abandoned;
}

static void free_request(struct hang_evidence_request *request) {
    free((void *)(uintptr_t)request->reason);
    free((void *)(uintptr_t)request->path);
    for (size_t i = 0; i < HANG_EVIDENCE_OUTPUT_COUNT; i++) {
        free((void *)(uintptr_t)request->outputs[i]);
    }
}

static struct work *work_new(const struct hang_evidence_order *order) {
    struct work *work = memory_allocate(sizeof *work);
    struct instant end = instant_after(hang_report_now(), order->bound);
    pthread_mutex_init(&work->mutex, NULL);
    atomic_init(&work->is_abandoned, false);
    work->user_count = 1;
    work->count = order->count;
    work->results = memory_allocate(order->count * sizeof *work->results);
    work->requests = memory_allocate(order->count * sizeof *work->requests);
    for (size_t i = 0; i < order->count; i++) {
        copy_request(&work->requests[i], &order->requests[i], work, end);
    }
    return work;
}

static void work_release(struct work *work) {
    pthread_mutex_lock(&work->mutex);
    size_t users_left = --work->user_count;
    pthread_mutex_unlock(&work->mutex);
    if (users_left > 0) {
        return;
    }
    for (size_t i = 0; i < work->count; i++) {
        free_request(&work->requests[i]);
        hang_summary_clear(&work->results[i].summary);
    }
    free(work->requests);
    free(work->results);
    pthread_mutex_destroy(&work->mutex);
    free(work);
}

/* The threads. */

static bool take_request(struct work *work, size_t *out_index) {
    pthread_mutex_lock(&work->mutex);
    bool is_taken = work->wake != NULL && work->next < work->count;
    *out_index = work->next;
    work->next += is_taken ? 1 : 0;
    pthread_mutex_unlock(&work->mutex);
    return is_taken;
}

static void hand_in(struct work *work, size_t index, struct hang_summary *summary_taken) {
    pthread_mutex_lock(&work->mutex);
    work->results[index] = (struct hang_evidence_result){true, *summary_taken};
    work->finished_count++;
    if (work->wake != NULL && work->finished_count == work->count) {
        event_wake_send(work->wake);
    }
    pthread_mutex_unlock(&work->mutex);
}

static void *collect(void *context) {
    struct work *work = context;
    size_t index;
    while (take_request(work, &index)) {
        struct hang_summary summary;
        hang_evidence_collect(&work->requests[index], &summary);
        hand_in(work, index, &summary);
    }
    work_release(work);
    return NULL;
}

static enum failure_code start_threads(struct work *work, struct failure *failure) {
    enum failure_code code = FAILURE_NONE;
    size_t wanted = work->count < HANG_EVIDENCE_MAXIMUM_COLLECTORS
                        ? work->count
                        : HANG_EVIDENCE_MAXIMUM_COLLECTORS;
    size_t started = 0;
    for (; started < wanted && code == FAILURE_NONE; started++) {
        pthread_t thread;
        pthread_mutex_lock(&work->mutex);
        work->user_count++;
        pthread_mutex_unlock(&work->mutex);
        code = quiet_thread_start("muster-evidence", collect, work, &thread, failure);
        if (code == FAILURE_NONE) {
            pthread_detach(thread);
        } else {
            work_release(work);
        }
    }
    return code == FAILURE_NONE || started > 1 ? FAILURE_NONE : code;
}

/* The loop. */

/* Nobody works for this collection any more; what is finished is told. */
static void settle(struct hang_evidence_collection *collection) {
    struct work *work = collection->work;
    if (collection->is_settled) {
        return; /* the wake-up was on its way when time was up */
    }
    collection->is_settled = true;
    pthread_mutex_lock(&work->mutex);
    atomic_store(&work->is_abandoned, true);
    work->wake = NULL;
    struct hang_evidence_result *results = work->results;
    work->results = memory_allocate(work->count * sizeof *work->results);
    pthread_mutex_unlock(&work->mutex);
    size_t count = work->count;
    event_timer_stop(collection->timer);
    collection->done(collection->context, results, count); /* may free the collection */
    for (size_t i = 0; i < count; i++) {
        hang_summary_clear(&results[i].summary);
    }
    free(results);
}

static void all_handed_in(void *context) {
    settle(context);
}

static void time_is_up(void *context) {
    settle(context);
}

enum failure_code hang_evidence_collection_new(struct event_loop *loop,
    const struct hang_evidence_order *order, struct hang_evidence_collection **out_collection,
    struct failure *failure) {
    struct hang_evidence_collection *collection = memory_allocate(sizeof *collection);
    collection->loop = loop;
    collection->done = order->done;
    collection->context = order->context;
    collection->work = work_new(order);
    collection->timer = event_timer_new(loop, time_is_up, collection);
    enum failure_code code =
        event_wake_new(loop, all_handed_in, collection, &collection->wake, failure);
    if (code == FAILURE_NONE) {
        collection->work->wake = collection->wake;
        code = start_threads(collection->work, failure);
    }
    if (code != FAILURE_NONE) {
        hang_evidence_collection_free(collection);
        return code;
    }
    event_timer_set(collection->timer, instant_after(event_loop_now(loop), order->bound));
    *out_collection = collection;
    return FAILURE_NONE;
}

void hang_evidence_collection_free(struct hang_evidence_collection *collection) {
    if (collection == NULL) {
        return;
    }
    pthread_mutex_lock(&collection->work->mutex);
    atomic_store(&collection->work->is_abandoned, true);
    collection->work->wake = NULL;
    pthread_mutex_unlock(&collection->work->mutex);
    work_release(collection->work);
    event_wake_free(collection->wake);
    event_timer_free(collection->timer);
    free(collection);
}
