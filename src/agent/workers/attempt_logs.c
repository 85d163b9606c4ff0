/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/attempt_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/failure/death_evidence.h"

static const struct {
    enum log_tree_file file;
    enum log_tree_file filtered_file;
} names[ATTEMPT_STREAM_COUNT] = {
    [ATTEMPT_STDOUT] = {LOG_TREE_STDOUT, LOG_TREE_FILTERED_STDOUT},
    [ATTEMPT_STDERR] = {LOG_TREE_STDERR, LOG_TREE_FILTERED_STDERR},
};

void attempt_own_files_clear(struct attempt_own_files *files) {
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        free(files->paths[i]);
    }
    free(files->error_file);
    *files = (struct attempt_own_files){0};
}

/* Nothing is wanted yet. */
static struct attempt_files *attempt_files_new(int worker_count) {
    struct attempt_files *files = memory_allocate(sizeof *files);
    files->worker_count = worker_count;
    files->files = memory_allocate((size_t)worker_count * sizeof *files->files);
    return files;
}

static enum failure_code open_filter(struct attempt_files *files, int stream) {
    if (files->needles[stream].count == 0) {
        return FAILURE_NONE;
    }
    char *path = log_tree_file_path(files->directory, 0, names[stream].filtered_file);
    enum failure_code code =
        log_filter_open(path, &files->needles[stream], &files->filters[stream], &files->failure);
    free(path);
    return code;
}

static enum failure_code open_file(struct attempt_files *files, int local_rank, int stream) {
    struct attempt_file *file = &files->files[local_rank][stream];
    if (file->header == NULL) {
        return FAILURE_NONE;
    }
    char *path = file->path != NULL
                     ? memory_duplicate_string(file->path)
                     : log_tree_file_path(files->directory, local_rank, names[stream].file);
    enum failure_code code =
        log_stream_open(path, file->header, &file->stream, &file->fd, &files->failure);
    free(path);
    return code;
}

void attempt_files_make(void *subject) {
    struct attempt_files *files = subject;
    struct stat status;
    files->is_timer_file_gone =
        files->timer_file != NULL &&
        (lstat(files->timer_file, &status) != 0 || !S_ISFIFO(status.st_mode));
    files->code = log_directory_renew(&files->logs, &files->is_renewed, &files->failure);
    if (files->code == FAILURE_NONE) {
        files->code = log_directory_begin_attempt(
            &files->logs, &files->attempt, files->worker_count, &files->directory, &files->failure);
    }
    if (files->directory == NULL) {
        return;
    }
    for (int i = 0; i < ATTEMPT_STREAM_COUNT && files->code == FAILURE_NONE; i++) {
        files->code = open_filter(files, i);
    }
    for (int rank = 0; rank < files->worker_count && files->code == FAILURE_NONE; rank++) {
        files->failed_local_rank = rank;
        for (int i = 0; i < ATTEMPT_STREAM_COUNT && files->code == FAILURE_NONE; i++) {
            files->code = open_file(files, rank, i);
        }
    }
}

static void clear_file(struct attempt_file *file) {
    if (file->stream != NULL) {
        log_stream_free(file->stream);
        close(file->fd);
    }
    free(file->header);
    free(file->path);
}

void attempt_files_free(void *subject) {
    struct attempt_files *files = subject;
    for (int rank = 0; rank < files->worker_count; rank++) {
        for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
            clear_file(&files->files[rank][i]);
        }
    }
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        log_filter_free(files->filters[i]);
        text_list_clear(&files->needles[i]);
    }
    free(files->files);
    free(files->directory);
    free(files->timer_file);
    log_directory_clear(&files->logs);
    free(files);
}

/* Attempt logs. */

static const struct {
    int plan;
    enum log_console console;
} streams[ATTEMPT_STREAM_COUNT] = {
    [ATTEMPT_STDOUT] = {LAUNCH_STREAM_STDOUT, LOG_CONSOLE_STDOUT},
    [ATTEMPT_STDERR] = {LAUNCH_STREAM_STDERR, LOG_CONSOLE_STDERR},
};

/* What is wanted. */

static void plan_filters(const struct launch_config *config, struct attempt_files *files) {
    text_list_add_all(&files->needles[ATTEMPT_STDOUT], &config->duplicate_stdout_filters);
    text_list_add_all(&files->needles[ATTEMPT_STDERR], &config->duplicate_stderr_filters);
}

static void plan_worker(
    const struct attempt_logs_settings *settings, int local_rank, struct attempt_files *files) {
    const struct launch_config *config = settings->config;
    struct log_worker worker = {.role_name = config->role,
        .hostname = settings->preparation->host_name,
        .node = config->shown_node,
        .local_rank = local_rank,
        .rank = settings->base_rank + local_rank};
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        if (log_destination_is_file(
                log_plan_stream(config, local_rank, streams[i].plan).destination)) {
            files->files[local_rank][i].header = log_plan_header(config, &worker);
            files->files[local_rank][i].path = memory_duplicate_string(
                settings->own == NULL ? NULL : settings->own[local_rank].paths[i]);
        }
    }
}

