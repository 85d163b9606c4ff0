/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_workers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/standby/agent_standby.h"
#include "base/memory.h"
#include "core/standby/standby_preparation.h"
#include "core/telling/event_record.h"
#include "host/failure/death_evidence.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/files.h"

/* What is kept for the place of a worker while it is not known yet whether its standby worker goes
 * through its gate: the environment and the streams with which a process is started otherwise. */

/* A zeroed struct is a place that is not awaited. */
struct awaited_place {
    bool is_awaited;
    struct text_list environment;
    int streams[ATTEMPT_STREAM_COUNT]; /* -1: the agent's own */
};

/* The place is awaited from now on. Copies the environment and the descriptors. */
static void awaited_place_keep(struct awaited_place *place, const struct text_list *environment,
    const int streams[ATTEMPT_STREAM_COUNT]) {
    place->is_awaited = true;
    text_list_add_all(&place->environment, environment);
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        place->streams[i] = streams[i] == -1 ? -1 : fcntl(streams[i], F_DUPFD_CLOEXEC, 0);
    }
}

/* It is no longer awaited. */
static void awaited_place_clear(struct awaited_place *place) {
    for (int i = 0; place->is_awaited && i < ATTEMPT_STREAM_COUNT; i++) {
        if (place->streams[i] != -1) {
            close(place->streams[i]);
        }
    }
    text_list_clear(&place->environment);
    *place = (struct awaited_place){0};
}

/* Worker notes. */

/* What was noted about a worker while it ran, for the account of its end: who of ours has signalled
 * it, and what it was doing when it was decided to kill it. */

/* A zeroed struct has no notes. */
struct worker_notes {
    int signal;         /* sent by somebody of ours while the worker was to run; 0: none … */
    char *signalled_by; /* "by the watchdog: timer 'x' expired" */
    char *hang;         /* "sleeping in read; see …", or NULL */
};

static void worker_notes_clear(struct worker_notes *notes) {
    free(notes->signalled_by);
    free(notes->hang);
    *notes = (struct worker_notes){0};
}

/* Each takes the place of an earlier one. The words are copied. */
static void worker_notes_set_signal(struct worker_notes *notes, int signal, const char *by_whom) {
    notes->signal = signal;
    free(notes->signalled_by);
    notes->signalled_by = memory_duplicate_string(by_whom);
}

static void worker_notes_set_hang(struct worker_notes *notes, const char *words) {
    free(notes->hang);
    notes->hang = memory_duplicate_string(words);
}

static void add_signal(
    const struct worker_notes *notes, const struct process_exit *how, struct text *evidence) {
    bool is_its_end = how->is_signal && how->value == notes->signal;
    struct text kernel = *evidence;
    *evidence = (struct text){0};
    text_append_format(
        evidence, "%s %s", is_its_end ? "killed" : "had been signalled", notes->signalled_by);
    if (kernel.length > 0) {
        text_append_format(evidence, "; %s", text_string(&kernel));
    }
    text_clear(&kernel);
}

/* The worker has ended like this. Puts the notes around what the kernel has told so far. */
static void worker_notes_add(
    const struct worker_notes *notes, const struct process_exit *how, struct text *evidence) {
    if (notes->signal != 0) {
        add_signal(notes, how, evidence);
    }
    if (notes->hang != NULL) {
        text_append_format(
            evidence, "%sbefore that it was %s", evidence->length == 0 ? "" : "; ", notes->hang);
    }
}

/* Worker value. */

/* What the function of a worker gives back: a file in memory that the worker writes before it ends,
 * and the agent reads when it has ended well. Nobody waits for anybody, and a worker that is killed
 * meanwhile has given nothing back. */

/* A zeroed struct has no file. */
struct worker_value {
    int fd; /* 0: none, since standard input is open in the agent */
};

/* Makes the file; its descriptor stays the value's. */
static enum failure_code worker_value_open(
    struct worker_value *value, int *out_fd, struct failure *failure) {
    enum failure_code code = memory_file_new("muster-return-value", false, &value->fd, failure);
    if (code == FAILURE_NONE) {
        *out_fd = value->fd;
    }
    return code;
}

