/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_errors.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "host/failure/death_evidence.h"

/* One reading of an error file, on another thread. */
struct reading {
    char *path;
    enum failure_code (*read)(
        const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure);
    struct worker_error error;
};

/* The error file of one worker. */
struct error_slot {
    struct worker_errors *errors;
    struct blocking_call *call; /* NULL: the file is not being read */
    struct instant began;       /* when its reading began */
    bool is_asked;
    struct worker_error error;
};

struct error_wait {
    int local_rank;
    struct duration patience;
    void (*done)(void *context); /* NULL: nobody waits */
    void *context;
};

struct worker_errors {
    struct worker_errors_settings settings;
    struct event_timer *timer; /* of the wait */
    struct error_wait wait;
    struct error_slot *slots; /* by local rank */
};

/* Reading. */

static void run_reading(void *subject) {
    struct reading *reading = subject;
    struct worker_error *error = &reading->error;
    error->code =
        reading->read(reading->path, ERROR_FILE_CEILING, &error->content, &error->failure);
}

static void free_reading(void *subject) {
    struct reading *reading = subject;
    bytes_clear(&reading->error.content);
    free(reading->path);
    free(reading);
}

/* Waiting. */

static bool is_of_wait(const struct worker_errors *errors, size_t slot) {
    int local_rank = errors->wait.local_rank;
    return local_rank == WORKER_ERRORS_ALL || (size_t)local_rank == slot;
}

/* Finds out when the wait is over at the latest. Returns false when it is over. */
static bool find_deadline(const struct worker_errors *errors, struct instant *out_deadline) {
    struct instant now = event_loop_now(errors->settings.loop);
    bool is_waiting = false;
    for (size_t i = 0; i < errors->settings.worker_count; i++) {
        const struct error_slot *slot = &errors->slots[i];
        struct instant deadline = instant_after(slot->began, errors->wait.patience);
        if (slot->call == NULL || !is_of_wait(errors, i) || !instant_is_before(now, deadline)) {
            continue;
        }
        if (!is_waiting || instant_is_before(*out_deadline, deadline)) {
            *out_deadline = deadline;
        }
        is_waiting = true;
    }
    return is_waiting;
}

static void end_wait_if_over(struct worker_errors *errors) {
    struct error_wait wait = errors->wait;
    struct instant deadline;
    if (wait.done == NULL) {
        return;
    }
    if (find_deadline(errors, &deadline)) {
        event_timer_set(errors->timer, deadline);
        return;
    }
    event_timer_stop(errors->timer);
    errors->wait.done = NULL;
    wait.done(wait.context);
}

/* The loop may have been held up itself. What was read meanwhile counts as read in time. */
static void deadline_passed(void *context) {
    struct worker_errors *errors = context;
    blocking_pool_answer_finished(errors->settings.pool);
    end_wait_if_over(errors);
}

static void file_was_read(void *context, void *subject) {
    struct error_slot *slot = context;
    struct reading *reading = subject;
    slot->call = NULL;
    slot->error = reading->error;
    reading->error = (struct worker_error){0};
    end_wait_if_over(slot->errors);
}

void worker_errors_await(struct worker_errors *errors, int local_rank, struct duration patience,
    void (*done)(void *context), void *context) {
    errors->wait = (struct error_wait){local_rank, patience, done, context};
    end_wait_if_over(errors);
}

/* Life. */

struct worker_errors *worker_errors_new(const struct worker_errors_settings *settings) {
    struct worker_errors *errors = memory_allocate(sizeof *errors);
    errors->settings = *settings;
    errors->settings.read = settings->read != NULL ? settings->read : error_file_read;
    errors->timer = event_timer_new(settings->loop, deadline_passed, errors);
    errors->slots = memory_allocate(settings->worker_count * sizeof *errors->slots);
    for (size_t i = 0; i < settings->worker_count; i++) {
        errors->slots[i].errors = errors;
    }
    return errors;
}

void worker_errors_begin(struct worker_errors *errors) {
    errors->wait.done = NULL;
    event_timer_stop(errors->timer);
    for (size_t i = 0; i < errors->settings.worker_count; i++) {
        struct error_slot *slot = &errors->slots[i];
        if (slot->call != NULL) {
            blocking_pool_drop(errors->settings.pool, slot->call);
        }
        bytes_clear(&slot->error.content);
        *slot = (struct error_slot){.errors = errors};
    }
}

void worker_errors_free(struct worker_errors *errors) {
    if (errors != NULL) {
        worker_errors_begin(errors);
        event_timer_free(errors->timer);
        free(errors->slots);
        free(errors);
    }
}

void worker_errors_read(struct worker_errors *errors, int local_rank, const char *error_file) {
    struct error_slot *slot = &errors->slots[local_rank];
    struct worker_error *error = &slot->error;
    if (error_file == NULL || slot->call != NULL) {
        return;
    }
    struct reading reading = {memory_duplicate_string(error_file), errors->settings.read, {0}};
    const struct blocking_task task = {
        run_reading, free_reading, memory_duplicate(&reading, sizeof reading)};
    const struct blocking_answer answer = {file_was_read, slot};
    bytes_clear(&error->content);
    slot->is_asked = true;
    slot->began = event_loop_now(errors->settings.loop);
    error->code =
        blocking_pool_send(errors->settings.pool, &task, &answer, &slot->call, &error->failure);
    if (error->code == FAILURE_NONE) {
        error->code = failure_set(&error->failure, FAILURE_TIMEOUT,
            "cannot read %s: the disk did not answer in time", error_file);
    }
}

const struct worker_error *worker_errors_get(const struct worker_errors *errors, int local_rank) {
    const struct error_slot *slot = &errors->slots[local_rank];
    return slot->is_asked ? &slot->error : NULL;
}