struct attempt_files *attempt_logs_plan(const struct attempt_logs_settings *settings) {
    const struct agent_preparation *preparation = settings->preparation;
    struct attempt_files *files = attempt_files_new(preparation->worker_count);
    log_directory_copy(&preparation->logs, &files->logs);
    files->attempt = settings->attempt;
    if (settings->log_thread != NULL) {
        plan_filters(settings->config, files);
    }
    for (int rank = 0; rank < preparation->worker_count; rank++) {
        plan_worker(settings, rank, files);
    }
    return files;
}

/* What was made. */

static void warn(const struct attempt_logs_settings *settings, const char *reason) {
    log_warning(settings->log, "attempt %d goes on without log files: %s",
        settings->attempt.restart_count, reason);
}

static void hand_over_filters(struct attempt_logs *logs) {
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        logs->filters[i] = logs->files->filters[i];
        logs->files->filters[i] = NULL;
        if (logs->filters[i] != NULL) {
            log_thread_add_filter(logs->settings->log_thread, logs->filters[i]);
        }
    }
}

enum failure_code attempt_logs_init(struct attempt_logs *logs,
    const struct attempt_logs_settings *settings, struct attempt_files *files, const char *reason,
    struct failure *failure) {
    *logs = (struct attempt_logs){.settings = settings, .files = files, .null_fd = -1};
    if (files == NULL) {
        warn(settings, reason);
        return FAILURE_NONE;
    }
    if (files->is_renewed) {
        log_warning(settings->log, "the log directory %s was removed while the job ran; %s",
            files->logs.run_path,
            files->directory != NULL ? "it is made anew" : "it cannot be made anew");
    }
    if (files->code != FAILURE_NONE && settings->is_first &&
        log_plan_asks_for_files(settings->config, settings->preparation->worker_count)) {
        return failure_set(failure, files->code, "%s", files->failure.message);
    }
    if (files->code != FAILURE_NONE) {
        warn(settings, files->failure.message);
    }
    hand_over_filters(logs);
    return FAILURE_NONE;
}

void attempt_logs_clear(struct attempt_logs *logs) {
    if (logs->null_fd >= 0) {
        close(logs->null_fd);
    }
    *logs = (struct attempt_logs){.null_fd = -1};
}

char *attempt_logs_error_file(const struct attempt_logs *logs, int local_rank) {
    const struct attempt_own_files *all = logs->settings->own;
    const char *own = all == NULL ? NULL : all[local_rank].error_file;
    return own != NULL ? memory_duplicate_string(own)
           : logs->files == NULL || logs->files->directory == NULL
               ? NULL
               : log_tree_file_path(logs->files->directory, local_rank, LOG_TREE_ERROR);
}

static enum failure_code open_null(
    struct attempt_logs *logs, int *out_fd, struct failure *failure) {
    if (logs->null_fd < 0) {
        logs->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    if (logs->null_fd < 0) {
        return failure_set_system(failure, errno, "cannot open /dev/null");
    }
    *out_fd = logs->null_fd;
    return FAILURE_NONE;
}

static enum failure_code open_without_file(struct attempt_logs *logs,
    enum log_destination destination, int *out_fd, struct failure *failure) {
    if (destination == LOG_DESTINATION_INHERIT || destination == LOG_DESTINATION_FILE_AND_CONSOLE) {
        *out_fd = -1;
        return FAILURE_NONE;
    }
    return open_null(logs, out_fd, failure);
}

static int take_stream(struct attempt_logs *logs, struct attempt_file *file,
    const struct log_stream_plan *plan, enum attempt_stream stream) {
    bool is_shown = plan->destination == LOG_DESTINATION_FILE_AND_CONSOLE;
    file->stream->filter = plan->is_filtered ? logs->filters[stream] : NULL;
    log_thread_add_stream(logs->settings->log_thread, file->stream,
        is_shown ? streams[stream].console : LOG_CONSOLE_NONE);
    file->stream = NULL;
    return file->fd;
}

enum failure_code attempt_logs_open_stream(struct attempt_logs *logs, int local_rank,
    enum attempt_stream stream, int *out_fd, struct failure *failure) {
    struct log_stream_plan plan =
        log_plan_stream(logs->settings->config, local_rank, streams[stream].plan);
    struct attempt_file *file =
        logs->files == NULL ? NULL : &logs->files->files[local_rank][stream];
    if (file != NULL && file->stream != NULL) {
        *out_fd = take_stream(logs, file, &plan, stream);
        return FAILURE_NONE;
    }
    return open_without_file(logs, plan.destination, out_fd, failure);
}

void attempt_logs_close_stream(const struct attempt_logs *logs, int fd) {
    if (fd >= 0 && fd != logs->null_fd) {
        close(fd);
    }
}

/* Worker errors. */

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
