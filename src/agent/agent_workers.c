/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_workers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/log_plan.h"
#include "core/log_tree.h"
#include "core/worker_command.h"
#include "host/process_evidence.h"
#include "host/process_family.h"
#include "host/process_spawn.h"

struct agent_worker {
    pid_t pid; /* 0: not started */
    bool has_exited;
    char *error_file;
    struct text evidence;
    int noted_signal; /* sent by somebody of ours while the worker was to run; 0: none … */
    char *signalled_by;
};

struct agent_workers {
    const struct agent_workers_settings settings;
    struct process_family *family;
    struct process_evidence *evidence;
    struct agent_worker *items; /* by local rank */
    size_t count;
    char *timer_file;     /* for all workers; NULL: whatever they inherit */
    bool is_attempt_open; /* started, and not yet all gone */
};

/* What all workers of one attempt share while they are started. */
struct attempt {
    const struct node_placement *placement;
    char *directory; /* NULL: none */
    struct log_filter *filters[2];
    int null_fd; /* for discarded streams; -1 until needed */
};

/* Index into arrays by stream. */
static const struct {
    int stream;
    enum log_tree_file file;
    enum log_tree_file filtered_file;
    enum log_console console;
} streams[2] = {
    {LAUNCH_STREAM_STDOUT, LOG_TREE_STDOUT, LOG_TREE_FILTERED_STDOUT, LOG_CONSOLE_STDOUT},
    {LAUNCH_STREAM_STDERR, LOG_TREE_STDERR, LOG_TREE_FILTERED_STDERR, LOG_CONSOLE_STDERR},
};

/* The pid of a worker that has exited may belong to another by now. */
int agent_workers_find(const struct agent_workers *workers, pid_t pid) {
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->items[i].pid == pid && !workers->items[i].has_exited) {
            return (int)i;
        }
    }
    return -1;
}

static void add_noted_signal(struct agent_worker *worker, const struct process_exit *how) {
    if (worker->noted_signal == 0) {
        return;
    }
    bool is_its_end = how->is_signal && how->value == worker->noted_signal;
    struct text kernel = worker->evidence;
    worker->evidence = (struct text){0};
    text_append_format(&worker->evidence, "%s %s", is_its_end ? "killed" : "had been signalled",
        worker->signalled_by);
    if (kernel.length > 0) {
        text_append_format(&worker->evidence, "; %s", text_string(&kernel));
    }
    text_clear(&kernel);
}

static void worker_exited(void *context, pid_t pid, const struct process_exit *how) {
    struct agent_workers *workers = context;
    int local_rank = agent_workers_find(workers, pid);
    struct agent_worker *worker = &workers->items[local_rank];
    worker->has_exited = true;
    process_evidence_describe(workers->evidence, pid, how, &worker->evidence);
    add_noted_signal(worker, how);
    const struct agent_workers_observer *observer = &workers->settings.observer;
    observer->exited(observer->context, local_rank, *how);
}

static void logs_finished(void *context) {
    (void)context; /* nobody waits for the logs of one attempt; the last ones are drained */
}

static void attempt_is_over(void *context) {
    struct agent_workers *workers = context;
    if (!workers->is_attempt_open) {
        return;
    }
    workers->is_attempt_open = false;
    if (workers->settings.log_thread != NULL) {
        log_thread_finish_attempt(workers->settings.log_thread, logs_finished, workers);
    }
    const struct agent_workers_observer *observer = &workers->settings.observer;
    observer->all_gone(observer->context);
}

enum failure_code agent_workers_new(struct event_loop *loop,
    const struct agent_workers_settings *settings, struct agent_workers **out_workers,
    struct failure *failure) {
    struct agent_workers initial = {
        .settings = *settings,
        .count = (size_t)settings->preparation->worker_count,
    };
    struct agent_workers *workers = memory_duplicate(&initial, sizeof initial);
    workers->items = memory_allocate(workers->count * sizeof *workers->items);
    workers->evidence = process_evidence_new();
    struct process_family_events events = {worker_exited, attempt_is_over, workers};
    enum failure_code code =
        process_family_new(loop, &events, settings->guardian, &workers->family, failure);
    if (code != FAILURE_NONE) {
        agent_workers_free(workers);
        return code;
    }
    *out_workers = workers;
    return FAILURE_NONE;
}

static void forget_attempt(struct agent_workers *workers) {
    for (size_t i = 0; i < workers->count; i++) {
        free(workers->items[i].error_file);
        text_clear(&workers->items[i].evidence);
        free(workers->items[i].signalled_by);
        workers->items[i] = (struct agent_worker){0};
    }
}