enum failure_code worker_value_write(int fd, struct slice bytes, struct failure *failure) {
    if (bytes.length > RUN_RETURN_VALUE_MAXIMUM) {
        return failure_set(failure, FAILURE_LIMIT,
            "the function gives %zu bytes back; up to %zu are possible", bytes.length,
            RUN_RETURN_VALUE_MAXIMUM);
    }
    return memory_file_write(fd, bytes, failure);
}

/* Appends what was written: nothing where there is no file, or more in it than there may be. */
static void worker_value_read(const struct worker_value *value, struct bytes *out_bytes) {
    struct bytes bytes = {0};
    if (value->fd > 0) {
        memory_file_read(value->fd, 0, RUN_RETURN_VALUE_MAXIMUM + 1, &bytes);
    }
    if (bytes.length <= RUN_RETURN_VALUE_MAXIMUM) {
        (void)!bytes_append(out_bytes, bytes.data, bytes.length);
    }
    bytes_clear(&bytes);
}

static void worker_value_clear(struct worker_value *value) {
    if (value->fd > 0) {
        close(value->fd);
    }
    *value = (struct worker_value){0};
}

/* Finished logs. */

/* Whether the log files of workers that have ended have all that these wrote. The log thread brings
 * it there, and a dead disk may hold that thread up. */

struct finished_logs {
    struct event_loop *loop;
    struct log_thread *thread;
    int unfinished_count;            /* of attempts */
    void (*complete)(void *context); /* NULL: nobody is to be told */
    void *context;
    bool is_awaited;
    bool is_let_go; /* and freed with the last answer of the thread */
};

/* `thread` is borrowed; NULL: no stream passes through it. The caller frees the result. */
static struct finished_logs *finished_logs_new(struct event_loop *loop, struct log_thread *thread) {
    const struct finished_logs initial = {.loop = loop, .thread = thread};
    return memory_duplicate(&initial, sizeof initial);
}

static void attempt_finished(void *context) {
    struct finished_logs *logs = context;
    logs->unfinished_count--;
    if (logs->unfinished_count > 0) {
        return;
    }
    if (logs->is_let_go) {
        free(logs);
        return;
    }
    if (logs->is_awaited) {
        event_loop_stop(logs->loop);
    }
    if (logs->complete != NULL) {
        void (*complete)(void *context) = logs->complete;
        logs->complete = NULL;
        complete(logs->context);
    }
}

/* Calls back once, when the files of the attempt that is not over yet are complete. NULL: no
 * longer. */
static void finished_logs_notify(
    struct finished_logs *logs, void (*complete)(void *context), void *context) {
    logs->complete = complete;
    logs->context = context;
}

/* The thread may still have to answer, and then the memory lives until it has: for good, where a
 * disk never lets it. Accepts NULL. */
static void finished_logs_free(struct finished_logs *logs) {
    if (logs == NULL) {
        return;
    }
    if (logs->unfinished_count > 0) {
        logs->is_let_go = true;
    } else {
        free(logs);
    }
}

/* The workers of an attempt have ended: see log_thread_finish_attempt. */
static void finished_logs_ask(struct finished_logs *logs) {
    if (logs->thread != NULL) {
        logs->unfinished_count++;
        log_thread_finish_attempt(logs->thread, attempt_finished, logs);
    }
}

static void stop_loop(void *context) {
    event_loop_stop(context);
}

/* Runs the loop until the files of all attempts that have ended are complete, for `patience` at
 * most; whoever wants to wait no longer stops the loop. Returns whether they are complete. */
static bool finished_logs_await(struct finished_logs *logs, struct duration patience) {
    if (logs->unfinished_count > 0) {
        struct event_timer *end = event_timer_new(logs->loop, stop_loop, logs->loop);
        event_timer_set(end, instant_after(event_loop_now(logs->loop), patience));
        logs->is_awaited = true;
        event_loop_run(logs->loop);
        logs->is_awaited = false;
        event_timer_free(end);
    }
    return logs->unfinished_count == 0;
}

/* Workers state. */

