/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_workers.h"

#include <stdlib.h>

#include "agent/standby/agent_standby.h"
#include "agent/workers/agent_workers_state.h"
#include "agent/workers/worker_batch.h"
#include "agent/workers/worker_start.h"
#include "base/memory.h"

/* How long a start waits for the disk before it is said, or before it goes on without. */
#define DISK_PATIENCE_SECONDS 5

/* The pid of a worker that has exited may belong to another by now. */
int agent_workers_find(const struct agent_workers *workers, pid_t pid) {
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->items[i].pid == pid && !workers->items[i].has_exited) {
            return (int)i;
        }
    }
    return -1;
}

/* Also a worker that has ended: its session keeps its number while somebody is in it. */
static int find_session(const struct agent_workers *workers, pid_t session) {
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->items[i].pid == session) {
            return (int)i;
        }
    }
    return -1;
}

void agent_workers_each_process(const struct agent_workers *workers,
    void (*visit)(void *context, pid_t pid, int local_rank), void *context) {
    struct process_ids orphans = {0};
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->items[i].pid != 0 && !workers->items[i].has_exited) {
            visit(context, workers->items[i].pid, (int)i);
        }
    }
    process_family_orphans(workers->family, &orphans);
    for (size_t i = 0; i < orphans.count; i++) {
        struct kernel_process_stat stat;
        if (process_table_read(orphans.items[i], &stat) && stat.state != 'Z') {
            visit(context, orphans.items[i], find_session(workers, (pid_t)stat.session));
        }
    }
    process_ids_clear(&orphans);
}

static void worker_ending(void *context, pid_t pid, const struct process_exit *how) {
    struct agent_workers *workers = context;
    const struct agent_workers_observer *observer = &workers->settings.observer;
    int local_rank = agent_workers_find(workers, pid);
    if (local_rank != -1) {
        agent_workers_learn_end(workers, local_rank, how);
        workers->items[local_rank].is_ending = true;
        observer->ending(observer->context, local_rank, *how);
    }
}

static void worker_exited(void *context, pid_t pid, const struct process_exit *how) {
    struct agent_workers *workers = context;
    const struct agent_workers_observer *observer = &workers->settings.observer;
    int local_rank = agent_workers_find(workers, pid);
    struct agent_worker *worker = &workers->items[local_rank];
    if (worker->place.is_awaited) {
        agent_standby_settle(workers->settings.standby, local_rank);
        if (worker->pid != pid) {
            return; /* it was no worker yet, and another process has its place */
        }
    }
    worker->has_exited = true;
    agent_standby_expect_end(workers->settings.standby, local_rank);
    agent_workers_learn_end(workers, local_rank, how);
    observer->exited(observer->context, local_rank, *how);
}

static void attempt_is_over(void *context) {
    struct agent_workers *workers = context;
    const struct agent_workers_observer *observer = &workers->settings.observer;
    if (!workers->is_attempt_open) {
        return;
    }
    workers->is_attempt_open = false;
    finished_logs_ask(workers->finished_logs);
    observer->all_gone(observer->context);
}

/* Starting. */

/* Where it was removed and cannot be made anew, workers are told of none, nor of an inherited one.
 */
static const char *timer_file(const struct agent_workers *workers) {
    return workers->timer_file != NULL && !workers->has_timers ? "" : workers->timer_file;
}

/* A standby worker takes the place, or a process is started with the batch. */
static enum failure_code take_place(struct worker_batch *batch, int local_rank,
    struct text_list *environment_taken, const int fds[ATTEMPT_STREAM_COUNT],
    struct failure *failure) {
    struct agent_workers *workers = batch->workers;
    struct agent_worker *worker = &workers->items[local_rank];
    worker->pid = agent_standby_give(workers->settings.standby, local_rank, environment_taken, fds);
    if (worker->pid == 0) {
        return worker_batch_add(batch, local_rank, environment_taken, fds, failure);
    }
    awaited_place_keep(&worker->place, environment_taken, fds);
    text_list_clear(environment_taken);
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        attempt_logs_close_stream(batch->logs, fds[i]);
    }
    return FAILURE_NONE;
}