void agent_workers_free(struct agent_workers *workers) {
    if (workers == NULL) {
        return;
    }
    process_family_free(workers->family);
    process_evidence_free(workers->evidence);
    forget_attempt(workers);
    free(workers->timer_file);
    free(workers->items);
    free(workers);
}

bool agent_workers_need_log_thread(
    const struct launch_config *config, const struct agent_preparation *preparation) {
    for (int rank = 0; rank < preparation->worker_count; rank++) {
        for (int i = 0; i < 2; i++) {
            struct log_stream_plan plan = log_plan_stream(config, rank, streams[i].stream);
            if (plan.destination == LOG_DESTINATION_FILE ||
                plan.destination == LOG_DESTINATION_FILE_AND_CONSOLE) {
                return true;
            }
        }
    }
    return false;
}

static enum failure_code open_filters(
    struct agent_workers *workers, struct attempt *attempt, struct failure *failure) {
    const struct launch_config *config = workers->settings.config;
    const struct text_list *needles[2] = {
        &config->duplicate_stdout_filters, &config->duplicate_stderr_filters};
    enum failure_code code = FAILURE_NONE;
    for (int i = 0; i < 2 && code == FAILURE_NONE; i++) {
        if (needles[i]->count == 0 || workers->settings.log_thread == NULL) {
            continue;
        }
        char *path = log_tree_file_path(attempt->directory, 0, streams[i].filtered_file);
        code = log_thread_open_filter(
            workers->settings.log_thread, path, needles[i], &attempt->filters[i], failure);
        free(path);
    }
    return code;
}