struct agent_worker {
    pid_t pid;      /* 0: not started */
    bool is_ending; /* it was told how it ends, before it ended */
    bool has_exited;
    char *error_file;
    struct text evidence;
    struct worker_notes notes;
    struct worker_value value;
    struct awaited_place place; /* awaited: its process is a standby worker at its gate */
};

struct agent_workers {
    const struct agent_workers_settings settings;
    struct process_family *family;
    struct spawn_crew *crew;
    struct process_evidence *evidence;
    struct blocking_pool *pool;
    struct worker_errors *errors;
    struct event_loop *loop;
    struct event_timer *impatience;             /* of a start */
    struct attempt_logs_settings logs_settings; /* of the last start */
    const struct node_placement *placement;     /* the same */
    struct blocking_call *making; /* its files are being made; NULL: no start is under way */
    struct agent_worker *items;   /* by local rank */
    size_t count;
    struct attempt_own_files *own; /* by local rank */
    char *log_directory;           /* of the attempt; NULL: none */
    char *timer_file;              /* for all workers; NULL: whatever they inherit */
    bool (*renew_timers)(void *context);
    void *timers;    /* its context */
    bool has_timers; /* the file is there */
    struct finished_logs *finished_logs;
    bool has_started;     /* ever */
    bool is_attempt_open; /* started, and not yet all gone */
    bool is_starting;     /* standby workers are awaited, or will be */
};

/* Worker start. */

/* The start of one process that runs the program of a worker: its environment, its command line,
 * its CPUs and limits. What becomes of the process is agent_workers'. */

/* The environment of a worker; the caller clears it. `error_file` and `timer_file` may be NULL. */
static enum failure_code worker_start_environment(const struct agent_workers_settings *settings,
    const struct node_placement *placement, int local_rank, const char *error_file,
    const char *timer_file, struct text_list *out_environment, struct failure *failure) {
    enum failure_code code = worker_environment_build(settings->config, placement, local_rank,
        error_file, settings->environment, out_environment);
    if (code != FAILURE_NONE) {
        return failure_set(failure, code,
            "--virtual-local-rank: CUDA_VISIBLE_DEVICES=%s names no device for local rank %d",
            text_list_variable(settings->environment, "CUDA_VISIBLE_DEVICES"), local_rank);
    }
    standby_environment_undress(out_environment);
    worker_progress_dress(settings->progress, out_environment);
    if (timer_file != NULL) {
        text_list_set_variable(out_environment, "TORCHELASTIC_TIMER_FILE", timer_file);
    }
    agent_scratch_set_variables(settings->scratch, out_environment);
    if (error_file == NULL) {
        char *mark = text_format("%s%d", settings->preparation->worker_mark, local_rank);
        text_list_set_variable(out_environment, WORKER_MARK_VARIABLE, mark);
        free(mark);
    }
    return FAILURE_NONE;
}

/* What the process is started with. `descriptors` are standard input, output and error, and the
 * fourth; -1: the agent's own, and no fourth. All stay the caller's, and so do the arguments, which
 * are empty before; the request borrows them. */
static void worker_start_request(const struct agent_workers_settings *settings, int local_rank,
    const struct text_list *environment, const int descriptors[4], struct text_list *out_arguments,
    struct process_request *out_request) {
    const struct cpu_plan *cpus = &settings->preparation->cpus;
    worker_command_build(
        settings->config, settings->preparation->python, local_rank, out_arguments);
    process_request_init(out_request, out_arguments, environment);
    out_request->stdin_fd = descriptors[0];
    out_request->stdout_fd = descriptors[1];
    out_request->stderr_fd = descriptors[2];
    out_request->extra_fd = descriptors[3];
    out_request->cpus = cpus->count > 0 ? &cpus->sets[local_rank] : NULL;
    out_request->descriptor_limit = settings->descriptor_limit;
    out_request->ignored_signals = settings->ignored_signals;
    out_request->kin_limit = settings->kin_limit;
    out_request->function = settings->function;
    out_request->guardian_fd = guardian_descriptor(settings->guardian);
}

