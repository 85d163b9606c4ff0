/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_ends.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "host/failure/error_file.h"

/* One reading of an error file, on another thread. */
struct reading {
    char *path;
    enum failure_code (*read)(
        const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure);
    struct worker_error error;
};

/* The error file of one worker. */
struct error_slot {
    struct worker_ends *ends;
    struct errand *errand; /* NULL: the file is not being read */
    bool is_asked;
    struct worker_error error;
};

/* An end, or the end of all, that has not been told yet. */
struct pending_end {
    bool is_all_gone;
    int local_rank;
    struct process_exit how;
    struct instant deadline;
    bool is_late; /* the deadline has passed: it is told without the file */
};

struct worker_ends {
    struct worker_ends_settings settings;
    struct event_timer *timer;
    struct error_slot *slots;    /* by local rank */
    struct pending_end *pending; /* in the order in which they came */
    size_t pending_count;
    size_t pending_capacity;
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

/* Telling. */

static bool is_ready(const struct worker_ends *ends, const struct pending_end *end) {
    return end->is_all_gone || end->is_late || ends->slots[end->local_rank].errand == NULL;
}

static struct pending_end take_first_end(struct worker_ends *ends) {
    struct pending_end first = ends->pending[0];
    ends->pending_count--;
    memmove(ends->pending, ends->pending + 1, ends->pending_count * sizeof *ends->pending);
    return first;
}

static void tell_ready_ends(struct worker_ends *ends) {
    const struct worker_ends_settings *settings = &ends->settings;
    while (ends->pending_count > 0 && is_ready(ends, &ends->pending[0])) {
        struct pending_end end = take_first_end(ends);
        if (end.is_all_gone) {
            settings->all_gone(settings->context);
        } else {
            settings->exited(settings->context, end.local_rank, end.how);
        }
    }
    if (ends->pending_count > 0) {
        event_timer_set(ends->timer, ends->pending[0].deadline);
    } else {
        event_timer_stop(ends->timer);
    }
}

/* The loop may have been held up itself. What was read meanwhile counts as read in time. */
static void deadline_passed(void *context) {
    struct worker_ends *ends = context;
    errands_answer_finished(ends->settings.errands);
    struct instant now = event_loop_now(ends->settings.loop);
    for (size_t i = 0; i < ends->pending_count; i++) {
        ends->pending[i].is_late = !instant_is_before(now, ends->pending[i].deadline);
    }
    tell_ready_ends(ends);
}

static void add(struct worker_ends *ends, struct pending_end end) {
    struct duration patience = duration_from_milliseconds(WORKER_ENDS_PATIENCE_MILLISECONDS);
    end.deadline = instant_after(event_loop_now(ends->settings.loop), patience);
    ends->pending = memory_reserve(
        ends->pending, &ends->pending_capacity, ends->pending_count + 1, sizeof *ends->pending);
    ends->pending[ends->pending_count++] = end;
    tell_ready_ends(ends);
}

static void file_was_read(void *context, void *subject) {
    struct error_slot *slot = context;
    struct reading *reading = subject;
    slot->errand = NULL;
    slot->error = reading->error;
    reading->error = (struct worker_error){0};
    tell_ready_ends(slot->ends);
}

/* Life. */

struct worker_ends *worker_ends_new(const struct worker_ends_settings *settings) {
    struct worker_ends *ends = memory_allocate(sizeof *ends);
    ends->settings = *settings;
    ends->settings.read = settings->read != NULL ? settings->read : error_file_read;
    ends->timer = event_timer_new(settings->loop, deadline_passed, ends);
    ends->slots = memory_allocate(settings->worker_count * sizeof *ends->slots);
    for (size_t i = 0; i < settings->worker_count; i++) {
        ends->slots[i].ends = ends;
    }
    return ends;
}

void worker_ends_begin(struct worker_ends *ends) {
    for (size_t i = 0; i < ends->settings.worker_count; i++) {
        struct error_slot *slot = &ends->slots[i];
        if (slot->errand != NULL) {
            errands_drop(ends->settings.errands, slot->errand);
        }
        bytes_clear(&slot->error.content);
        *slot = (struct error_slot){.ends = ends};
    }
}

void worker_ends_free(struct worker_ends *ends) {
    if (ends != NULL) {
        worker_ends_begin(ends);
        event_timer_free(ends->timer);
        free(ends->slots);
        free(ends->pending);
        free(ends);
    }
}

void worker_ends_read(struct worker_ends *ends, int local_rank, const char *error_file) {
    struct error_slot *slot = &ends->slots[local_rank];
    struct worker_error *error = &slot->error;
    if (error_file == NULL || slot->errand != NULL) {
        return;
    }
    struct reading reading = {memory_duplicate_string(error_file), ends->settings.read, {0}};
    const struct errand_task task = {
        run_reading, free_reading, memory_duplicate(&reading, sizeof reading)};
    const struct errand_answer answer = {file_was_read, slot};
    bytes_clear(&error->content);
    slot->is_asked = true;
    error->code =
        errands_send(ends->settings.errands, &task, &answer, &slot->errand, &error->failure);
    if (error->code == FAILURE_NONE) {
        error->code = failure_set(&error->failure, FAILURE_TIMEOUT,
            "cannot read %s: the disk did not answer within %g s", error_file,
            duration_seconds(duration_from_milliseconds(WORKER_ENDS_PATIENCE_MILLISECONDS)));
    }
}

void worker_ends_add(
    struct worker_ends *ends, int local_rank, struct process_exit how, const char *error_file) {
    worker_ends_read(ends, local_rank, error_file);
    add(ends, (struct pending_end){.local_rank = local_rank, .how = how});
}

void worker_ends_add_all_gone(struct worker_ends *ends) {
    add(ends, (struct pending_end){.is_all_gone = true});
}

const struct worker_error *worker_ends_error(const struct worker_ends *ends, int local_rank) {
    const struct error_slot *slot = &ends->slots[local_rank];
    return slot->is_asked ? &slot->error : NULL;
}