static enum failure_code prepare_worker(struct worker_batch *batch, struct attempt_logs *logs,
    int local_rank, struct failure *failure) {
    struct agent_workers *workers = batch->workers;
    struct text_list environment = {0};
    int fds[ATTEMPT_STREAM_COUNT] = {-1, -1};
    enum failure_code code = FAILURE_NONE;
    for (int i = 0; i < ATTEMPT_STREAM_COUNT && code == FAILURE_NONE; i++) {
        code = attempt_logs_open_stream(logs, local_rank, (enum attempt_stream)i, &fds[i], failure);
    }
    workers->items[local_rank].error_file = attempt_logs_error_file(logs, local_rank);
    if (code == FAILURE_NONE) {
        code = worker_start_environment(&workers->settings, workers->placement, local_rank,
            workers->items[local_rank].error_file, timer_file(workers), &environment, failure);
    }
    if (code == FAILURE_NONE) {
        return take_place(batch, local_rank, &environment, fds, failure);
    }
    text_list_clear(&environment);
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        attempt_logs_close_stream(logs, fds[i]);
    }
    return code;
}

static enum failure_code start_each(struct agent_workers *workers, struct attempt_logs *logs,
    int *out_local_rank, struct failure *failure) {
    struct worker_batch batch;
    enum failure_code code = FAILURE_NONE;
    worker_batch_init(&batch, workers, logs, workers->count);
    for (size_t rank = 0; rank < workers->count && code == FAILURE_NONE; rank++) {
        *out_local_rank = (int)rank;
        code = prepare_worker(&batch, logs, (int)rank, failure);
        if (code == FAILURE_NONE && (worker_batch_is_full(&batch) || rank + 1 == workers->count)) {
            code = worker_batch_start(&batch, out_local_rank, failure);
        }
    }
    worker_batch_clear(&batch);
    return code;
}

static enum failure_code start_all(struct agent_workers *workers, struct attempt_files *files,
    const char *reason, int *out_local_rank, struct failure *failure) {
    struct attempt_logs logs;
    enum failure_code code =
        attempt_logs_init(&logs, &workers->logs_settings, files, reason, failure);
    if (code == FAILURE_NONE) {
        code = start_each(workers, &logs, out_local_rank, failure);
    } else {
        *out_local_rank = files->failed_local_rank;
    }
    workers->has_started = true;
    workers->log_directory = files == NULL ? NULL : memory_duplicate_string(files->directory);
    attempt_logs_clear(&logs);
    return code;
}

/* What was kept for the place is the place's. */
static enum failure_code start_in_place(
    struct agent_workers *workers, int local_rank, struct failure *failure) {
    struct awaited_place *place = &workers->items[local_rank].place;
    struct worker_batch batch;
    worker_batch_init(&batch, workers, NULL, 1);
    enum failure_code code =
        worker_batch_add(&batch, local_rank, &place->environment, place->streams, failure);
    if (code == FAILURE_NONE) {
        code = worker_batch_start(&batch, &local_rank, failure);
    }
    worker_batch_clear(&batch);
    return code;
}

/* Standby workers that have not gone through their gates do not do so any more. */
static void await_no_longer(struct agent_workers *workers) {
    for (size_t i = 0; i < workers->count; i++) {
        struct agent_worker *worker = &workers->items[i];
        if (worker->place.is_awaited && !agent_standby_give_up(workers->settings.standby, (int)i)) {
            worker->pid = 0;
        }
        awaited_place_clear(&worker->place);
    }
    workers->is_starting = false;
}

static void fail_start(struct agent_workers *workers, int local_rank, const char *message) {
    const struct agent_workers_observer *observer = &workers->settings.observer;
    await_no_longer(workers);
    observer->start_failed(observer->context, local_rank, message);
    if (process_family_is_gone(workers->family)) {
        attempt_is_over(workers);
    }
}

static void end_start_when_settled(struct agent_workers *workers) {
    const struct agent_workers_observer *observer = &workers->settings.observer;
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->items[i].place.is_awaited) {
            return;
        }
    }
    workers->is_starting = false;
    observer->started(observer->context);
}

/* A standby worker has become a worker, or a process is started in its place. */
static void place_settled(void *context, int local_rank, bool has_gone_through) {
    struct agent_workers *workers = context;
    struct agent_worker *worker = &workers->items[local_rank];
    struct failure failure = {0};
    enum failure_code code = FAILURE_NONE;
    if (!has_gone_through) {
        worker->pid = 0;
        code = start_in_place(workers, local_rank, &failure);
    }
    awaited_place_clear(&worker->place);
    if (code != FAILURE_NONE) {
        fail_start(workers, local_rank, failure.message);
    } else {
        end_start_when_settled(workers);
    }
}