/* Starts it. */
static enum failure_code worker_start_process(const struct agent_workers_settings *settings,
    int local_rank, const struct text_list *environment, const int descriptors[4],
    struct process *out_process, struct failure *failure) {
    struct text_list arguments = {0};
    struct process_request request;
    worker_start_request(settings, local_rank, environment, descriptors, &arguments, &request);
    enum failure_code code = process_spawn(&request, out_process, failure);
    text_list_clear(&arguments);
    return code;
}

/* The environment that a worker will have, as far as it is known before the node has a place in the
 * job; the caller clears it. */
static enum failure_code worker_start_foresee(const struct agent_workers_settings *settings,
    int worker_count, int local_rank, const char *timer_file, struct text_list *out_environment,
    struct failure *failure) {
    const struct node_placement placement = {
        .run_id = settings->preparation->run_id,
        .master_address = "",
        .local_world_size = worker_count,
    };
    return worker_start_environment(
        settings, &placement, local_rank, NULL, timer_file, out_environment, failure);
}

/* Starts the interpreter of the workers as it is started for them, but with an empty program. */
static enum failure_code worker_start_probe(const struct agent_workers_settings *settings,
    const struct text_list *environment, const int descriptors[4], struct process *out_process,
    struct failure *failure) {
    struct agent_workers_settings probing = *settings;
    struct launch_config config = *settings->config;
    char nothing[] = "/dev/null";
    config.entry = LAUNCH_ENTRY_SCRIPT;
    config.script = nothing;
    config.script_arguments = (struct text_list){0};
    probing.config = &config;
    return worker_start_process(&probing, 0, environment, descriptors, out_process, failure);
}

/* Worker batch. */

struct worker_batch_item {
    int local_rank;
    int streams[ATTEMPT_STREAM_COUNT];
    struct text_list environment;
    struct text_list arguments;
};

struct worker_batch {
    struct agent_workers *workers;
    const struct attempt_logs *logs; /* which gave the streams; NULL: they stay the caller's */
    struct worker_batch_item *items;
    struct spawn_task *tasks;
    size_t count;
    size_t capacity;
};

/* There is room for `wanted` workers, but not for more than WORKER_BATCH_MAXIMUM. */
static void worker_batch_init(struct worker_batch *batch, struct agent_workers *workers,
    const struct attempt_logs *logs_or_null, size_t wanted) {
    size_t capacity = wanted < WORKER_BATCH_MAXIMUM ? wanted : WORKER_BATCH_MAXIMUM;
    *batch = (struct worker_batch){.workers = workers, .logs = logs_or_null, .capacity = capacity};
    batch->items = memory_allocate(capacity * sizeof *batch->items);
    batch->tasks = memory_allocate(capacity * sizeof *batch->tasks);
}

static void empty(struct worker_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        text_list_clear(&batch->items[i].environment);
        text_list_clear(&batch->items[i].arguments);
        for (int j = 0; batch->logs != NULL && j < ATTEMPT_STREAM_COUNT; j++) {
            attempt_logs_close_stream(batch->logs, batch->items[i].streams[j]);
        }
    }
    batch->count = 0;
}

static void worker_batch_clear(struct worker_batch *batch) {
    empty(batch);
    free(batch->items);
    free(batch->tasks);
}

static bool worker_batch_is_full(const struct worker_batch *batch) {
    return batch->count == batch->capacity;
}

/* Adds a worker, for which there must be room. Its environment is dressed. Its streams are those of
 * the batch from now on, also after a failure; but see `logs`. */
