/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/telling/event_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/files.h"
#include "host/process/process_spawn.h"
#include "host/process/process_table.h"

/* How long the thread may take to notice that its program was killed. */
#define KILL_PATIENCE_SECONDS 1

struct event_file {
    int fd;
    bool is_mid_line;       /* the disk accepted only a part of the last record */
    struct process program; /* which reads the other end; its pid is 0 for a file */
    char *path;
    size_t turn_at; /* 0: never */
};

/* Creates the file when it is missing. FAILURE_SYSTEM with the path in the message,
 * FAILURE_INVALID when it is another user's (host/loop/files). */
static enum failure_code event_file_open(
    const char *path, struct event_file **out_file, struct failure *failure) {
    struct failure reason;
    int fd =
        shared_place_open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, &reason);
    if (fd < 0) {
        return failure_set(
            failure, reason.code, "cannot write events to '%s': %s", path, reason.message);
    }
    struct event_file *file = memory_allocate(sizeof *file);
    *file = (struct event_file){.fd = fd, .path = memory_duplicate_string(path)};
    *out_file = file;
    return FAILURE_NONE;
}

/* The program has a session of its own, so that it gets no signal of the terminal. Writes wait for
 * it: what it has not read yet waits in the queue. */
static enum failure_code event_program_open(const char *program,
    const struct text_list *environment, struct event_file **out_file, struct failure *failure) {
    int ends[2];
    struct text_list arguments = {0};
    struct process_request request;
    struct process process = {.pidfd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return failure_set_system(failure, errno, "cannot make a pipe to '%s'", program);
    }
    text_list_add(&arguments, program);
    process_request_init(&request, &arguments, environment);
    request.stdin_fd = ends[0];
    request.outlives_agent = true;
    enum failure_code code = process_spawn(&request, &process, failure);
    text_list_clear(&arguments);
    close(ends[0]);
    if (code != FAILURE_NONE) {
        close(ends[1]);
        return code;
    }
    struct event_file *file = memory_allocate(sizeof *file);
    file->fd = ends[1];
    file->program = process;
    *out_file = file;
    return FAILURE_NONE;
}

/* A program reads the end of its input, and is waited for. Accepts NULL. */
static void event_file_free(struct event_file *file) {
    if (file != NULL) {
        if (file->fd != -1) {
            close(file->fd);
        }
        while (file->program.pid > 0 && waitpid(file->program.pid, NULL, 0) < 0 && errno == EINTR) {
        }
        free(file->path);
        free(file);
    }
}

/* Writes as much as is taken. Why the rest is not taken is asked by writing it: a write that is cut
 * short does not say whether the disk, the quota or the limit on file sizes is to blame. Returns 0
 * or an errno. */
