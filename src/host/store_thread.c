/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store_thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/quiet_thread.h"
#include "host/store_server.h"

/* One renewal on its way to the store thread and back. */
struct renewal {
    struct renewal *next;
    char *kept_prefix; /* NULL: keep nothing */
    void (*done)(void *context);
    void *context;
};

/* First in, first out. */
struct renewal_queue {
    struct renewal *first;
    struct renewal **end; /* where the next one is hung up */
};

struct store_thread {
    pthread_t thread;
    int port;
    struct event_wake *caller_wake; /* the caller's loop: answers are ready */

    /* used by the store thread alone once it runs */
    struct event_loop *loop;
    struct store_server *server;
    struct event_wake *wake; /* messages are waiting; sent by the caller */

    pthread_mutex_t lock; /* of what follows */
    struct renewal_queue asked;
    struct renewal_queue answered;
    bool is_stopping;
};

static void queue_init(struct renewal_queue *queue) {
    queue->first = NULL;
    queue->end = &queue->first;
}

static void queue_push(struct renewal_queue *queue, struct renewal *renewal) {
    renewal->next = NULL;
    *queue->end = renewal;
    queue->end = &renewal->next;
}

/* NULL when there is none. */
static struct renewal *queue_pop(struct renewal_queue *queue) {
    struct renewal *first = queue->first;
    if (first != NULL) {
        queue->first = first->next;
        if (first->next == NULL) {
            queue->end = &queue->first;
        }
    }
    return first;
}

static void free_renewal(struct renewal *renewal) {
    free(renewal->kept_prefix);
    free(renewal);
}

static void queue_clear(struct renewal_queue *queue) {
    for (struct renewal *each = queue_pop(queue); each != NULL; each = queue_pop(queue)) {
        free_renewal(each);
    }
}

/* On the store thread: the next renewal asked for, or NULL. */
static struct renewal *take_asked(struct store_thread *thread, bool *out_is_stopping) {
    pthread_mutex_lock(&thread->lock);
    struct renewal *renewal = queue_pop(&thread->asked);
    *out_is_stopping = thread->is_stopping;
    pthread_mutex_unlock(&thread->lock);
    return renewal;
}

static void message_arrived(void *context) {
    struct store_thread *thread = context;
    bool is_stopping;
    struct renewal *renewal = take_asked(thread, &is_stopping);
    while (renewal != NULL && !is_stopping) {
        store_server_renew(thread->server, renewal->kept_prefix);
        pthread_mutex_lock(&thread->lock);
        queue_push(&thread->answered, renewal);
        pthread_mutex_unlock(&thread->lock);
        event_wake_send(thread->caller_wake);
        renewal = take_asked(thread, &is_stopping);
    }
    if (renewal != NULL) {
        free_renewal(renewal);
    }
    if (is_stopping) {
        event_loop_stop(thread->loop);
    }
}

/* On the caller's loop. One answer per turn, as its callback may stop and free the thread. */
static void answer_arrived(void *context) {
    struct store_thread *thread = context;
    pthread_mutex_lock(&thread->lock);
    struct renewal *renewal = queue_pop(&thread->answered);
    bool is_last = thread->answered.first == NULL;
    pthread_mutex_unlock(&thread->lock);
    if (renewal == NULL) {
        return;
    }
    if (!is_last) {
        event_wake_send(thread->caller_wake);
    }
    void (*done)(void *context) = renewal->done;
    void *done_context = renewal->context;
    free_renewal(renewal);
    done(done_context);
}

static void *serve(void *context) {
    struct store_thread *thread = context;
    event_loop_run(thread->loop);
    return NULL;
}

/* Undoes what store_thread_start has made so far; everything may be missing. */
static void free_parts(struct store_thread *thread) {
    store_server_free(thread->server);
    event_wake_free(thread->wake);
    (void)event_loop_free(thread->loop); /* everything in it was freed just before */
    event_wake_free(thread->caller_wake);
    queue_clear(&thread->asked);
    queue_clear(&thread->answered);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
}

/* Everything is made before the thread exists, so that the caller hears of what fails. */
static enum failure_code make_parts(
    struct store_thread *thread, struct event_loop *caller_loop, struct failure *failure) {
    enum failure_code code =
        event_wake_new(caller_loop, answer_arrived, thread, &thread->caller_wake, failure);
    if (code == FAILURE_NONE) {
        code = event_loop_new(&thread->loop, failure);
    }
    if (code == FAILURE_NONE) {
        code = event_wake_new(thread->loop, message_arrived, thread, &thread->wake, failure);
    }
    return code;
}

static enum failure_code start(struct store_thread *thread, int listening_fd,
    const struct store_limits *limits, const struct log *log, struct failure *failure) {
    enum failure_code code =
        store_server_new(thread->loop, listening_fd, limits, log, &thread->server, failure);
    if (code != FAILURE_NONE) {
        close(listening_fd);
        return code;
    }
    thread->port = store_server_port(thread->server);
    return quiet_thread_start("muster-store", serve, thread, &thread->thread, failure);
}

enum failure_code store_thread_start(struct event_loop *loop, int listening_fd_taken,
    const struct store_limits *limits, const struct log *log, struct store_thread **out_thread,
    struct failure *failure) {
    struct store_thread *thread = memory_allocate(sizeof *thread);
    pthread_mutex_init(&thread->lock, NULL);
    queue_init(&thread->asked);
    queue_init(&thread->answered);
    enum failure_code code = make_parts(thread, loop, failure);
    if (code != FAILURE_NONE) {
        close(listening_fd_taken);
    } else {
        code = start(thread, listening_fd_taken, limits, log, failure);
    }
    if (code != FAILURE_NONE) {
        free_parts(thread);
        return code;
    }
    *out_thread = thread;
    return FAILURE_NONE;
}

int store_thread_port(const struct store_thread *thread) {
    return thread->port;
}

void store_thread_renew(struct store_thread *thread, const char *kept_prefix,
    void (*done)(void *context), void *context) {
    struct renewal *renewal = memory_allocate(sizeof *renewal);
    renewal->kept_prefix = memory_duplicate_string(kept_prefix);
    renewal->done = done;
    renewal->context = context;
    pthread_mutex_lock(&thread->lock);
    queue_push(&thread->asked, renewal);
    pthread_mutex_unlock(&thread->lock);
    event_wake_send(thread->wake);
}

void store_thread_stop(struct store_thread *thread) {
    if (thread == NULL) {
        return;
    }
    pthread_mutex_lock(&thread->lock);
    thread->is_stopping = true;
    pthread_mutex_unlock(&thread->lock);
    event_wake_send(thread->wake);
    pthread_join(thread->thread, NULL);
    free_parts(thread);
}
