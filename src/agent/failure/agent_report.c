/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_report.h"

#include <stdlib.h>
#include <time.h>

#include "agent/failure/last_words.h"
#include "base/memory.h"
#include "core/failure/failure_report.h"
#include "core/workers/log_plan.h"
#include "core/workers/worker_command.h"
#include "host/failure/error_file.h"
#include "host/loop/clock.h"
#include "host/loop/errands.h"
#include "wire/failure/error_file_json.h"

#define EXIT_JOB_FAILED 1
#define SIGNAL_EXIT_BASE 128
/* How long a disk that does not answer may hold up the end of a job. */
#define DISK_PATIENCE_SECONDS 5

static struct failure_report_time break_down(int64_t seconds) {
    struct tm local = clock_local_time(seconds);
    return (struct failure_report_time){local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
        local.tm_hour, local.tm_min, local.tm_sec};
}

/* On a thread. */
struct writing {
    char *path;
    char *content;
    enum failure_code code;
    struct failure failure;
};

static void run_writing(void *subject) {
    struct writing *writing = subject;
    writing->code =
        error_file_write(writing->path, slice_from_string(writing->content), &writing->failure);
}

static void free_writing(void *subject) {
    struct writing *writing = subject;
    free(writing->path);
    free(writing->content);
    free(writing);
}

static void write_to_parent(
    const char *parent_error_file, const struct log *log, const struct text *document) {
    struct failure failure = {0};
    struct writing *writing = memory_allocate(sizeof *writing);
    writing->path = memory_duplicate_string(parent_error_file);
    writing->content = memory_duplicate_string(text_string(document));
    const struct errand_task task = {run_writing, free_writing, writing};
    if (errand_run_within(&task, duration_from_seconds(DISK_PATIENCE_SECONDS), NULL, &failure) !=
        FAILURE_NONE) {
        log_warning(log, "TORCHELASTIC_ERROR_FILE: cannot write the error file %s: %s",
            parent_error_file, failure.message);
        return;
    }
    if (writing->code != FAILURE_NONE) {
        log_warning(log, "TORCHELASTIC_ERROR_FILE: %s", writing->failure.message);
    }
    free_writing(writing);
}

void agent_report_launcher_failure(
    const char *parent_error_file, const struct log *log, const char *error, const char *message) {
    if (parent_error_file == NULL) {
        return;
    }
    struct text document = {0};
    char *sentence = text_format("%s: %s", error, message);
    struct failure_account account = {
        .seconds = (int64_t)time(NULL), .summary = sentence, .message = sentence};
    error_file_json_write(&account, &document);
    write_to_parent(parent_error_file, log, &document);
    text_clear(&document);
    free(sentence);
}

/* Only of workers that have written one, and of those that were never started: as torchrun has it,
 * where the latter fail the launcher itself. */
static void write_parent_error_file(const struct agent_report_settings *settings,
    const struct agent_finding *findings, size_t local_root) {
    struct text document = {0};
    if (settings->parent_error_file == NULL) {
        return;
    }
    if (settings->root_cause != NULL) {
        if (settings->root_cause->message != NULL) {
            error_file_json_write(settings->root_cause, &document);
            write_to_parent(settings->parent_error_file, settings->log, &document);
        }
    } else if (findings[local_root].account.start_message != NULL) {
        agent_report_launcher_failure(settings->parent_error_file, settings->log, "OSError",
            findings[local_root].account.start_message);
    } else if (findings[local_root].has_error) {
        const struct agent_finding *root = &findings[local_root];
        if (error_file_json_write_for_parent(root->error_file,
                process_exit_python_code(root->account.exit), &document) == FAILURE_NONE) {
            write_to_parent(settings->parent_error_file, settings->log, &document);
        }
    }
    text_clear(&document);
}

int agent_report_signal_status(const struct launch_config *config, int signal) {
    return config->exit_code == LAUNCH_EXIT_CODE_TORCHRUN ? EXIT_JOB_FAILED
                                                          : SIGNAL_EXIT_BASE + signal;
}

/* Another node's account may be a stranger's, and a job that has failed never ends as if it had
 * not.
 */