static enum failure_code open_null(struct attempt *attempt, struct failure *failure) {
    if (attempt->null_fd < 0) {
        attempt->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    return attempt->null_fd < 0 ? failure_set_system(failure, errno, "cannot open /dev/null")
                                : FAILURE_NONE;
}

static enum failure_code open_logged_stream(struct agent_workers *workers, struct attempt *attempt,
    int local_rank, int index, int *out_fd, struct failure *failure) {
    const struct launch_config *config = workers->settings.config;
    struct log_stream_plan plan = log_plan_stream(config, local_rank, streams[index].stream);
    struct log_worker worker = {config->role, workers->settings.preparation->host_name, local_rank,
        attempt->placement->ranks.base_rank + local_rank};
    char *path = log_tree_file_path(attempt->directory, local_rank, streams[index].file);
    char *header = log_plan_header(config, &worker);
    struct log_stream_spec spec = {
        .path = path,
        .console = plan.destination == LOG_DESTINATION_FILE_AND_CONSOLE ? streams[index].console
                                                                        : LOG_CONSOLE_NONE,
        .header = header,
        .filter = plan.is_filtered ? attempt->filters[index] : NULL,
    };
    enum failure_code code =
        log_thread_open_stream(workers->settings.log_thread, &spec, out_fd, failure);
    free(path);
    free(header);
    return code;
}

/* *out_fd is -1 to inherit, the shared null descriptor, or a pipe the caller closes. */
static enum failure_code open_stream(struct agent_workers *workers, struct attempt *attempt,
    int local_rank, int index, int *out_fd, struct failure *failure) {
    struct log_stream_plan plan =
        log_plan_stream(workers->settings.config, local_rank, streams[index].stream);
    switch (plan.destination) {
    case LOG_DESTINATION_INHERIT:
        *out_fd = -1;
        return FAILURE_NONE;
    case LOG_DESTINATION_DISCARD: {
        enum failure_code code = open_null(attempt, failure);
        *out_fd = attempt->null_fd;
        return code;
    }
    case LOG_DESTINATION_FILE:
    case LOG_DESTINATION_FILE_AND_CONSOLE:
        return open_logged_stream(workers, attempt, local_rank, index, out_fd, failure);
    }
    return failure_set(failure, FAILURE_INVALID, "unknown log destination");
}

static enum failure_code spawn_worker(struct agent_workers *workers, struct attempt *attempt,
    int local_rank, const int fds[2], struct failure *failure) {
    const struct agent_workers_settings *settings = &workers->settings;
    struct agent_worker *worker = &workers->items[local_rank];
    struct text_list environment = {0};
    struct text_list arguments = {0};
    if (attempt->directory != NULL) {
        worker->error_file = log_tree_file_path(attempt->directory, local_rank, LOG_TREE_ERROR);
    }
    enum failure_code code = worker_environment_build(settings->config, attempt->placement,
        local_rank, worker->error_file, settings->environment, &environment);
    if (code != FAILURE_NONE) {
        failure_set(failure, code,
            "--virtual-local-rank: CUDA_VISIBLE_DEVICES=%s names no device for local rank %d",
            text_list_variable(settings->environment, "CUDA_VISIBLE_DEVICES"), local_rank);
    } else {
        if (workers->timer_file != NULL) {
            text_list_set_variable(&environment, "TORCHELASTIC_TIMER_FILE", workers->timer_file);
        }
        worker_command_build(
            settings->config, settings->preparation->python, local_rank, &arguments);
        struct process_request request = {
            .arguments = &arguments,
            .environment = &environment,
            .stdout_fd = fds[0],
            .stderr_fd = fds[1],
            .cpus = settings->preparation->cpus.count == 0
                        ? NULL
                        : &settings->preparation->cpus.sets[local_rank],
            .descriptor_limit = settings->descriptor_limit,
            .guardian_fd = guardian_descriptor(settings->guardian),
        };
        struct process process;
        code = process_spawn(&request, &process, failure);
        if (code == FAILURE_NONE) {
            worker->pid = process.pid;
            process_family_add(workers->family, &process);
        }
    }
    text_list_clear(&environment);
    text_list_clear(&arguments);
    return code;
}

static void close_pipe(const struct attempt *attempt, int fd) {
    if (fd >= 0 && fd != attempt->null_fd) {
        close(fd);
    }
}

static enum failure_code start_worker(struct agent_workers *workers, struct attempt *attempt,
    int local_rank, struct failure *failure) {
    int fds[2] = {-1, -1};
    enum failure_code code = open_stream(workers, attempt, local_rank, 0, &fds[0], failure);
    if (code == FAILURE_NONE) {
        code = open_stream(workers, attempt, local_rank, 1, &fds[1], failure);
    }
    if (code == FAILURE_NONE) {
        code = spawn_worker(workers, attempt, local_rank, fds, failure);
    }
    close_pipe(attempt, fds[0]);
    close_pipe(attempt, fds[1]);
    return code;
}

static enum failure_code start_all(struct agent_workers *workers, struct attempt *attempt,
    int *out_local_rank, struct failure *failure) {
    *out_local_rank = 0;
    enum failure_code code = log_directory_begin_attempt(&workers->settings.preparation->logs,
        attempt->placement->attempt, (int)workers->count, &attempt->directory, failure);
    if (code == FAILURE_NONE) {
        code = open_filters(workers, attempt, failure);
    }
    for (size_t rank = 0; rank < workers->count && code == FAILURE_NONE; rank++) {
        *out_local_rank = (int)rank;
        code = start_worker(workers, attempt, (int)rank, failure);
    }
    return code;
}

void agent_workers_start(struct agent_workers *workers, const struct node_placement *placement) {
    const struct agent_workers_observer *observer = &workers->settings.observer;
    struct attempt attempt = {.placement = placement, .null_fd = -1};
    struct failure failure = {0};
    int local_rank;
    forget_attempt(workers);
    process_evidence_begin(workers->evidence);
    workers->is_attempt_open = true;
    enum failure_code code = start_all(workers, &attempt, &local_rank, &failure);
    free(attempt.directory);
    if (attempt.null_fd >= 0) {
        close(attempt.null_fd);
    }
    if (code == FAILURE_NONE) {
        observer->started(observer->context);
        return;
    }
    observer->start_failed(observer->context, local_rank, failure.message);
    if (process_family_is_gone(workers->family)) {
        attempt_is_over(workers);
    }
}

void agent_workers_set_timer_file(struct agent_workers *workers, const char *path) {
    free(workers->timer_file);
    workers->timer_file = memory_duplicate_string(path);
}

void agent_workers_note_signal(
    struct agent_workers *workers, int local_rank, int signal, const char *by_whom) {
    struct agent_worker *worker = &workers->items[local_rank];
    worker->noted_signal = signal;
    free(worker->signalled_by);
    worker->signalled_by = memory_duplicate_string(by_whom);
}

void agent_workers_signal(struct agent_workers *workers, int signal) {
    process_family_signal(workers->family, signal);
}

pid_t agent_workers_pid(const struct agent_workers *workers, int local_rank) {
    return workers->items[local_rank].pid;
}

const char *agent_workers_error_file(const struct agent_workers *workers, int local_rank) {
    return workers->items[local_rank].error_file;
}

const char *agent_workers_evidence(const struct agent_workers *workers, int local_rank) {
    const struct text *evidence = &workers->items[local_rank].evidence;
    return evidence->length == 0 ? NULL : text_string(evidence);
}