/* With files, or without any, for that reason. */
static void finish_start(
    struct agent_workers *workers, struct attempt_files *files, const char *reason) {
    struct failure failure = {0};
    int local_rank;
    workers->making = NULL;
    workers->is_starting = true;
    event_timer_stop(workers->impatience);
    if (start_all(workers, files, reason, &local_rank, &failure) == FAILURE_NONE) {
        end_start_when_settled(workers);
    } else {
        fail_start(workers, local_rank, failure.message);
    }
}

static void files_were_made(void *context, void *subject) {
    struct agent_workers *workers = context;
    struct attempt_files *files = subject;
    workers->has_timers = !files->is_timer_file_gone || workers->renew_timers(workers->timers);
    finish_start(workers, files, NULL);
}

static void disk_is_late(void *context) {
    struct agent_workers *workers = context;
    const struct agent_workers_settings *settings = &workers->settings;
    char *reason = text_format("the disk of %s does not answer within %d s",
        settings->preparation->logs.run_path != NULL ? settings->preparation->logs.run_path
                                                     : "the log files",
        DISK_PATIENCE_SECONDS);
    if (workers->has_started) {
        errands_drop(workers->errands, workers->making);
        finish_start(workers, NULL, reason);
    } else {
        log_warning(settings->log, "the workers wait for their log directory: %s", reason);
    }
    free(reason);
}

static void forget_attempt(struct agent_workers *workers) {
    for (size_t i = 0; i < workers->count; i++) {
        awaited_place_clear(&workers->items[i].place);
        free(workers->items[i].error_file);
        text_clear(&workers->items[i].evidence);
        worker_notes_clear(&workers->items[i].notes);
        worker_value_clear(&workers->items[i].value);
        workers->items[i] = (struct agent_worker){0};
    }
    free(workers->log_directory);
    workers->log_directory = NULL;
}

static void prepare_logs(struct agent_workers *workers) {
    const struct agent_workers_settings *settings = &workers->settings;
    const struct node_placement *placement = workers->placement;
    workers->logs_settings = (struct attempt_logs_settings){
        .config = settings->config,
        .preparation = settings->preparation,
        .log = settings->log,
        .log_thread = settings->log_thread,
        .attempt = {placement->attempt, placement->round},
        .base_rank = placement->ranks.base_rank,
        .is_first = !workers->has_started,
    };
}

void agent_workers_start(struct agent_workers *workers, const struct node_placement *placement) {
    struct failure failure = {0};
    forget_attempt(workers);
    worker_errors_begin(workers->errors);
    process_evidence_begin(workers->evidence);
    workers->is_attempt_open = true;
    workers->placement = placement;
    prepare_logs(workers);
    struct attempt_files *files = attempt_logs_plan(&workers->logs_settings);
    files->timer_file = memory_duplicate_string(workers->timer_file);
    const struct errand_task task = {attempt_files_make, attempt_files_free, files};
    const struct errand_answer answer = {files_were_made, workers};
    if (errands_send(workers->errands, &task, &answer, &workers->making, &failure) !=
        FAILURE_NONE) {
        fail_start(workers, 0, failure.message);
        return;
    }
    event_timer_set(workers->impatience,
        instant_after(event_loop_now(workers->loop), duration_from_seconds(DISK_PATIENCE_SECONDS)));
}

static void spare_exited(void *context, pid_t pid, const struct process_exit *how) {
    struct agent_workers *workers = context;
    agent_standby_spare_exited(workers->settings.standby, pid, how);
}

static void orphan_ended(void *context, const struct process_orphan *orphan) {
    const struct agent_workers *workers = context;
    const struct agent_workers_observer *observer = &workers->settings.observer;
    if (observer->orphan_ended != NULL) {
        observer->orphan_ended(observer->context, orphan);
    }
}

static enum failure_code start_spare(void *context, int local_rank,
    const struct text_list *environment, const int descriptors[4], struct process *out_process,
    struct failure *failure) {
    struct agent_workers *workers = context;
    return worker_start_process(
        &workers->settings, local_rank, environment, descriptors, out_process, failure);
}