static int exit_status(const struct launch_config *config, const struct failure_account *root) {
    bool has_ended = root->start_message == NULL && root->stuck.nanoseconds == 0;
    if (config->exit_code == LAUNCH_EXIT_CODE_TORCHRUN || !has_ended) {
        return EXIT_JOB_FAILED;
    }
    int status = root->exit.is_signal ? SIGNAL_EXIT_BASE + root->exit.value : root->exit.value;
    return status != 0 ? status : EXIT_JOB_FAILED;
}

static struct failure_report_entry make_entry(const struct failure_account *account) {
    return (struct failure_report_entry){.time = break_down(account->seconds), .account = account};
}

static void format_report(const struct agent_report_settings *settings,
    const struct failure_report_entry *entries, size_t count, size_t root, struct text *out_text) {
    const struct failure_report_job job = {
        worker_command_display_name(settings->config), worker_command_is_python(settings->config)};
    failure_report_format(out_text, &job, entries, count, root);
}

/* The root cause first, then what happened here. */
static int report_another_nodes_failure(const struct agent_report_settings *settings,
    const struct worker_group *group, const struct agent_finding *findings, struct text *out_text) {
    size_t count = group->failure_count;
    struct failure_report_entry *entries = memory_allocate((count + 1) * sizeof *entries);
    entries[0] = make_entry(settings->root_cause);
    for (size_t i = 0; i < count; i++) {
        entries[i + 1] = make_entry(&findings[i].account);
        entries[i + 1].judgement = failure_judgement_text(
            failure_judge(&findings[i].account, group->failures[i].is_from_our_signal));
    }
    format_report(settings, entries, count + 1, 0, out_text);
    free(entries);
    write_parent_error_file(settings, findings, 0);
    return exit_status(settings->config, settings->root_cause);
}

static const char *what_keeps_words(const struct launch_config *config, int local_rank) {
    switch (log_plan_stream(config, local_rank, LAUNCH_STREAM_STDERR).destination) {
    case LOG_DESTINATION_DISCARD:
        return "was discarded (--local-ranks-filter); --redirects 2 keeps it";
    case LOG_DESTINATION_INHERIT:
        return log_plan_has_directory(config)
                   ? "went straight to the console; -t 2 keeps it in a file, too"
                   : "went straight to the console; a --log-dir and -t 2 keep it in a file, too";
    case LOG_DESTINATION_FILE:
    case LOG_DESTINATION_FILE_AND_CONSOLE:
        break;
    }
    return "has no file, since the log files could not be made";
}

/* Who has nothing but an exit code wants to know where the worker's words are. It is a line before
 * the report, whose own lines are torchrun's. */
static void tell_of_missing_words(
    const struct agent_report_settings *settings, const struct failure_account *account) {
    bool has_words = account->message != NULL && *account->message != '\0';
    if (account->log_file == NULL && account->start_message == NULL && !has_words) {
        log_warning(settings->log, "the report has no words of local_rank %d: its stderr %s",
            account->local_rank, what_keeps_words(settings->config, account->local_rank));
    }
}

static int report_own_failure(const struct agent_report_settings *settings,
    const struct worker_group *group, const struct agent_finding *findings, struct text *out_text) {
    size_t count = group->failure_count;
    size_t root = worker_group_root_cause(group);
    struct failure_report_entry *entries = memory_allocate(count * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        entries[i] = make_entry(&findings[i].account);
    }
    char *last_words =
        last_words_read(settings->workers, findings[root].account.log_file, settings->log);
    entries[root].last_lines = last_words;
    tell_of_missing_words(settings, &findings[root].account);
    format_report(settings, entries, count, root, out_text);
    free(last_words);
    free(entries);
    write_parent_error_file(settings, findings, root);
    return exit_status(settings->config, &findings[root].account);
}

int agent_report_failures(const struct agent_report_settings *settings, struct worker_group *group,
    struct text *out_text) {
    size_t count = group->failure_count;
    struct agent_finding *findings = memory_allocate(count * sizeof *findings);
    for (size_t i = 0; i < count; i++) {
        agent_finding_collect(&settings->sources, group, i, &findings[i]);
    }
    int status = settings->root_cause != NULL
                     ? report_another_nodes_failure(settings, group, findings, out_text)
                     : report_own_failure(settings, group, findings, out_text);
    for (size_t i = 0; i < count; i++) {
        agent_finding_clear(&findings[i]);
    }
    free(findings);
    return status;
}
