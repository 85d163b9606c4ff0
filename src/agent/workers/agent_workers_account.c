/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_workers_state.h"
#include "core/workers/log_plan.h"

void agent_workers_learn_end(
    struct agent_workers *workers, int local_rank, const struct process_exit *how) {
    struct agent_worker *worker = &workers->items[local_rank];
    text_clear(&worker->evidence);
    process_evidence_describe(workers->evidence, worker->pid, how, &worker->evidence);
    worker_notes_add(&worker->notes, how, &worker->evidence);
    if (!worker->is_ending && (how->is_signal || how->value != 0)) {
        worker_errors_read(workers->errors, local_rank, worker->error_file);
    }
}

void agent_workers_note_signal(
    struct agent_workers *workers, int local_rank, int signal, const char *by_whom) {
    worker_notes_set_signal(&workers->items[local_rank].notes, signal, by_whom);
}

void agent_workers_note_hang(struct agent_workers *workers, int local_rank, const char *words) {
    worker_notes_set_hang(&workers->items[local_rank].notes, words);
}

char *agent_workers_log_file(
    const struct agent_workers *workers, int local_rank, enum log_tree_file file) {
    return workers->log_directory == NULL || local_rank < 0
               ? NULL
               : log_tree_file_path(workers->log_directory, local_rank, file);
}

const char *agent_workers_log_directory(const struct agent_workers *workers) {
    return workers->log_directory;
}

char *agent_workers_stderr_file(const struct agent_workers *workers, int local_rank) {
    struct log_stream_plan plan =
        log_plan_stream(workers->settings.config, local_rank, LAUNCH_STREAM_STDERR);
    return log_destination_is_file(plan.destination)
               ? agent_workers_log_file(workers, local_rank, LOG_TREE_STDERR)
               : NULL;
}

bool agent_workers_await_logs(struct agent_workers *workers, struct duration patience) {
    return finished_logs_await(workers->finished_logs, patience);
}

void agent_workers_notify_of_logs(
    struct agent_workers *workers, void (*complete)(void *context), void *context) {
    finished_logs_notify(workers->finished_logs, complete, context);
}

pid_t agent_workers_pid(const struct agent_workers *workers, int local_rank) {
    return workers->items[local_rank].pid;
}

void agent_workers_return_value(
    const struct agent_workers *workers, int local_rank, struct bytes *out_value) {
    worker_value_read(&workers->items[local_rank].value, out_value);
}

const char *agent_workers_error_file(const struct agent_workers *workers, int local_rank) {
    return workers->items[local_rank].error_file;
}

void agent_workers_read_error_file(struct agent_workers *workers, int local_rank) {
    worker_errors_read(workers->errors, local_rank, workers->items[local_rank].error_file);
}

void agent_workers_await_errors(struct agent_workers *workers, int local_rank,
    struct duration patience, void (*done)(void *context), void *context) {
    worker_errors_await(workers->errors, local_rank, patience, done, context);
}

const struct worker_error *agent_workers_error(
    const struct agent_workers *workers, int local_rank) {
    return worker_errors_get(workers->errors, local_rank);
}

const char *agent_workers_evidence(const struct agent_workers *workers, int local_rank) {
    const struct text *evidence = &workers->items[local_rank].evidence;
    return evidence->length == 0 ? NULL : text_string(evidence);
}