static int write_all(int fd, struct slice bytes, size_t *out_written) {
    *out_written = 0;
    while (*out_written < bytes.length) {
        ssize_t count = write(fd, bytes.data + *out_written, bytes.length - *out_written);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return count == 0 ? EIO : errno;
        }
        *out_written += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* Others may turn the same file. What cannot be turned goes on growing. */
static void turn(struct event_file *file, size_t more) {
    struct stat status;
    struct failure ignored;
    if (file->turn_at == 0 || fstat(file->fd, &status) != 0 ||
        (uint64_t)status.st_size + more <= file->turn_at) {
        return;
    }
    char *first = text_format("%s.1", file->path);
    char *second = text_format("%s.2", file->path);
    (void)rename(first, second);
    if (rename(file->path, first) == 0) {
        int fd = shared_place_open(
            file->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, &ignored);
        if (fd >= 0) {
            close(file->fd);
            file->fd = fd;
        }
    }
    free(first);
    free(second);
}

/* FAILURE_SYSTEM says why the record, or a part of it, was lost. A full disk may accept a part of a
 * record. The next record then begins with a newline. */
static enum failure_code event_file_append(
    struct event_file *file, struct slice record, struct failure *failure) {
    size_t written;
    turn(file, record.length);
    if (file->is_mid_line && write_all(file->fd, slice_from_string("\n"), &written) == 0) {
        file->is_mid_line = false;
    }
    int error = write_all(file->fd, record, &written);
    if (error == 0) {
        return FAILURE_NONE;
    }
    file->is_mid_line = file->is_mid_line || written > 0;
    return failure_set_system(failure, error, "write");
}

/* The same of a record that is all of a file. A symbolic link stays; its target is replaced. */
static enum failure_code event_file_replace(
    struct event_file *file, struct slice record, struct failure *failure) {
    char *target = realpath(file->path, NULL);
    const char *place = target != NULL ? target : file->path;
    enum failure_code code = shared_place_check(file->path, failure);
    if (code == FAILURE_NONE && !shared_place_can_be_replaced(place)) {
        code = failure_set(failure, FAILURE_INVALID, "it is no regular file");
    }
    int error = code == FAILURE_NONE ? shared_place_replace(place, record) : 0;
    if (error != 0) {
        code = failure_set_system(failure, error, "write");
    }
    free(target);
    return code;
}

/* Event thread. */

/* Shared by the owner and the thread; freed by the last user. */
struct event_queue {
    pthread_mutex_t mutex; /* protects everything that changes */
    pthread_cond_t changed;
    char *path;
    struct text_list environment; /* of the program; empty for a file */
    bool is_program;
    bool was_killed;
    struct process program; /* as the file has it; the pidfd is the queue's */
    enum failure_code (*append)(
        struct event_file *file, struct slice record, struct failure *failure);
    size_t turn_at;
    bool replaces;
    bool is_opened_later;
    struct text_list waiting;
    size_t length; /* bytes of records not yet written, including those being written … */
    size_t count;  /* … and their number */
    uint64_t lost;
    bool is_opened;
    enum failure_code code;  /* the result of opening the file */
    struct failure failure;  /* the failure of opening, later that of the first refused record */
    bool is_over;            /* the owner adds no more records */
    bool is_done;            /* the thread has freed everything but this struct */
    bool is_abandoned;       /* the owner does not use this struct any more */
    struct event_wake *wake; /* wakes the owner; NULL when the owner has gone */
};

struct event_thread {
    const struct log *log;
    const char *what;
    struct event_queue *queue;
    struct event_wake *wake;
    pthread_t thread;
    struct duration patience;
    bool has_complained;
};

static struct event_queue *event_queue_new(const struct event_thread_settings *settings) {
    struct event_queue *queue = memory_allocate(sizeof *queue);
    pthread_condattr_t attributes;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    queue->path = memory_duplicate_string(settings->path);
    queue->program.pidfd = -1;
    queue->is_program = settings->environment != NULL;
    if (queue->is_program) {
        text_list_add_all(&queue->environment, settings->environment);
    }
    queue->turn_at = settings->turn_at;
    queue->replaces = settings->replaces;
    queue->is_opened_later = settings->is_opened_later;
    queue->append = settings->append != NULL ? settings->append
                    : settings->replaces     ? event_file_replace
                                             : event_file_append;
    return queue;
}

static void event_queue_free(struct event_queue *queue) {
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    text_list_clear(&queue->waiting);
    text_list_clear(&queue->environment);
    if (queue->program.pidfd >= 0) {
        close(queue->program.pidfd);
    }
    free(queue->path);
    free(queue);
}

/* On the thread. */

static void note_written(struct event_queue *queue, size_t length, enum failure_code code,
    const struct failure *failure) {
    pthread_mutex_lock(&queue->mutex);
    queue->length -= length;
    queue->count--;
    if (code != FAILURE_NONE && queue->lost++ == 0) {
        queue->failure = *failure;
        if (queue->wake != NULL) {
            event_wake_send(queue->wake);
        }
    }
    pthread_mutex_unlock(&queue->mutex);
}

static void write_batch(
    struct event_queue *queue, struct event_file *file, const struct text_list *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        struct failure failure = {0};
        struct slice record = slice_from_string(batch->items[i]);
        enum failure_code code = queue->append(file, record, &failure);
        note_written(queue, record.length, code, &failure);
    }
}

