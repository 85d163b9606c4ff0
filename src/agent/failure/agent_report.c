/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "core/failure/failure_report.h"
#include "core/workers/log_plan.h"
#include "host/failure/death_evidence.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "wire/failure/failure_json.h"

/* How long a disk that does not answer may hold up the report: until what the workers wrote is in
 * their files, and until the end of one is read. */
#define DISK_PATIENCE_SECONDS 5
/* The most bytes of a line that are told at a restart. */
#define LONGEST_TOLD 400

/* On a thread. */
struct reading {
    char *path;
    struct bytes end;
    bool is_cut;
    enum failure_code code;
    struct failure failure;
};

static void run_reading(void *subject) {
    struct reading *reading = subject;
    reading->code = file_end_read(
        reading->path, LAST_LINES_WINDOW, &reading->end, &reading->is_cut, &reading->failure);
}

static void free_reading(void *subject) {
    struct reading *reading = subject;
    bytes_clear(&reading->end);
    free(reading->path);
    free(reading);
}

static char *take_lines(const struct reading *reading) {
    struct text lines = {0};
    last_lines_append(bytes_slice(&reading->end), reading->is_cut, &lines);
    return text_take(&lines);
}

/* The last lines of a failed worker's log file, for the report and for who restarts. The file may
 * be on a dead disk, so another thread reads it, and nobody waits for it for longer than some
 * seconds. */

/* What is at the end of `path`, see last_lines_append; the caller frees it. NULL where that cannot
 * be read in time, with a warning, and where `path` is NULL. Runs the loop of the workers, all of
 * whom are gone, until the log thread has written what they wrote. */
static char *last_words_read(
    struct agent_workers *workers, const char *path, const struct log *log) {
    struct duration patience = duration_from_seconds(DISK_PATIENCE_SECONDS);
    struct failure failure = {0};
    if (path == NULL) {
        return NULL;
    }
    if (!agent_workers_await_logs(workers, patience)) {
        log_warning(log,
            "the report is without the last lines of %s: the log files do not get "
            "what the workers wrote in time",
            path);
        return NULL;
    }
    struct reading *reading = memory_allocate(sizeof *reading);
    reading->path = memory_duplicate_string(path);
    const struct blocking_task task = {run_reading, free_reading, reading};
    enum failure_code code = blocking_task_run_within(&task, patience, NULL, &failure);
    if (code != FAILURE_NONE) {
        log_warning(log, "the report is without the last lines of %s: %s", path, failure.message);
        return NULL;
    }
    char *lines = NULL;
    if (reading->code == FAILURE_NONE) {
        lines = take_lines(reading);
    } else {
        log_warning(log, "the report is without the last lines: %s", reading->failure.message);
    }
    free_reading(reading);
    return lines;
}

/* At a restart. */

struct last_words {
    struct event_loop *loop;
    struct agent_workers *workers;
    const struct log *log;
    struct blocking_pool *pool; /* NULL until there is something to read */
    char *path;                 /* of the worker that has failed; NULL: nothing is expected */
    int local_rank;
    int64_t pid;
    bool is_known; /* `line` is its last one */
    struct text line;
    void (*known)(void *context); /* NULL: nobody is to be told */
    void *context;
};

