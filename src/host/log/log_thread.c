/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "host/log/log_stream.h"
#include "host/loop/blocking_pool.h"

/* The maximum bytes of records that wait for the thread. */
#define RECORD_CEILING ((size_t)1024 * 1024)

enum message_kind {
    /* to the thread */
    MESSAGE_ADD_FILTER,
    MESSAGE_ADD_STREAM,
    MESSAGE_FINISH_ATTEMPT,
    MESSAGE_WRITE_RECORD,
    MESSAGE_DRAIN,
    MESSAGE_PING,
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
    void (*done)(void *context); /* MESSAGE_DONE calls this */
    void *context;
    char *text;
};

/* Messages in order of arrival. */
struct message_queue {
    struct message *first;
    struct message *last;
};

struct log_thread {
    const struct log *log;
    void (*rescue)(void *context, const char *text);
    void *rescue_context;
    struct duration patience;
    pthread_t thread;
    struct event_loop *owner_loop;
    struct event_timer *pulse; /* runs during a drain: the thread must answer before it fires */
    bool has_answered;         /* the thread has answered the last MESSAGE_PING */
    bool is_hanging;
    void (*drained)(void *context);
    void *drained_context;

    pthread_mutex_t mutex; /* protects the fields up to the next blank line */
    pthread_cond_t changed;
    bool is_over;                  /* the thread has ended */
    bool is_left_behind;           /* the owner has given everything to the thread */
    struct event_wake *owner_wake; /* sent when the owner's queue has messages; NULL once the
                                      thread was left behind */
    struct message_queue commands;
    struct message_queue news;
    size_t record_length;  /* bytes of text in `commands` */
    uint64_t lost_records; /* records dropped because of RECORD_CEILING and not reported yet */

    struct event_wake *thread_wake; /* sent when `commands` has messages */

    /* the fields below are used only by the thread once it runs */
    struct event_loop *loop;
    struct log_router *router;
    struct message drain; /* the answer to send when the router has drained */
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
    if (thread->owner_wake != NULL) {
        event_wake_send(thread->owner_wake);
    }
    pthread_mutex_unlock(&thread->mutex);
}

static struct message *take_all(struct log_thread *thread, struct message_queue *queue) {
    pthread_mutex_lock(&thread->mutex);
    struct message *first = queue->first;
    *queue = (struct message_queue){0};
    pthread_mutex_unlock(&thread->mutex);
    return first;
}

/* Frees a message and everything it still owns; returns the next message. */
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
    case MESSAGE_PING:
        send_news(thread, &done);
        break;
    case MESSAGE_STOP:
        event_loop_stop(thread->loop);
        break;
    case MESSAGE_DONE:
    case MESSAGE_WARNING:
        break;
    }
}

/* Records were lost because the thread was blocked (a disk that does not answer) while the agent
 * logged much. */
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

static struct message *take_first(struct log_thread *thread) {
    pthread_mutex_lock(&thread->mutex);
    struct message *message = thread->commands.first;
    if (message != NULL) {
        thread->commands.first = message->next;
        thread->commands.last = message->next == NULL ? NULL : thread->commands.last;
    }
    pthread_mutex_unlock(&thread->mutex);
    return message;
}

/* Takes one message at a time, so that the owner can still take back those behind one that hangs.
 */
static void commands_arrived(void *context) {
    struct log_thread *thread = context;
    struct message *message;
    while ((message = take_first(thread)) != NULL) {
        carry_out(thread, message);
        (void)free_message(message);
    }
    report_lost_records(thread);
}

/* Logs the warnings among the messages. Callbacks are not called any more. Frees the messages. */
static void log_warnings(const struct log *log, struct message *message) {
    while (message != NULL) {
        if (message->kind == MESSAGE_WARNING) {
            log_warning(log, "%s", message->text);
        }
        message = free_message(message);
    }
}

static void free_parts(struct log_thread *thread) {
    log_router_free(thread->router);
    log_warnings(thread->log, take_all(thread, &thread->news));
    free_all(take_all(thread, &thread->commands));
    event_wake_free(thread->thread_wake);
    (void)event_loop_free(thread->loop);
    event_wake_free(thread->owner_wake);
    event_timer_free(thread->pulse);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->mutex);
    free(thread);
}