/* Waits for records. Returns false when there are none and none will follow. */
static bool take_batch(struct event_queue *queue, struct text_list *out_batch) {
    pthread_mutex_lock(&queue->mutex);
    while (queue->waiting.count == 0 && !queue->is_over) {
        pthread_cond_wait(&queue->changed, &queue->mutex);
    }
    *out_batch = queue->waiting;
    queue->waiting = (struct text_list){0};
    pthread_mutex_unlock(&queue->mutex);
    return out_batch->count > 0;
}

/* A file that each record replaces is opened then. */
static enum failure_code open_queue(
    const struct event_queue *queue, struct event_file **out_file, struct failure *failure) {
    if (queue->is_program) {
        return event_program_open(queue->path, &queue->environment, out_file, failure);
    }
    if (!queue->replaces) {
        return event_file_open(queue->path, out_file, failure);
    }
    const struct event_file file = {.fd = -1, .path = memory_duplicate_string(queue->path)};
    *out_file = memory_duplicate(&file, sizeof file);
    return FAILURE_NONE;
}

static struct event_file *open_file(struct event_queue *queue) {
    struct event_file *file = NULL;
    struct failure failure = {0};
    enum failure_code code = open_queue(queue, &file, &failure);
    pthread_mutex_lock(&queue->mutex);
    if (file != NULL && file->program.pid > 0) {
        queue->program = file->program;
    }
    queue->is_opened = true;
    queue->code = code;
    queue->failure = failure;
    if (code != FAILURE_NONE && queue->is_opened_later && queue->wake != NULL) {
        event_wake_send(queue->wake);
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    if (file != NULL) {
        file->turn_at = queue->turn_at;
    }
    return file;
}

static void *run(void *context) {
    struct event_queue *queue = context;
    struct event_file *file = open_file(queue);
    struct text_list batch = {0};
    while (file != NULL && take_batch(queue, &batch)) {
        write_batch(queue, file, &batch);
        text_list_clear(&batch);
    }
    event_file_free(file); /* this may wait for the disk, too */
    pthread_mutex_lock(&queue->mutex);
    queue->is_done = true;
    bool is_abandoned = queue->is_abandoned;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    if (is_abandoned) {
        event_queue_free(queue);
    }
    return NULL;
}

/* On the owner's side. */

/* Must be called under the mutex. */
static void await(struct event_queue *queue, const bool *condition, struct duration patience) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    int64_t nanoseconds = deadline.tv_nsec + patience.nanoseconds % NANOSECONDS_PER_SECOND;
    deadline.tv_sec += (time_t)(patience.nanoseconds / NANOSECONDS_PER_SECOND +
                                nanoseconds / NANOSECONDS_PER_SECOND);
    deadline.tv_nsec = (long)(nanoseconds % NANOSECONDS_PER_SECOND);
    while (!*condition &&
           pthread_cond_timedwait(&queue->changed, &queue->mutex, &deadline) != ETIMEDOUT) {
    }
}

static void complain(struct event_thread *thread, const char *reason) {
    if (!thread->has_complained) {
        thread->has_complained = true;
        log_warning(thread->log, "%s are lost, '%s' does not take them: %s", thread->what,
            thread->queue->path, reason);
    }
}

static void record_refused(void *context) {
    struct event_thread *thread = context;
    struct failure failure;
    pthread_mutex_lock(&thread->queue->mutex);
    failure = thread->queue->failure;
    pthread_mutex_unlock(&thread->queue->mutex);
    complain(thread, failure.message);
}

/* What waits is not wanted any more. Must be called under the mutex. Returns whether there was any.
 */
static bool drop_waiting(struct event_queue *queue) {
    bool was_any = queue->waiting.count > 0;
    for (size_t i = 0; i < queue->waiting.count; i++) {
        queue->length -= strlen(queue->waiting.items[i]);
        queue->count--;
    }
    text_list_clear(&queue->waiting);
    return was_any;
}

