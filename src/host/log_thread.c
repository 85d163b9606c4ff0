/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/log_filter.h"
#include "host/log_stream.h"
#include "host/quiet_thread.h"

/* Text of records that may be on its way to the thread. */
#define RECORD_CEILING ((size_t)1024 * 1024)

enum message_kind {
    /* to the thread */
    MESSAGE_ADD_FILTER,
    MESSAGE_ADD_STREAM,
    MESSAGE_FINISH_ATTEMPT,
    MESSAGE_WRITE_RECORD,
    MESSAGE_DRAIN,
    MESSAGE_STOP,
    /* to the owner */
    MESSAGE_DONE,
    MESSAGE_WARNING,
};

struct message {
    struct message *next;
    enum message_kind kind;
    enum log_console console;
    struct log_filter *filter;
    struct log_stream *stream;
    struct duration patience;
    void (*done)(void *context); /* what MESSAGE_DONE calls */
    void *context;
    char *text;
};

/* In order of arrival. */
struct message_queue {
    struct message *first;
    struct message *last;
};

struct log_thread {
    const struct log *log;
    struct event_wake *owner_wake; /* there is news */
    pthread_t thread;

    pthread_mutex_t mutex; /* for the following four */
    struct message_queue commands;
    struct message_queue news;
    size_t record_length;  /* text in `commands` */
    uint64_t lost_records; /* not accepted for its length, and not yet said */

    struct event_wake *thread_wake; /* there are commands */

    /* used by the thread alone once it runs */
    struct event_loop *loop;
    struct log_router *router;
    struct message drain; /* what to answer when the router has drained */
};

/* -- queues ----------------------------------------------------------------------------------- */

static void append_message(struct message_queue *queue, struct message *message) {
    if (queue->last == NULL) {
        queue->first = message;
    } else {
        queue->last->next = message;
    }
    queue->last = message;
}

static struct message *copy_message(const struct message *message) {
    return memory_duplicate(message, sizeof *message);
}

static void send_command(struct log_thread *thread, const struct message *message) {
    pthread_mutex_lock(&thread->mutex);
    append_message(&thread->commands, copy_message(message));
    pthread_mutex_unlock(&thread->mutex);
    event_wake_send(thread->thread_wake);
}

static void send_news(struct log_thread *thread, const struct message *message) {
    pthread_mutex_lock(&thread->mutex);
    append_message(&thread->news, copy_message(message));
    pthread_mutex_unlock(&thread->mutex);
    event_wake_send(thread->owner_wake);
}

static struct message *take_all(struct log_thread *thread, struct message_queue *queue) {
    pthread_mutex_lock(&thread->mutex);
    struct message *first = queue->first;
    *queue = (struct message_queue){0};
    pthread_mutex_unlock(&thread->mutex);
    return first;
}

/* Frees a message and what it still owns; returns the one after it. */
static struct message *free_message(struct message *message) {
    struct message *next = message->next;
    log_filter_free(message->filter);
    log_stream_free(message->stream);
    free(message->text);
    free(message);
    return next;
}

static void free_all(struct message *message) {
    while (message != NULL) {
        message = free_message(message);
    }
}

/* -- in the thread ---------------------------------------------------------------------------- */

static void router_warned(void *context, const char *text) {
    struct message message = {.kind = MESSAGE_WARNING, .text = memory_duplicate_string(text)};
    send_news(context, &message);
}

static void router_drained(void *context) {
    struct log_thread *thread = context;
    send_news(thread, &thread->drain);
}

static void carry_out(struct log_thread *thread, struct message *message) {
    struct message done = {
        .kind = MESSAGE_DONE, .done = message->done, .context = message->context};
    switch (message->kind) {
    case MESSAGE_ADD_FILTER:
        log_router_add_filter(thread->router, message->filter);
        message->filter = NULL;
        break;
    case MESSAGE_ADD_STREAM:
        log_router_add_stream(
            thread->router, message->stream, message->console, message->stream->filter);
        message->stream = NULL;
        break;
    case MESSAGE_FINISH_ATTEMPT:
        log_router_finish_attempt(thread->router);
        send_news(thread, &done);
        break;
    case MESSAGE_WRITE_RECORD:
        log_router_write_record(thread->router, message->console, message->text);
        break;
    case MESSAGE_DRAIN:
        thread->drain = done;
        log_router_drain(thread->router, message->patience);
        break;
    case MESSAGE_STOP:
        event_loop_stop(thread->loop);
        break;
    case MESSAGE_DONE:
    case MESSAGE_WARNING:
        break;
    }
}

/* The thread was held up (a disk that does not answer) while the agent had much to say. */
static void report_lost_records(struct log_thread *thread) {
    pthread_mutex_lock(&thread->mutex);
    uint64_t lost = thread->lost_records;
    thread->lost_records = 0;
    thread->record_length = 0;
    pthread_mutex_unlock(&thread->mutex);
    if (lost > 0) {
        char *text = text_format(
            "%llu records were not shown: the log thread was held up", (unsigned long long)lost);
        router_warned(thread, text);
        free(text);
    }
}