static void *run(void *context) {
    struct log_thread *thread = context;
    event_loop_run(thread->loop);
    pthread_mutex_lock(&thread->mutex);
    bool is_left_behind = thread->is_left_behind;
    thread->is_over = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    if (is_left_behind) {
        free_parts(thread);
    }
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

static void ask_for_a_sign_of_life(struct log_thread *thread);

static void note_sign_of_life(void *context) {
    ((struct log_thread *)context)->has_answered = true;
}

static void check_for_a_sign_of_life(void *context) {
    struct log_thread *thread = context;
    if (thread->has_answered) {
        ask_for_a_sign_of_life(thread);
    } else {
        thread->is_hanging = true;
        thread->drained(thread->drained_context);
    }
}

static void ask_for_a_sign_of_life(struct log_thread *thread) {
    thread->has_answered = false;
    send_command(thread,
        &(struct message){.kind = MESSAGE_PING, .done = note_sign_of_life, .context = thread});
    event_timer_set(
        thread->pulse, instant_after(event_loop_now(thread->owner_loop), thread->patience));
}

static void thread_has_drained(void *context) {
    struct log_thread *thread = context;
    event_timer_stop(thread->pulse);
    thread->drained(thread->drained_context);
}

static void init_lock(struct log_thread *thread) {
    pthread_condattr_t attributes;
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->changed, &attributes);
    pthread_condattr_destroy(&attributes);
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
    thread->rescue = settings->rescue;
    thread->rescue_context = settings->context;
    thread->patience = settings->patience;
    thread->owner_loop = settings->loop;
    thread->pulse = event_timer_new(settings->loop, check_for_a_sign_of_life, thread);
    init_lock(thread);
    enum failure_code code = make_parts(thread, settings, failure);
    if (code != FAILURE_NONE) {
        free_parts(thread);
        return code;
    }
    *out_thread = thread;
    return FAILURE_NONE;
}

/* Called with the mutex locked. Tells whether the thread has ended in time. */
static bool await_end(struct log_thread *thread) {
    struct timespec deadline;
    int64_t patience = thread->is_hanging ? 0 : thread->patience.nanoseconds;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    int64_t nanoseconds = deadline.tv_nsec + patience % NANOSECONDS_PER_SECOND;
    deadline.tv_sec +=
        (time_t)(patience / NANOSECONDS_PER_SECOND + nanoseconds / NANOSECONDS_PER_SECOND);
    deadline.tv_nsec = (long)(nanoseconds % NANOSECONDS_PER_SECOND);
    while (!thread->is_over &&
           pthread_cond_timedwait(&thread->changed, &thread->mutex, &deadline) != ETIMEDOUT) {
    }
    return thread->is_over;
}

static void rescue_records(const struct log_thread *thread, struct message *message) {
    while (message != NULL) {
        if (message->kind == MESSAGE_WRITE_RECORD && thread->rescue != NULL) {
            thread->rescue(thread->rescue_context, message->text);
        }
        message = free_message(message);
    }
}

/* Called with the mutex locked, so a thread that goes on later finds everything as it is left here.
 * That thread then ends and frees the rest. */
static void leave_behind(struct log_thread *thread) {
    struct message *commands = thread->commands.first;
    thread->commands = (struct message_queue){0};
    append_message(&thread->commands, copy_message(&(struct message){.kind = MESSAGE_STOP}));
    event_wake_send(thread->thread_wake);
    event_wake_free(thread->owner_wake);
    event_timer_free(thread->pulse);
    thread->owner_wake = NULL;
    thread->pulse = NULL;
    log_warnings(thread->log, thread->news.first);
    thread->news = (struct message_queue){0};
    thread->log = NULL;
    rescue_records(thread, commands);
    thread->is_left_behind = true;
    pthread_detach(thread->thread);
}

bool log_thread_free(struct log_thread *thread) {
    if (thread == NULL) {
        return true;
    }
    send_command(thread, &(struct message){.kind = MESSAGE_STOP});
    pthread_mutex_lock(&thread->mutex);
    bool is_over = await_end(thread);
    if (!is_over) {
        leave_behind(thread);
    }
    pthread_mutex_unlock(&thread->mutex);
    if (is_over) {
        pthread_join(thread->thread, NULL);
        free_parts(thread);
    }
    return is_over;
}

void log_thread_add_filter(struct log_thread *thread, struct log_filter *filter_taken) {
    send_command(thread, &(struct message){.kind = MESSAGE_ADD_FILTER, .filter = filter_taken});
}

void log_thread_add_stream(
    struct log_thread *thread, struct log_stream *stream_taken, enum log_console console) {
    send_command(thread,
        &(struct message){.kind = MESSAGE_ADD_STREAM, .stream = stream_taken, .console = console});
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
    thread->drained = drained;
    thread->drained_context = context;
    send_command(thread, &(struct message){.kind = MESSAGE_DRAIN,
                             .patience = patience,
                             .done = thread_has_drained,
                             .context = thread});
    ask_for_a_sign_of_life(thread);
}