void event_thread_append(struct event_thread *thread, const char *record) {
    struct event_queue *queue = thread->queue;
    size_t length = strlen(record);
    pthread_mutex_lock(&queue->mutex);
    bool is_refused = queue->is_opened && queue->code != FAILURE_NONE;
    bool is_slow = queue->replaces && drop_waiting(queue);
    bool has_room = queue->length + length <= EVENT_THREAD_CEILING;
    if (is_refused) {
        queue->lost++;
    } else if (has_room) {
        text_list_add(&queue->waiting, record);
        queue->length += length;
        queue->count++;
        pthread_cond_broadcast(&queue->changed);
    } else {
        queue->lost++;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (is_slow || (!has_room && !is_refused)) {
        complain(thread, "it is too slow, or does not answer");
    }
}

/* Must be called under the mutex, when the thread is done or its time is up. */
static void warn_of_losses(struct event_thread *thread) {
    const struct event_queue *queue = thread->queue;
    uint64_t lost = queue->lost + queue->count;
    const char *reason = !queue->is_done || queue->was_killed  ? "it does not answer"
                         : queue->failure.code != FAILURE_NONE ? queue->failure.message
                                                               : "it was too slow";
    if (lost > 0 && queue->replaces) {
        complain(thread, reason); /* how many there were says nothing */
    } else if (lost > 0 && !(queue->is_opened_later && thread->has_complained)) {
        log_warning(thread->log, "%" PRIu64 " %s were not written to '%s': %s", lost, thread->what,
            queue->path, reason);
    }
}

/* The program is a child of this process, or was one, and leads a group. Must be called under the
 * mutex. */
static void kill_program(struct event_thread *thread) {
    struct event_queue *queue = thread->queue;
    if (queue->program.pidfd < 0 || !pidfd_signal(queue->program.pidfd, SIGKILL)) {
        return; /* it has ended */
    }
    kill(-queue->program.pid, SIGKILL);
    queue->was_killed = true;
    log_warning(thread->log, "'%s', which gets events, is killed: it has not ended within %g s",
        queue->path, duration_seconds(thread->patience));
    await(queue, &queue->is_done, duration_from_seconds(KILL_PATIENCE_SECONDS));
}

/* Ends the thread, or leaves it behind when it hangs. */
void event_thread_free(struct event_thread *thread) {
    if (thread == NULL) {
        return;
    }
    struct event_queue *queue = thread->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->is_over = true;
    pthread_cond_broadcast(&queue->changed);
    await(queue, &queue->is_done, thread->patience);
    if (!queue->is_done) {
        kill_program(thread);
    }
    warn_of_losses(thread);
    bool is_done = queue->is_done;
    queue->is_abandoned = !is_done;
    queue->wake = NULL;
    pthread_mutex_unlock(&queue->mutex);
    if (is_done) {
        pthread_join(thread->thread, NULL);
        event_queue_free(queue);
    } else {
        pthread_detach(thread->thread);
    }
    event_wake_free(thread->wake);
    free(thread);
}

static enum failure_code await_opening(struct event_thread *thread, struct failure *failure) {
    struct event_queue *queue = thread->queue;
    pthread_mutex_lock(&queue->mutex);
    await(queue, &queue->is_opened, thread->patience);
    enum failure_code code = queue->code;
    if (!queue->is_opened) {
        code = failure_set(failure, FAILURE_TIMEOUT,
            "cannot write events to '%s': it does not answer within %g s", queue->path,
            duration_seconds(thread->patience));
        thread->patience = (struct duration){0}; /* opening already took all of the patience */
    } else if (code != FAILURE_NONE && failure != NULL) {
        *failure = queue->failure;
    }
    pthread_mutex_unlock(&queue->mutex);
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
    thread->queue = event_queue_new(settings);
    thread->queue->wake = thread->wake;
    code = quiet_thread_start("muster-events", run, thread->queue, &thread->thread, failure);
    if (code != FAILURE_NONE) {
        event_queue_free(thread->queue);
        event_wake_free(thread->wake);
        free(thread);
    }
    return code;
}

enum failure_code event_thread_new(const struct event_thread_settings *settings,
    struct event_thread **out_thread, struct failure *failure) {
    struct event_thread *thread = memory_allocate(sizeof *thread);
    thread->log = settings->log;
    thread->what = settings->what != NULL ? settings->what : "events";
    thread->patience = settings->patience;
    enum failure_code code = start(thread, settings, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = settings->is_opened_later ? FAILURE_NONE : await_opening(thread, failure);
    if (code != FAILURE_NONE) {
        event_thread_free(thread);
        return code;
    }
    *out_thread = thread;
    return FAILURE_NONE;
}
