/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/attempt_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log_plan.h"
#include "core/log_tree.h"

static const struct {
    int plan;
    enum log_tree_file file;
    enum log_tree_file filtered_file;
    enum log_console console;
} streams[ATTEMPT_STREAM_COUNT] = {
    [ATTEMPT_STDOUT] = {LAUNCH_STREAM_STDOUT, LOG_TREE_STDOUT, LOG_TREE_FILTERED_STDOUT,
        LOG_CONSOLE_STDOUT},
    [ATTEMPT_STDERR] = {LAUNCH_STREAM_STDERR, LOG_TREE_STDERR, LOG_TREE_FILTERED_STDERR,
        LOG_CONSOLE_STDERR},
};

bool attempt_logs_need_thread(
    const struct launch_config *config, const struct agent_preparation *preparation) {
    for (int rank = 0; rank < preparation->worker_count; rank++) {
        for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
            struct log_stream_plan plan = log_plan_stream(config, rank, streams[i].plan);
            if (plan.destination == LOG_DESTINATION_FILE ||
                plan.destination == LOG_DESTINATION_FILE_AND_CONSOLE) {
                return true;
            }
        }
    }
    return false;
}

/* True when the attempt goes on without logs. */
static bool give_up(struct attempt_logs *logs, const struct failure *failure) {
    if (logs->settings->is_first) {
        return false;
    }
    if (!logs->is_given_up) {
        log_warning(logs->settings->log, "attempt %d goes on without log files: %s",
            logs->settings->attempt.restart_count, failure->message);
    }
    logs->is_given_up = true;
    return true;
}

static enum failure_code open_filter(
    struct attempt_logs *logs, enum attempt_stream stream, struct failure *failure) {
    const struct launch_config *config = logs->settings->config;
    const struct text_list *needles = stream == ATTEMPT_STDOUT ? &config->duplicate_stdout_filters
                                                               : &config->duplicate_stderr_filters;
    if (needles->count == 0 || logs->settings->log_thread == NULL) {
        return FAILURE_NONE;
    }
    char *path = log_tree_file_path(logs->directory, 0, streams[stream].filtered_file);
    enum failure_code code = log_thread_open_filter(
        logs->settings->log_thread, path, needles, &logs->filters[stream], failure);
    free(path);
    return code;
}

static enum failure_code make_directories(struct attempt_logs *logs, struct failure *failure) {
    const struct agent_preparation *preparation = logs->settings->preparation;
    enum failure_code code = log_directory_begin_attempt(&preparation->logs,
        &logs->settings->attempt, preparation->worker_count, &logs->directory, failure);
    for (int i = 0; i < ATTEMPT_STREAM_COUNT && code == FAILURE_NONE; i++) {
        code = open_filter(logs, (enum attempt_stream)i, failure);
    }
    return code;
}

enum failure_code attempt_logs_init(struct attempt_logs *logs,
    const struct attempt_logs_settings *settings, struct failure *failure) {
    *logs = (struct attempt_logs){.settings = settings, .null_fd = -1};
    struct failure reason = {0};
    enum failure_code code = make_directories(logs, &reason);
    if (code == FAILURE_NONE || give_up(logs, &reason)) {
        return FAILURE_NONE;
    }
    return failure_set(failure, code, "%s", reason.message);
}

void attempt_logs_clear(struct attempt_logs *logs) {
    free(logs->directory);
    if (logs->null_fd >= 0) {
        close(logs->null_fd);
    }
    *logs = (struct attempt_logs){.null_fd = -1};
}

char *attempt_logs_error_file(const struct attempt_logs *logs, int local_rank) {
    return logs->directory == NULL
               ? NULL
               : log_tree_file_path(logs->directory, local_rank, LOG_TREE_ERROR);
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

static enum failure_code open_file(struct attempt_logs *logs, const struct log_worker *worker,
    enum attempt_stream stream, int *out_fd, struct failure *failure) {
    const struct launch_config *config = logs->settings->config;
    struct log_stream_plan plan = log_plan_stream(config, worker->local_rank, streams[stream].plan);
    bool is_shown = plan.destination == LOG_DESTINATION_FILE_AND_CONSOLE;
    char *path = log_tree_file_path(logs->directory, worker->local_rank, streams[stream].file);
    char *header = log_plan_header(config, worker);
    struct log_stream_spec spec = {
        .path = path,
        .console = is_shown ? streams[stream].console : LOG_CONSOLE_NONE,
        .header = header,
        .filter = plan.is_filtered ? logs->filters[stream] : NULL,
    };
    enum failure_code code =
        log_thread_open_stream(logs->settings->log_thread, &spec, out_fd, failure);
    free(path);
    free(header);
    return code;
}

static enum failure_code open_without_file(struct attempt_logs *logs,
    enum log_destination destination, int *out_fd, struct failure *failure) {
    if (destination == LOG_DESTINATION_INHERIT || destination == LOG_DESTINATION_FILE_AND_CONSOLE) {
        *out_fd = -1;
        return FAILURE_NONE;
    }
    return open_null(logs, out_fd, failure);
}

enum failure_code attempt_logs_open_stream(struct attempt_logs *logs, int local_rank, int rank,
    enum attempt_stream stream, int *out_fd, struct failure *failure) {
    const struct launch_config *config = logs->settings->config;
    enum log_destination destination =
        log_plan_stream(config, local_rank, streams[stream].plan).destination;
    bool has_file =
        destination == LOG_DESTINATION_FILE || destination == LOG_DESTINATION_FILE_AND_CONSOLE;
    if (has_file && !logs->is_given_up) {
        struct log_worker worker = {
            config->role, logs->settings->preparation->host_name, local_rank, rank};
        struct failure reason = {0};
        enum failure_code code = open_file(logs, &worker, stream, out_fd, &reason);
        if (code == FAILURE_NONE || !give_up(logs, &reason)) {
            return code == FAILURE_NONE ? code : failure_set(failure, code, "%s", reason.message);
        }
    }
    return open_without_file(logs, destination, out_fd, failure);
}

void attempt_logs_close_stream(const struct attempt_logs *logs, int fd) {
    if (fd >= 0 && fd != logs->null_fd) {
        close(fd);
    }
}
