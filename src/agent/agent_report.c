/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_report.h"

#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "core/failure_report.h"
#include "core/worker_command.h"
#include "host/error_file.h"
#include "wire/error_file_json.h"

#define EXIT_JOB_FAILED 1
#define SIGNAL_EXIT_BASE 128
#define NANOSECONDS_PER_SECOND 1000000000

/* What one failed worker left behind. */
struct finding {
    struct bytes raw; /* its error file as it is */
    struct error_file error;
    bool has_error;
    char *note;
};

static void read_error_file(const char *path, struct finding *finding) {
    struct failure failure = {0};
    struct text reason = {0};
    if (path == NULL) {
        return;
    }
    enum failure_code code = error_file_read(path, ERROR_FILE_CEILING, &finding->raw, &failure);
    if (code == FAILURE_MISSING) {
        return;
    }
    if (code != FAILURE_NONE) {
        finding->note = text_format("unreadable error file: %s", failure.message);
        return;
    }
    code = error_file_json_read(bytes_slice(&finding->raw), &finding->error, &reason);
    if (code == FAILURE_NONE) {
        finding->has_error = true;
    } else {
        finding->note = text_format("unreadable error file %s: %s", path, text_string(&reason));
    }
    text_clear(&reason);
}

static void clear_finding(struct finding *finding) {
    bytes_clear(&finding->raw);
    if (finding->has_error) {
        error_file_clear(&finding->error);
    }
    free(finding->note);
}

static struct failure_report_time break_down(int64_t seconds) {
    time_t moment = (time_t)seconds;
    struct tm local;
    localtime_r(&moment, &local);
    return (struct failure_report_time){local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
        local.tm_hour, local.tm_min, local.tm_sec};
}

static struct failure_report_entry make_entry(const struct agent_report_settings *settings,
    const struct worker_failure *failure, const struct finding *finding) {
    int64_t seconds = failure->has_error_time
                          ? failure->error_seconds
                          : failure->observed.nanoseconds / NANOSECONDS_PER_SECOND;
    int local_rank = failure->local_rank;
    return (struct failure_report_entry){
        .time = break_down(seconds),
        .host = settings->preparation->host_name,
        .rank = settings->base_rank + local_rank,
        .local_rank = local_rank,
        .pid = agent_workers_pid(settings->workers, local_rank),
        .exit = failure->exit,
        .start_message = failure->start_message,
        .stuck = failure->stuck,
        .error_file =
            finding->has_error ? agent_workers_error_file(settings->workers, local_rank) : NULL,
        .message = finding->has_error ? finding->error.message : NULL,
        .is_message_object = finding->has_error && finding->error.is_message_object,
        .evidence = agent_workers_evidence(settings->workers, local_rank),
        .note = finding->note,
    };
}

/* Python's convention, which error files and torchrun's events use: a signal is a negative code. */
static int python_exit_code(const struct worker_failure *failure) {
    return failure->exit.is_signal ? -failure->exit.value : failure->exit.value;
}

static void write_parent_error_file(const struct agent_report_settings *settings,
    const struct worker_failure *root, const struct finding *finding) {
    if (settings->parent_error_file == NULL || !finding->has_error) {
        return;
    }
    struct text document = {0};
    struct failure failure = {0};
    if (error_file_json_write_for_parent(
            bytes_slice(&finding->raw), python_exit_code(root), &document) == FAILURE_NONE &&
        error_file_write(settings->parent_error_file, slice_from_string(text_string(&document)),
            &failure) != FAILURE_NONE) {
        log_warning(settings->log, "TORCHELASTIC_ERROR_FILE: %s", failure.message);
    }
    text_clear(&document);
}

static int exit_status(const struct launch_config *config, const struct worker_failure *root) {
    bool has_ended = root->start_message == NULL && root->stuck.nanoseconds == 0;
    if (config->exit_code == LAUNCH_EXIT_CODE_TORCHRUN || !has_ended) {
        return EXIT_JOB_FAILED;
    }
    return root->exit.is_signal ? SIGNAL_EXIT_BASE + root->exit.value : root->exit.value;
}

int agent_report_failures(const struct agent_report_settings *settings, struct worker_group *group,
    struct text *out_text) {
    struct finding *findings = memory_allocate(group->failure_count * sizeof *findings);
    struct failure_report_entry *entries = memory_allocate(group->failure_count * sizeof *entries);
    for (size_t i = 0; i < group->failure_count; i++) {
        int local_rank = group->failures[i].local_rank;
        read_error_file(agent_workers_error_file(settings->workers, local_rank), &findings[i]);
        if (findings[i].has_error && findings[i].error.has_timestamp) {
            worker_group_set_error_time(group, local_rank, findings[i].error.timestamp);
        }
    }
    for (size_t i = 0; i < group->failure_count; i++) {
        entries[i] = make_entry(settings, &group->failures[i], &findings[i]);
    }
    size_t root = worker_group_root_cause(group);
    failure_report_format(out_text, worker_command_display_name(settings->config), entries,
        group->failure_count, root);
    write_parent_error_file(settings, &group->failures[root], &findings[root]);
    int status = exit_status(settings->config, &group->failures[root]);
    for (size_t i = 0; i < group->failure_count; i++) {
        clear_finding(&findings[i]);
    }
    free(findings);
    free(entries);
    return status;
}