static enum failure_code foresee_environment(
    void *context, int local_rank, struct text_list *out_environment, struct failure *failure) {
    const struct agent_workers *workers = context;
    return worker_start_foresee(&workers->settings, (int)workers->count, local_rank,
        timer_file(workers), out_environment, failure);
}

static enum failure_code start_probe(void *context, const struct text_list *environment,
    const int descriptors[4], struct process *out_process, struct failure *failure) {
    const struct agent_workers *workers = context;
    return worker_start_probe(&workers->settings, environment, descriptors, out_process, failure);
}

static enum failure_code open_parts(
    struct agent_workers *workers, struct event_loop *loop, struct failure *failure) {
    const struct agent_workers_settings *ours = &workers->settings;
    const struct process_family_events events = {
        worker_exited, attempt_is_over, spare_exited, workers, orphan_ended};
    struct text_list fingerprint = {0};
    agent_preparation_fingerprint(ours->preparation, &fingerprint);
    const struct process_family_marks marks = {ours->kin_limit, &fingerprint};
    enum failure_code code =
        process_family_new(loop, &events, &marks, ours->guardian, &workers->family, failure);
    text_list_clear(&fingerprint);
    if (code == FAILURE_NONE) {
        const struct agent_standby_starter starter = {workers->family, start_spare,
            foresee_environment, start_probe, place_settled, worker_ending, workers};
        agent_standby_attach(workers->settings.standby, &starter);
        code = errands_new(loop, &workers->errands, failure);
    }
    if (code == FAILURE_NONE) {
        struct worker_errors_settings settings = {
            .loop = loop, .errands = workers->errands, .worker_count = workers->count};
        workers->errors = worker_errors_new(&settings);
    }
    return code;
}

enum failure_code agent_workers_new(struct event_loop *loop,
    const struct agent_workers_settings *settings, struct agent_workers **out_workers,
    struct failure *failure) {
    struct agent_workers initial = {
        .settings = *settings,
        .loop = loop,
        .finished_logs = finished_logs_new(loop, settings->log_thread),
        .count = (size_t)settings->preparation->worker_count,
    };
    struct agent_workers *workers = memory_duplicate(&initial, sizeof initial);
    workers->items = memory_allocate(workers->count * sizeof *workers->items);
    /* A function runs in a copy of the agent, which only the thread of the agent's loop can make.
     */
    workers->crew = spawn_crew_new(settings->function != NULL ? 1 : settings->processors);
    workers->evidence = process_evidence_new();
    workers->impatience = event_timer_new(loop, disk_is_late, workers);
    enum failure_code code = open_parts(workers, loop, failure);
    if (code != FAILURE_NONE) {
        agent_workers_free(workers);
        return code;
    }
    *out_workers = workers;
    return FAILURE_NONE;
}

void agent_workers_free(struct agent_workers *workers) {
    if (workers == NULL) {
        return;
    }
    finished_logs_free(workers->finished_logs);
    process_family_free(workers->family);
    spawn_crew_free(workers->crew);
    worker_errors_free(workers->errors);
    event_timer_free(workers->impatience);
    errands_free(workers->errands);
    process_evidence_free(workers->evidence);
    forget_attempt(workers);
    free(workers->timer_file);
    free(workers->items);
    free(workers);
}

void agent_workers_set_timer_file(
    struct agent_workers *workers, const char *path, bool (*renew)(void *context), void *context) {
    free(workers->timer_file);
    workers->timer_file = memory_duplicate_string(path);
    workers->has_timers = true;
    workers->renew_timers = renew;
    workers->timers = context;
}

/* Whoever is to be ended does not start. */
static void end_start(struct agent_workers *workers) {
    if (workers->making != NULL) {
        errands_drop(workers->errands, workers->making);
        workers->making = NULL;
        event_timer_stop(workers->impatience);
        attempt_is_over(workers);
    } else if (workers->is_starting) {
        await_no_longer(workers);
        if (process_family_is_gone(workers->family)) {
            attempt_is_over(workers);
        }
    }
}

void agent_workers_leave_out(struct agent_workers *workers, pid_t pid) {
    process_family_leave_out(workers->family, pid);
}

void agent_workers_signal(struct agent_workers *workers, int signal) {
    end_start(workers);
    process_family_signal(workers->family, signal);
    for (size_t i = 0; i < workers->count; i++) {
        agent_standby_expect_end(workers->settings.standby, (int)i);
    }
}
