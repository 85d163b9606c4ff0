/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/event_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/quiet_thread.h"

#define NANOSECONDS_PER_SECOND 1000000000

/* What owner and thread share; freed by whoever lets go of it last. */
struct desk {
    pthread_mutex_t mutex; /* for all that changes */
    pthread_cond_t changed;
    char *path;
    enum failure_code (*append)(
        struct event_file *file, struct slice record, struct failure *failure);
    struct text_list waiting;
    size_t length; /* bytes of records not yet written, those under way included … */
    size_t count;  /* … and how many they are */
    uint64_t lost;
    bool is_opened;
    enum failure_code code;  /* of opening */
    struct failure failure;  /* of opening, then of the first record that was refused */
    bool is_over;            /* the owner gives no more */
    bool is_done;            /* the thread has let go of everything but this */
    bool is_abandoned;       /* the owner has let go */
    struct event_wake *wake; /* of the owner; NULL once it has let go */
};

struct event_thread {
    const struct log *log;
    struct desk *desk;
    struct event_wake *wake;
    pthread_t thread;
    struct duration patience;
    bool has_complained;
};

static struct desk *desk_new(const struct event_thread_settings *settings) {
    struct desk *desk = memory_allocate(sizeof *desk);
    pthread_condattr_t attributes;
    pthread_mutex_init(&desk->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&desk->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    desk->path = memory_duplicate_string(settings->path);
    desk->append = settings->append != NULL ? settings->append : event_file_append;
    return desk;
}

static void desk_free(struct desk *desk) {
    pthread_cond_destroy(&desk->changed);
    pthread_mutex_destroy(&desk->mutex);
    text_list_clear(&desk->waiting);
    free(desk->path);
    free(desk);
}

/* In the thread. */

static void note_written(
    struct desk *desk, size_t length, enum failure_code code, const struct failure *failure) {
    pthread_mutex_lock(&desk->mutex);
    desk->length -= length;
    desk->count--;
    if (code != FAILURE_NONE && desk->lost++ == 0) {
        desk->failure = *failure;
        if (desk->wake != NULL) {
            event_wake_send(desk->wake);
        }
    }
    pthread_mutex_unlock(&desk->mutex);
}

static void write_batch(struct desk *desk, struct event_file *file, const struct text_list *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        struct failure failure = {0};
        struct slice record = slice_from_string(batch->items[i]);
        enum failure_code code = desk->append(file, record, &failure);
        note_written(desk, record.length, code, &failure);
    }
}

/* False when there is nothing, and will be nothing. */
static bool take_batch(struct desk *desk, struct text_list *out_batch) {
    pthread_mutex_lock(&desk->mutex);
    while (desk->waiting.count == 0 && !desk->is_over) {
        pthread_cond_wait(&desk->changed, &desk->mutex);
    }
    *out_batch = desk->waiting;
    desk->waiting = (struct text_list){0};
    pthread_mutex_unlock(&desk->mutex);
    return out_batch->count > 0;
}

static struct event_file *open_file(struct desk *desk) {
    struct event_file *file = NULL;
    struct failure failure = {0};
    enum failure_code code = event_file_open(desk->path, &file, &failure);
    pthread_mutex_lock(&desk->mutex);
    desk->is_opened = true;
    desk->code = code;
    desk->failure = failure;
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->mutex);
    return file;
}

static void *run(void *context) {
    struct desk *desk = context;
    struct event_file *file = open_file(desk);
    struct text_list batch = {0};
    while (file != NULL && take_batch(desk, &batch)) {
        write_batch(desk, file, &batch);
        text_list_clear(&batch);
    }
    event_file_free(file); /* may wait for the disk, too */
    pthread_mutex_lock(&desk->mutex);
    desk->is_done = true;
    bool is_abandoned = desk->is_abandoned;
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->mutex);
    if (is_abandoned) {
        desk_free(desk);
    }
    return NULL;
}

/* With the owner. */

/* Under the mutex. */
static void await(struct desk *desk, const bool *condition, struct duration patience) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    int64_t nanoseconds = deadline.tv_nsec + patience.nanoseconds % NANOSECONDS_PER_SECOND;
    deadline.tv_sec += (time_t)(patience.nanoseconds / NANOSECONDS_PER_SECOND +
                                nanoseconds / NANOSECONDS_PER_SECOND);
    deadline.tv_nsec = (long)(nanoseconds % NANOSECONDS_PER_SECOND);
    while (!*condition &&
           pthread_cond_timedwait(&desk->changed, &desk->mutex, &deadline) != ETIMEDOUT) {
    }
}