static enum failure_code worker_batch_add(struct worker_batch *batch, int local_rank,
    struct text_list *environment_taken, const int streams[ATTEMPT_STREAM_COUNT],
    struct failure *failure) {
    struct agent_workers *workers = batch->workers;
    const struct agent_workers_settings *settings = &workers->settings;
    struct worker_batch_item *item = &batch->items[batch->count];
    struct spawn_task *task = &batch->tasks[batch->count++];
    *task = (struct spawn_task){0};
    *item = (struct worker_batch_item){.local_rank = local_rank,
        .streams = {streams[ATTEMPT_STDOUT], streams[ATTEMPT_STDERR]},
        .environment = *environment_taken};
    *environment_taken = (struct text_list){0};
    int further = agent_standby_dress(settings->standby, local_rank, &item->environment);
    if (settings->function != NULL) {
        enum failure_code code =
            worker_value_open(&workers->items[local_rank].value, &further, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    if (settings->function == NULL) {
        further = worker_progress_descriptor(settings->progress, local_rank, further);
    }
    const int descriptors[] = {-1, streams[ATTEMPT_STDOUT], streams[ATTEMPT_STDERR], further};
    worker_start_request(
        settings, local_rank, &item->environment, descriptors, &item->arguments, &task->request);
    return FAILURE_NONE;
}

static void note_progress(struct agent_workers *workers, int local_rank, pid_t pid) {
    worker_progress_note_worker(workers->settings.progress, local_rank, pid,
        agent_standby_record(workers->settings.standby, local_rank));
}

static void keep_worker(
    struct agent_workers *workers, int local_rank, const struct process *process) {
    workers->items[local_rank].pid = process->pid;
    agent_standby_note_worker(workers->settings.standby, local_rank, process->pid);
    note_progress(workers, local_rank, process->pid);
    process_family_add(workers->family, process, local_rank);
}

/* Starts all and empties the batch. Who has been started is a worker, also where another could not
 * be. The failure is that of the first of them in the order of the batch. */
static enum failure_code worker_batch_start(
    struct worker_batch *batch, int *out_local_rank, struct failure *failure) {
    enum failure_code code = FAILURE_NONE;
    spawn_crew_start(batch->workers->crew, batch->tasks, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        const struct spawn_task *task = &batch->tasks[i];
        int local_rank = batch->items[i].local_rank;
        if (task->code == FAILURE_NONE) {
            keep_worker(batch->workers, local_rank, &task->process);
        } else if (code == FAILURE_NONE) {
            code = task->code;
            *failure = task->failure;
            *out_local_rank = local_rank;
        }
    }
    empty(batch);
    return code;
}

/* Workers account. */

/* It is known how the worker ends: collects what else is known of that. What is learned when it has
 * ended takes the place of what was learned before, but its error file is read once. */
static void agent_workers_learn_end(
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

static const char *own_file(
    const struct agent_workers *workers, int local_rank, enum log_tree_file file) {
    const struct attempt_own_files *own = local_rank < 0 ? NULL : &workers->own[local_rank];
    return own == NULL               ? NULL
           : file == LOG_TREE_STDOUT ? own->paths[ATTEMPT_STDOUT]
           : file == LOG_TREE_STDERR ? own->paths[ATTEMPT_STDERR]
           : file == LOG_TREE_ERROR  ? own->error_file
                                     : NULL;
}

char *agent_workers_log_file(
    const struct agent_workers *workers, int local_rank, enum log_tree_file file) {
    const char *own = own_file(workers, local_rank, file);
    if (own != NULL) {
        return memory_duplicate_string(own);
    }
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

/* Workers. */

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
    note_progress(workers, local_rank, worker->pid);
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
        blocking_pool_drop(workers->pool, workers->making);
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
        .own = workers->own,
        .base_rank = placement->ranks.base_rank,
        .is_first = !workers->has_started,
    };
}

struct attempt_own_files *agent_workers_own_files(struct agent_workers *workers) {
    for (size_t i = 0; i < workers->count; i++) {
        attempt_own_files_clear(&workers->own[i]);
    }
    return workers->own;
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
    const struct blocking_task task = {attempt_files_make, attempt_files_free, files};
    const struct blocking_answer answer = {files_were_made, workers};
    if (blocking_pool_send(workers->pool, &task, &answer, &workers->making, &failure) !=
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
        code = blocking_pool_new(loop, &workers->pool, failure);
    }
    if (code == FAILURE_NONE) {
        struct worker_errors_settings settings = {
            .loop = loop, .pool = workers->pool, .worker_count = workers->count};
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
    workers->own = memory_allocate(workers->count * sizeof *workers->own);
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
    blocking_pool_free(workers->pool);
    process_evidence_free(workers->evidence);
    forget_attempt(workers);
    (void)agent_workers_own_files(workers);
    free(workers->timer_file);
    free(workers->own);
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
        blocking_pool_drop(workers->pool, workers->making);
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