static void commands_arrived(void *context) {
    struct log_thread *thread = context;
    struct message *message = take_all(thread, &thread->commands);
    while (message != NULL) {
        carry_out(thread, message);
        message = free_message(message);
    }
    report_lost_records(thread);
}

static void *run(void *context) {
    struct log_thread *thread = context;
    event_loop_run(thread->loop);
    return NULL;
}

/* -- with the owner --------------------------------------------------------------------------- */

static void news_arrived(void *context) {
    struct log_thread *thread = context;
    struct message *message = take_all(thread, &thread->news);
    while (message != NULL) {
        if (message->kind == MESSAGE_WARNING) {
            log_warning(thread->log, "%s", message->text);
        } else if (message->done != NULL) {
            message->done(message->context);
        }
        message = free_message(message);
    }
}

/* Warnings that nobody has heard yet; callbacks are over. */
static void log_last_warnings(struct log_thread *thread) {
    struct message *message = take_all(thread, &thread->news);
    while (message != NULL) {
        if (message->kind == MESSAGE_WARNING) {
            log_warning(thread->log, "%s", message->text);
        }
        message = free_message(message);
    }
}

static void free_parts(struct log_thread *thread) {
    log_router_free(thread->router);
    log_last_warnings(thread);
    free_all(take_all(thread, &thread->commands));
    event_wake_free(thread->thread_wake);
    (void)event_loop_free(thread->loop);
    event_wake_free(thread->owner_wake);
    pthread_mutex_destroy(&thread->mutex);
    free(thread);
}

static enum failure_code make_parts(struct log_thread *thread,
    const struct log_thread_settings *settings, struct failure *failure) {
    enum failure_code code =
        event_wake_new(settings->loop, news_arrived, thread, &thread->owner_wake, failure);
    if (code == FAILURE_NONE) {
        code = event_loop_new(&thread->loop, failure);
    }
    if (code == FAILURE_NONE) {
        code =
            event_wake_new(thread->loop, commands_arrived, thread, &thread->thread_wake, failure);
    }
    if (code == FAILURE_NONE) {
        const struct log_router_events events = {
            router_warned, router_drained, settings->bytes, thread};
        code = log_router_new(thread->loop, settings->stdout_fd, settings->stderr_fd, &events,
            &thread->router, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    return quiet_thread_start("muster-logs", run, thread, &thread->thread, failure);
}

enum failure_code log_thread_new(const struct log_thread_settings *settings,
    struct log_thread **out_thread, struct failure *failure) {
    struct log_thread *thread = memory_allocate(sizeof *thread);
    thread->log = settings->log;
    pthread_mutex_init(&thread->mutex, NULL);
    enum failure_code code = make_parts(thread, settings, failure);
    if (code != FAILURE_NONE) {
        free_parts(thread);
        return code;
    }
    *out_thread = thread;
    return FAILURE_NONE;
}

void log_thread_free(struct log_thread *thread) {
    if (thread == NULL) {
        return;
    }
    send_command(thread, &(struct message){.kind = MESSAGE_STOP});
    pthread_join(thread->thread, NULL);
    free_parts(thread);
}

enum failure_code log_thread_open_filter(struct log_thread *thread, const char *path,
    const struct text_list *needles, struct log_filter **out_filter, struct failure *failure) {
    struct log_filter *filter;
    enum failure_code code = log_filter_open(path, needles, &filter, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    send_command(thread, &(struct message){.kind = MESSAGE_ADD_FILTER, .filter = filter});
    *out_filter = filter;
    return FAILURE_NONE;
}

enum failure_code log_thread_open_stream(struct log_thread *thread,
    const struct log_stream_spec *spec, int *out_fd, struct failure *failure) {
    struct log_stream *stream;
    enum failure_code code = log_stream_open(spec->path, spec->header, &stream, out_fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    stream->filter = spec->filter;
    send_command(thread,
        &(struct message){.kind = MESSAGE_ADD_STREAM, .stream = stream, .console = spec->console});
    return FAILURE_NONE;
}

void log_thread_finish_attempt(
    struct log_thread *thread, void (*finished)(void *context), void *context) {
    send_command(thread,
        &(struct message){.kind = MESSAGE_FINISH_ATTEMPT, .done = finished, .context = context});
}

void log_thread_write_record(
    struct log_thread *thread, enum log_console console, const char *text) {
    size_t length = strlen(text);
    pthread_mutex_lock(&thread->mutex);
    bool has_room = thread->record_length + length <= RECORD_CEILING;
    if (has_room) {
        thread->record_length += length;
    } else {
        thread->lost_records++;
    }
    pthread_mutex_unlock(&thread->mutex);
    if (has_room) {
        send_command(thread, &(struct message){.kind = MESSAGE_WRITE_RECORD,
                                 .console = console,
                                 .text = memory_duplicate_string(text)});
    }
}

void log_thread_drain(struct log_thread *thread, struct duration patience,
    void (*drained)(void *context), void *context) {
    send_command(thread,
        &(struct message){
            .kind = MESSAGE_DRAIN, .patience = patience, .done = drained, .context = context});
}