static void complain(struct event_thread *thread, const char *reason) {
    if (!thread->has_complained) {
        thread->has_complained = true;
        log_warning(thread->log, "events are lost, '%s' does not take them: %s", thread->desk->path,
            reason);
    }
}

static void record_refused(void *context) {
    struct event_thread *thread = context;
    struct failure failure;
    pthread_mutex_lock(&thread->desk->mutex);
    failure = thread->desk->failure;
    pthread_mutex_unlock(&thread->desk->mutex);
    complain(thread, failure.message);
}

void event_thread_append(struct event_thread *thread, const char *record) {
    struct desk *desk = thread->desk;
    size_t length = strlen(record);
    pthread_mutex_lock(&desk->mutex);
    bool has_room = desk->length + length <= EVENT_THREAD_CEILING;
    if (has_room) {
        text_list_add(&desk->waiting, record);
        desk->length += length;
        desk->count++;
        pthread_cond_broadcast(&desk->changed);
    } else {
        desk->lost++;
    }
    pthread_mutex_unlock(&desk->mutex);
    if (!has_room) {
        complain(thread, "it is too slow, or does not answer");
    }
}

/* Under the mutex, when the thread is done or has had its time. */
static void tell_losses(const struct event_thread *thread) {
    const struct desk *desk = thread->desk;
    uint64_t lost = desk->lost + desk->count;
    const char *reason = !desk->is_done                       ? "it does not answer"
                         : desk->failure.code != FAILURE_NONE ? desk->failure.message
                                                              : "it was too slow";
    if (lost > 0) {
        log_warning(thread->log, "%" PRIu64 " events were not written to '%s': %s", lost,
            desk->path, reason);
    }
}

/* Ends the thread, or leaves it behind. */
void event_thread_free(struct event_thread *thread) {
    if (thread == NULL) {
        return;
    }
    struct desk *desk = thread->desk;
    pthread_mutex_lock(&desk->mutex);
    desk->is_over = true;
    pthread_cond_broadcast(&desk->changed);
    await(desk, &desk->is_done, thread->patience);
    tell_losses(thread);
    bool is_done = desk->is_done;
    desk->is_abandoned = !is_done;
    desk->wake = NULL;
    pthread_mutex_unlock(&desk->mutex);
    if (is_done) {
        pthread_join(thread->thread, NULL);
        desk_free(desk);
    } else {
        pthread_detach(thread->thread);
    }
    event_wake_free(thread->wake);
    free(thread);
}

static enum failure_code await_opening(struct event_thread *thread, struct failure *failure) {
    struct desk *desk = thread->desk;
    pthread_mutex_lock(&desk->mutex);
    await(desk, &desk->is_opened, thread->patience);
    enum failure_code code = desk->code;
    if (!desk->is_opened) {
        thread->patience = (struct duration){0}; /* it has had its time */
        code = failure_set(failure, FAILURE_TIMEOUT,
            "cannot write events to '%s': it does not answer within %g s", desk->path,
            duration_seconds(thread->patience));
    } else if (code != FAILURE_NONE && failure != NULL) {
        *failure = desk->failure;
    }
    pthread_mutex_unlock(&desk->mutex);
    return code;
}

static enum failure_code start(struct event_thread *thread,
    const struct event_thread_settings *settings, struct failure *failure) {
    enum failure_code code =
        event_wake_new(settings->loop, record_refused, thread, &thread->wake, failure);
    if (code != FAILURE_NONE) {
        free(thread);
        return code;
    }
    thread->desk = desk_new(settings);
    thread->desk->wake = thread->wake;
    code = quiet_thread_start("muster-events", run, thread->desk, &thread->thread, failure);
    if (code != FAILURE_NONE) {
        desk_free(thread->desk);
        event_wake_free(thread->wake);
        free(thread);
    }
    return code;
}

enum failure_code event_thread_new(const struct event_thread_settings *settings,
    struct event_thread **out_thread, struct failure *failure) {
    struct event_thread *thread = memory_allocate(sizeof *thread);
    thread->log = settings->log;
    thread->patience = settings->patience;
    enum failure_code code = start(thread, settings, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = await_opening(thread, failure);
    if (code != FAILURE_NONE) {
        event_thread_free(thread);
        return code;
    }
    *out_thread = thread;
    return FAILURE_NONE;
}