/* Of UTF-8, no half of a character. */
static int told_length(const char *line) {
    size_t length = strlen(line);
    if (length > LONGEST_TOLD) {
        length = LONGEST_TOLD;
        while (length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    return (int)length;
}

static void settle(struct last_words *words) {
    words->is_known = true;
    if (words->known != NULL) {
        words->known(words->context);
    }
}

static void tell_line(struct last_words *words, const struct reading *reading) {
    struct text lines = {0};
    last_lines_append(bytes_slice(&reading->end), reading->is_cut, &lines);
    while (lines.length > 0 && lines.data[lines.length - 1] == '\n') {
        lines.data[--lines.length] = '\0';
    }
    const char *break_before = strrchr(text_string(&lines), '\n');
    const char *line = break_before == NULL ? text_string(&lines) : break_before + 1;
    if (*line == '\0') {
        log_warning(words->log,
            "local_rank %d, which failed, wrote nothing on stderr; its log is %s",
            words->local_rank, reading->path);
    } else {
        log_warning(words->log, "local_rank %d, which failed, wrote last: %.*s; its log is %s",
            words->local_rank, told_length(line), line, reading->path);
    }
    text_append(&words->line, line);
    text_clear(&lines);
}

static void was_read(void *context, void *subject) {
    struct last_words *words = context;
    const struct reading *reading = subject;
    words->line.length = 0;
    if (reading->code == FAILURE_NONE) {
        tell_line(words, reading);
    } else if (reading->code != FAILURE_MISSING) { /* somebody has removed it, which is told */
        log_warning(words->log, "what local_rank %d, which failed, wrote last is not known: %s",
            words->local_rank, reading->failure.message);
    }
    settle(words);
}

static void logs_are_complete(void *context) {
    struct last_words *words = context;
    struct failure failure = {0};
    struct blocking_call *call;
    if (words->pool == NULL &&
        blocking_pool_new(words->loop, &words->pool, &failure) != FAILURE_NONE) {
        log_warning(words->log, "the log of local_rank %d, which failed, is %s", words->local_rank,
            words->path);
        settle(words);
        return;
    }
    struct reading *reading = memory_allocate(sizeof *reading);
    reading->path = words->path;
    words->path = NULL;
    const struct blocking_task task = {run_reading, free_reading, reading};
    const struct blocking_answer answer = {was_read, words};
    if (blocking_pool_send(words->pool, &task, &answer, &call, &failure) != FAILURE_NONE) {
        log_warning(words->log, "what local_rank %d, which failed, wrote last is not known: %s",
            words->local_rank, failure.message);
        settle(words);
    }
}

struct last_words *last_words_new(
    struct event_loop *loop, struct agent_workers *workers, const struct log *log) {
    const struct last_words initial = {.loop = loop, .workers = workers, .log = log};
    return memory_duplicate(&initial, sizeof initial);
}

void last_words_free(struct last_words *words) {
    if (words != NULL) {
        agent_workers_notify_of_logs(words->workers, NULL, NULL);
        blocking_pool_free(words->pool);
        free(words->path);
        text_clear(&words->line);
        free(words);
    }
}

void last_words_expect(struct last_words *words, int local_rank) {
    char *path = agent_workers_stderr_file(words->workers, local_rank);
    if (path != NULL) {
        free(words->path);
        words->path = path;
        words->local_rank = local_rank;
        words->pid = agent_workers_pid(words->workers, local_rank);
        words->is_known = false;
        text_clear(&words->line);
        agent_workers_notify_of_logs(words->workers, logs_are_complete, words);
    }
}

bool last_words_append(const struct last_words *words, int64_t pid, struct text *out) {
    if (words == NULL || words->pid != pid) {
        return true; /* nobody will know it */
    }
    text_append(out, words->is_known ? text_string(&words->line) : "");
    return words->is_known;
}

void last_words_notify(struct last_words *words, void (*known)(void *context), void *context) {
    words->known = known;
    words->context = context;
}

/* Findings. */

#define NANOSECONDS_PER_SECOND 1000000000

static void take_error(struct agent_finding *finding, const char *path, struct error_file *error,
    struct worker_group *group) {
    struct failure_account *account = &finding->account;
    finding->has_error = true;
    account->error_file = memory_duplicate_string(path);
    account->message = memory_duplicate_string(error->message);
    account->is_message_object = error->is_message_object;
    account->summary = memory_duplicate_string(error->summary);
    if (error->has_timestamp) {
        account->seconds = error->timestamp;
        worker_group_set_error_time(group, account->local_rank, error->timestamp);
    }
}

static void take_error_file(const char *path, const struct worker_error *read,
    struct agent_finding *finding, struct worker_group *group) {
    struct text reason = {0};
    struct error_file error;
    if (read == NULL || read->code == FAILURE_MISSING) {
        return;
    }
    if (read->code != FAILURE_NONE) {
        finding->account.note = text_format("unreadable error file: %s", read->failure.message);
        return;
    }
    enum failure_code code = error_file_json_read(bytes_slice(&read->content), &error, &reason);
    if (code == FAILURE_NONE) {
        take_error(finding, path, &error, group);
        finding->error_file = bytes_slice(&read->content);
        error_file_clear(&error);
    } else {
        finding->account.note =
            text_format("unreadable error file %s: %s", path, text_string(&reason));
    }
    text_clear(&reason);
}

void agent_finding_collect(const struct agent_findings_sources *sources, struct worker_group *group,
    size_t index, struct agent_finding *out_finding) {
    const struct worker_failure *failure = &group->failures[index];
    const struct node_placement *placement = sources->placement;
    int local_rank = failure->local_rank;
    *out_finding = (struct agent_finding){
        .account = {
            .host = memory_duplicate_string(sources->preparation->node_name),
            .node = memory_duplicate_string(placement->node),
            .group_rank = placement->group_rank,
            .rank = placement->ranks.base_rank + local_rank,
            .local_rank = local_rank,
            .role_rank = placement->ranks.role_base_rank + local_rank,
            .seconds = failure->observed.nanoseconds / NANOSECONDS_PER_SECOND,
            .pid = agent_workers_pid(sources->workers, local_rank),
            .exit = failure->exit,
            .start_message = memory_duplicate_string(failure->start_message),
            .stuck = failure->stuck,
            .log_file = agent_workers_stderr_file(sources->workers, local_rank),
            .evidence =
                memory_duplicate_string(agent_workers_evidence(sources->workers, local_rank)),
        }};
    take_error_file(agent_workers_error_file(sources->workers, local_rank),
        agent_workers_error(sources->workers, local_rank), out_finding, group);
}

void agent_finding_clear(struct agent_finding *finding) {
    failure_account_clear(&finding->account);
    *finding = (struct agent_finding){0};
}

/* Report. */

#define EXIT_JOB_FAILED 1
#define SIGNAL_EXIT_BASE 128

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
    const struct blocking_task task = {run_writing, free_writing, writing};
    if (blocking_task_run_within(
            &task, duration_from_seconds(DISK_PATIENCE_SECONDS), NULL, &failure) != FAILURE_NONE) {
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
    if (settings->is_shown) {
        tell_of_missing_words(settings, &findings[root].account);
    }
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
