/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/clock.h"
#include "host/loop/descriptors.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"
#include "host/process/process_table.h"

/* The most bytes read of a script's first line. Linux itself reads 256. */
#define FIRST_LINE_SIZE 257

static const char *first_existing(const struct text_list *candidates) {
    for (size_t i = 0; i < candidates->count; i++) {
        if (access(candidates->items[i], F_OK) == 0) {
            return candidates->items[i];
        }
    }
    return NULL;
}

/* Copies the interpreter that the script names ("#!/bin/sh -e" -> "/bin/sh"); false when the file
 * is no script. */
static bool read_interpreter(const char *path, char interpreter[FIRST_LINE_SIZE]) {
    char line[FIRST_LINE_SIZE] = {0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t length = read(fd, line, sizeof line - 1);
    close(fd);
    if (length < 2 || line[0] != '#' || line[1] != '!') {
        return false;
    }
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\r\n")] = '\0';
    memcpy(interpreter, name, strlen(name) + 1);
    return true;
}

static void explain_missing(
    const char *program, const struct text_list *candidates, struct text *out) {
    const char *path = first_existing(candidates);
    char interpreter[FIRST_LINE_SIZE];
    if (path == NULL) {
        if (strchr(program, '/') == NULL) {
            text_append(out, " (it is not on the worker's PATH)");
        }
    } else if (read_interpreter(path, interpreter)) {
        text_append_format(
            out, " (the interpreter '%s' named in its first line does not exist)", interpreter);
    } else {
        text_append(out, " (the file exists, but not the dynamic loader it asks for)");
    }
}

static void explain_denied(const struct text_list *candidates, struct text *out) {
    const char *path = first_existing(candidates);
    struct stat file;
    if (path == NULL || stat(path, &file) != 0) {
        return;
    }
    if (S_ISDIR(file.st_mode)) {
        text_append(out, " (it is a directory)");
    } else if ((file.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) {
        text_append(out, " (the file is not marked executable, see chmod +x)");
    }
}

/* Appends, in parentheses, what the error means for a program that does not start. */
static void explain_execution(
    int system_error, const char *program, const struct text_list *candidates, struct text *out) {
    switch (system_error) {
    case ENOENT:
        explain_missing(program, candidates, out);
        break;
    case EACCES:
        explain_denied(candidates, out);
        break;
    case ENOEXEC:
        text_append(
            out, " (neither a program for this machine nor a script that begins with '#!')");
        break;
    case E2BIG:
        text_append(out, " (arguments and environment together are too large)");
        break;
    case ETXTBSY:
        text_append(out, " (the file is open for writing)");
        break;
    default:
        break;
    }
}

static const char *stage_words(enum spawn_stage stage) {
    switch (stage) {
    case SPAWN_STAGE_SESSION:
        return "cannot give the process a session of its own";
    case SPAWN_STAGE_DEATH_SIGNAL:
        return "cannot tie the process to the agent's life";
    case SPAWN_STAGE_DESCRIPTORS:
        return "cannot redirect the process' output";
    case SPAWN_STAGE_CPUS:
        return "cannot bind the process to its CPUs";
    case SPAWN_STAGE_EXECUTE:
        break;
    }
    return "cannot execute";
}

static enum failure_code set_message(
    struct failure *failure, int system_error, const struct text *message) {
    failure_set(failure, FAILURE_SYSTEM, "%s", text_string(message));
    if (failure != NULL) {
        failure->system_error = system_error;
    }
    return FAILURE_SYSTEM;
}

enum failure_code spawn_failure_set(struct failure *failure, const struct spawn_report *report,
    const char *program, const struct text_list *candidates) {
    struct text message = {0};
    text_append(&message, stage_words(report->stage));
    if (report->stage == SPAWN_STAGE_EXECUTE) {
        text_append_format(&message, " '%s'", program);
    }
    text_append_format(&message, ": %s", failure_system_words(report->system_error));
    if (report->stage == SPAWN_STAGE_EXECUTE) {
        explain_execution(report->system_error, program, candidates, &message);
    }
    set_message(failure, report->system_error, &message);
    text_clear(&message);
    return FAILURE_SYSTEM;
}

enum failure_code spawn_failure_set_early(struct failure *failure, int system_error) {
    struct text message = {0};
    text_append_format(&message, "cannot start a process: %s", failure_system_words(system_error));
    if (system_error == EAGAIN) {
        text_append(
            &message, " (limit on processes, see ulimit -u and the pids.max of the control group)");
    } else if (system_error == EMFILE) {
        text_append(&message, " (limit on open files, see ulimit -n)");
    }
    set_message(failure, system_error, &message);
    text_clear(&message);
    return FAILURE_SYSTEM;
}

/* Spawn. */

#define DEFAULT_PATH "/bin:/usr/bin"

/* The exit status of a child that did not reach exec. It is not used, because the child's report
 * counts. */
#define CHILD_FAILED 127

/* So many threads of the agent open something at one moment at most. */
#define STRAYS_MAXIMUM 64

/* Where the child finds the fourth descriptor. */
#define EXTRA_FILENO 3

void process_request_init(struct process_request *request, const struct text_list *arguments,
    const struct text_list *environment) {
    *request = (struct process_request){
        .arguments = arguments,
        .environment = environment,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
        .extra_fd = -1,
        .descriptor_limit = -1,
        .guardian_fd = -1,
    };
}

/* Everything the child needs, prepared before the fork. The child shares the agent's memory until
 * exec, and another thread may hold the allocator's lock. */
struct spawn_plan {
    const struct process_request *request;
    struct text_list candidates; /* paths to try, in order */
    struct number_list open;     /* where a function is run: the agent's descriptors */
    int report_fd;               /* close-on-exec: end of file means that exec succeeded */
    int guardian_fd;             /* on which the child announces itself, or -1 */
    pid_t agent;
};

/* As execvp: a name with a slash is a path; other names are looked up in the PATH, where an empty
 * item means the working directory. */
static void list_candidates(
    const struct process_request *request, struct text_list *out_candidates) {
    const char *program = request->arguments->items[0];
    if (strchr(program, '/') != NULL || *program == '\0') {
        text_list_add(out_candidates, program);
        return;
    }
    const char *path = text_list_variable(request->environment, "PATH");
    if (path == NULL) {
        path = DEFAULT_PATH;
    }
    for (;;) {
        size_t length = strcspn(path, ":");
        text_list_add_taken(out_candidates,
            text_format("%.*s%s%s", (int)length, path, length == 0 ? "./" : "/", program));
        if (path[length] == '\0') {
            break;
        }
        path += length + 1;
    }
}

static _Noreturn void fail_child(
    const struct spawn_plan *plan, enum spawn_stage stage, int system_error) {
    struct spawn_report report = {.stage = stage, .system_error = system_error};
    guardian_withdraw_self(plan->guardian_fd);
    ssize_t written = write(plan->report_fd, &report, sizeof report);
    (void)written; /* smaller than PIPE_BUF and the pipe is empty: it is written whole, or the
                      reader is gone */
    _exit(CHILD_FAILED);
}

/* The agent may have died before prctl took effect. Then the child has another parent. */
static void tie_to_agent(const struct spawn_plan *plan) {
    if (plan->request->outlives_agent) {
        return;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        fail_child(plan, SPAWN_STAGE_DEATH_SIGNAL, errno);
    }
    if (getppid() != plan->agent) {
        _exit(CHILD_FAILED);
    }
}

/* A function inherits what the program has open, maybe under this number. */
static int extra_of_program(const struct process_request *request) {
    return request->function == NULL ? request->extra_fd : -1;
}

static void redirect_streams(const struct spawn_plan *plan) {
    int stdout_fd = plan->request->stdout_fd;
    int stderr_fd = plan->request->stderr_fd;
    int extra_fd = extra_of_program(plan->request);
    if (stdout_fd != -1 && stderr_fd == STDOUT_FILENO) {
        stderr_fd = fcntl(stderr_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (stderr_fd == -1) {
            fail_child(plan, SPAWN_STAGE_DESCRIPTORS, errno);
        }
    }
    if ((plan->request->stdin_fd != -1 && dup2(plan->request->stdin_fd, STDIN_FILENO) == -1) ||
        (stdout_fd != -1 && dup2(stdout_fd, STDOUT_FILENO) == -1) ||
        (stderr_fd != -1 && dup2(stderr_fd, STDERR_FILENO) == -1)) {
        fail_child(plan, SPAWN_STAGE_DESCRIPTORS, errno);
    }
    inherited_descriptors_end_at_exec(STDERR_FILENO + 1);
    if (extra_fd == EXTRA_FILENO ? fcntl(extra_fd, F_SETFD, 0) == -1
                                 : extra_fd != -1 && dup2(extra_fd, EXTRA_FILENO) == -1) {
        fail_child(plan, SPAWN_STAGE_DESCRIPTORS, errno);
    }
}

static void bind_to_cpus(const struct spawn_plan *plan) {
    const struct cpu_set_bits *cpus = plan->request->cpus;
    if (cpus != NULL && sched_setaffinity(0, sizeof cpus->words, (const void *)cpus->words) != 0) {
        fail_child(plan, SPAWN_STAGE_CPUS, errno);
    }
}

/* exec resets handlers, but it keeps ignored signals and the signal mask. */
static void reset_signals(uint64_t ignored) {
    for (int signal = 1; signal < NSIG; signal++) {
        bool is_ignored = (ignored & signal_watch_bit(signal)) != 0;
        struct sigaction action = {.sa_handler = is_ignored ? SIG_IGN : SIG_DFL};
        sigaction(signal, &action, NULL); /* fails for a few signals that cannot be changed */
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Returns the errno to report when no candidate could be executed. */
static int execute_first(const struct spawn_plan *plan) {
    bool was_denied = false;
    for (size_t i = 0; i < plan->candidates.count; i++) {
        execve(plan->candidates.items[i], plan->request->arguments->items,
            plan->request->environment->items);
        if (errno == EACCES) {
            was_denied = true; /* a later directory of the PATH may have an executable one */
        } else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV &&
                   errno != ETIMEDOUT) {
            return errno;
        }
    }
    return was_denied ? EACCES : errno;
}

/* A function in the place of a program. */

static bool note_open(void *context, int number) {
    struct number_list *list = context;
    list->items =
        memory_reserve(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = number;
    return true;
}

static void list_open_descriptors(struct number_list *out_list) {
    size_t count = 0;
    (void)number_directory_each("/proc/self/fd", note_open, out_list);
    for (size_t i = 0; i < out_list->count; i++) {
        if (fcntl(out_list->items[i], F_GETFD) != -1) { /* else it was the listing's own */
            out_list->items[count++] = out_list->items[i];
        }
    }
    out_list->count = count;
}

static bool has_number(const struct number_list *list, int number) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == number) {
            return true;
        }
    }
    return false;
}

/* libuv opens descriptors of its own in each forked process. They are those of the beginning, or
 * have numbers that were free in the agent. */
enum failure_code process_function_keep(
    struct process_function *function, int left_out, int another, struct failure *failure) {
    struct event_loop *loop;
    enum failure_code code = event_loop_new(&loop, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    (void)event_loop_free(loop); /* true: nothing is in it */
    list_open_descriptors(&function->kept);
    for (size_t i = 0; i < function->kept.count; i++) {
        int number = function->kept.items[i];
        if (number == left_out || number == another) {
            function->kept.items[i] = -1;
        }
    }
    return FAILURE_NONE;
}

/* The number that a program would have expected, or the next one that is free. */
static int move_down(int fd) {
    int lower = fd == -1 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, EXTRA_FILENO);
    if (lower != -1) {
        close(fd);
    }
    return lower == -1 ? fd : lower;
}

/* What is open in the child and is to be closed, as far as it is known. */
struct strays {
    const struct process_function *function;
    int extra_fd;
    int numbers[STRAYS_MAXIMUM];
    size_t count;
};

static bool note_stray(void *context, int number) {
    struct strays *strays = context;
    if (number > STDERR_FILENO && number != strays->extra_fd &&
        !has_number(&strays->function->kept, number) && strays->count < STRAYS_MAXIMUM) {
        strays->numbers[strays->count++] = number;
    }
    return true;
}

/* Another thread of the agent may have opened something between the listing and the fork. libuv has
 * opened pipes since, which stay. */
static void close_strays(const struct process_function *function, int extra_fd) {
    struct strays strays = {.function = function, .extra_fd = extra_fd};
    (void)number_directory_each("/proc/self/fd", note_stray, &strays);
    for (size_t i = 0; i < strays.count; i++) {
        struct stat found;
        if (fstat(strays.numbers[i], &found) == 0 && !S_ISFIFO(found.st_mode)) {
            close(strays.numbers[i]);
        }
    }
}

/* The agent's descriptors end here as they would at exec. What the program had written into its own
 * streams and not flushed is not this process's to write. */
static _Noreturn void run_function(const struct spawn_plan *plan) {
    const struct process_function *function = plan->request->function;
    int extra_fd = plan->request->extra_fd;
    for (size_t i = 0; i < plan->open.count; i++) {
        int number = plan->open.items[i];
        if (number > STDERR_FILENO && number != extra_fd && !has_number(&function->kept, number)) {
            close(number);
        }
    }
    close_strays(function, extra_fd);
    environ = plan->request->environment->items;
    __fpurge(stdout);
    __fpurge(stderr);
    int status = function->run(function->context, move_down(extra_fd));
    fflush(stdout);
    fflush(stderr);
    _exit(status);
}

/* From here to exec or to the function, only async-signal-safe calls are allowed, and no change to
 * memory other than this stack. */
static _Noreturn void run_child(const struct spawn_plan *plan) {
    signal(SIGPIPE, SIG_IGN); /* if the guardian is gone, the write must not kill the worker */
    if (setsid() == -1) {
        fail_child(plan, SPAWN_STAGE_SESSION, errno);
    }
    guardian_announce_self(plan->guardian_fd);
    tie_to_agent(plan);
    redirect_streams(plan);
    bind_to_cpus(plan);
    descriptor_limit_restore(plan->request->descriptor_limit);
    process_kin_take_limit(plan->request->kin_limit);
    reset_signals(plan->request->ignored_signals);
    if (plan->request->function != NULL) {
        run_function(plan);
    }
    fail_child(plan, SPAWN_STAGE_EXECUTE, execute_first(plan));
}

/* Uses vfork, because its cost does not grow with the agent's memory, and because the calling
 * thread needs the outcome anyway. Nothing relies on the shared memory, so this also works under
 * tools that turn vfork into fork. A function needs memory of its own. Signals are blocked, since a
 * handler in the child would run on the agent's memory. */
static pid_t start_child(const struct spawn_plan *plan) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = plan->request->function != NULL ? fork() : vfork();
    if (pid == 0) {
        run_child(plan);
    }
    int system_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = system_error;
    return pid;
}

/* Returns false when the pipe ended without a report, which means that the program runs. */
static bool receive_report(int fd, struct spawn_report *out_report) {
    struct spawn_report report;
    ssize_t length;
    do {
        length = read(fd, &report, sizeof report);
    } while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof report) {
        return false;
    }
    *out_report = report;
    return true;
}

static void reap_failed(pid_t pid) {
    while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
    }
}

static enum failure_code start_planned(struct spawn_plan *plan, int report_reader,
    struct process *out_process, struct failure *failure) {
    pid_t pid = start_child(plan);
    int system_error = errno;
    close(plan->report_fd); /* now only the child holds the writing end */
    if (pid == -1) {
        return spawn_failure_set_early(failure, system_error);
    }
    struct spawn_report report;
    if (receive_report(report_reader, &report)) {
        reap_failed(pid);
        return spawn_failure_set(
            failure, &report, plan->request->arguments->items[0], &plan->candidates);
    }
    *out_process = (struct process){.pid = pid, .pidfd = pidfd_open_process(pid)};
    return FAILURE_NONE;
}

/* The child puts the fourth descriptor in this place before it has no more use for these. */
static enum failure_code keep_clear(int *fd, bool *out_is_copy, struct failure *failure) {
    *out_is_copy = *fd == EXTRA_FILENO;
    if (*out_is_copy) {
        *fd = fcntl(EXTRA_FILENO, F_DUPFD_CLOEXEC, EXTRA_FILENO + 1);
    }
    return *out_is_copy && *fd == -1 ? spawn_failure_set_early(failure, errno) : FAILURE_NONE;
}

static enum failure_code spawn_with_report(const struct process_request *request,
    int report_ends[2], struct process *out_process, struct failure *failure) {
    struct spawn_plan plan = {.request = request,
        .report_fd = report_ends[1],
        .guardian_fd = request->guardian_fd,
        .agent = getpid()};
    bool has_guardian_copy = false;
    bool has_report_copy = false;
    enum failure_code code = FAILURE_NONE;
    if (extra_of_program(request) != -1) {
        code = keep_clear(&plan.guardian_fd, &has_guardian_copy, failure);
    }
    if (code == FAILURE_NONE && extra_of_program(request) != -1) {
        code = keep_clear(&plan.report_fd, &has_report_copy, failure);
    }
    if (has_report_copy || code != FAILURE_NONE) {
        close(report_ends[1]);
    }
    if (code == FAILURE_NONE) {
        list_candidates(request, &plan.candidates);
        if (request->function != NULL) {
            list_open_descriptors(&plan.open);
        }
        code = start_planned(&plan, report_ends[0], out_process, failure);
    }
    if (has_guardian_copy && plan.guardian_fd != -1) {
        close(plan.guardian_fd);
    }
    text_list_clear(&plan.candidates);
    number_list_clear(&plan.open);
    return code;
}

enum failure_code process_spawn(
    const struct process_request *request, struct process *out_process, struct failure *failure) {
    if (request->arguments->count == 0) {
        return failure_set(failure, FAILURE_INVALID, "there is no program to start");
    }
    int report_ends[2];
    if (pipe2(report_ends, O_CLOEXEC) != 0) {
        return spawn_failure_set_early(failure, errno);
    }
    enum failure_code code = spawn_with_report(request, report_ends, out_process, failure);
    close(report_ends[0]);
    return code;
}

/* Asking. */

#define PIECE_LENGTH 4096
/* A program that has closed its output ends by itself within this time. */
#define END_MILLISECONDS 1000

/* Until the program closes its end. What it leaves behind may hold the end open. */
static void hear(int fd, struct duration patience, size_t ceiling, struct process_answer *answer) {
    char piece[PIECE_LENGTH];
    struct instant deadline = instant_after(clock_now(), patience);
    for (;;) {
        struct duration left = instant_until(clock_now(), deadline);
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        answer->is_late = left.nanoseconds <= 0;
        if (answer->is_late) {
            return;
        }
        int ready = poll(&polled, 1, (int)(left.nanoseconds / NANOSECONDS_PER_MILLISECOND) + 1);
        ssize_t length = ready > 0 ? read(fd, piece, sizeof piece) : -1;
        if (length == 0 || (length < 0 && ready != 0 && errno != EINTR)) {
            return;
        }
        if (length > 0) {
            text_append_bytes(&answer->said, piece, (size_t)length);
            text_keep_end(&answer->said, ceiling);
        }
    }
}

static void finish(struct process process, struct process_answer *answer) {
    struct pollfd ending = {.fd = process.pidfd, .events = POLLIN};
    if (!answer->is_late) {
        (void)poll(&ending, 1, END_MILLISECONDS);
    }
    kill(-process.pid, SIGKILL); /* it leads a session of its own */
    while (waitpid(process.pid, &answer->status, 0) < 0 && errno == EINTR) {
    }
    if (process.pidfd >= 0) {
        close(process.pidfd);
    }
}

enum failure_code process_ask(const struct text_list *arguments,
    const struct text_list *environment, struct duration patience, size_t ceiling,
    bool hears_errors, struct process_answer *out_answer, struct failure *failure) {
    struct process_request request;
    struct process process;
    int ends[2];
    *out_answer = (struct process_answer){0};
    process_request_init(&request, arguments, environment);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return failure_set_system(failure, errno, "cannot make a pipe");
    }
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    request.stdin_fd = nothing;
    request.stdout_fd = ends[1];
    request.stderr_fd = hears_errors ? ends[1] : -1;
    enum failure_code code = process_spawn(&request, &process, failure);
    close(ends[1]);
    if (nothing >= 0) {
        close(nothing);
    }
    if (code == FAILURE_NONE) {
        hear(ends[0], patience, ceiling, out_answer);
        finish(process, out_answer);
    }
    close(ends[0]);
    return code;
}

/* Spawn crew. */

/* Without the calling thread. The kernel starts no more than a few programs of one process beside
 * each other: each start changes what the process has mapped and open. */
#define THREADS_MAXIMUM ((size_t)3)

struct spawn_crew {
    size_t threads_wanted;
    pthread_t threads[THREADS_MAXIMUM];
    size_t thread_count;
    pthread_mutex_t mutex; /* over all that follows */
    pthread_cond_t is_called;
    pthread_cond_t is_done;
    struct spawn_task *tasks; /* of the present start */
    size_t count;
    size_t taken;
    size_t finished;
    bool is_over;
};

/* Takes a task, if one is left, and performs it. The mutex is held, but not while it is performed.
 */
static bool perform_next(struct spawn_crew *crew) {
    if (crew->taken == crew->count) {
        return false;
    }
    struct spawn_task *task = &crew->tasks[crew->taken++];
    pthread_mutex_unlock(&crew->mutex);
    task->code = process_spawn(&task->request, &task->process, &task->failure);
    pthread_mutex_lock(&crew->mutex);
    if (++crew->finished == crew->count) {
        pthread_cond_signal(&crew->is_done);
    }
    return true;
}

static void *serve(void *context) {
    struct spawn_crew *crew = context;
    pthread_mutex_lock(&crew->mutex);
    while (!crew->is_over) {
        if (!perform_next(crew)) {
            pthread_cond_wait(&crew->is_called, &crew->mutex);
        }
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

struct spawn_crew *spawn_crew_new(int processors) {
    struct spawn_crew *crew = memory_allocate(sizeof *crew);
    size_t others = processors > 1 ? (size_t)processors - 1 : 0;
    crew->threads_wanted = others < THREADS_MAXIMUM ? others : THREADS_MAXIMUM;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->is_called, NULL);
    pthread_cond_init(&crew->is_done, NULL);
    return crew;
}

void spawn_crew_free(struct spawn_crew *crew) {
    if (crew == NULL) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    crew->is_over = true;
    pthread_cond_broadcast(&crew->is_called);
    pthread_mutex_unlock(&crew->mutex);
    for (size_t i = 0; i < crew->thread_count; i++) {
        pthread_join(crew->threads[i], NULL);
    }
    pthread_cond_destroy(&crew->is_done);
    pthread_cond_destroy(&crew->is_called);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

/* A crew that gets no further thread works with those it has, the calling one at least. */
static void call_threads(struct spawn_crew *crew, size_t useful) {
    size_t wanted = useful < crew->threads_wanted ? useful : crew->threads_wanted;
    while (crew->thread_count < wanted &&
           quiet_thread_start("muster-spawner", serve, crew, &crew->threads[crew->thread_count],
               NULL) == FAILURE_NONE) {
        crew->thread_count++;
    }
}

void spawn_crew_start(struct spawn_crew *crew, struct spawn_task *tasks, size_t count) {
    if (count > 1) {
        call_threads(crew, count - 1);
    }
    pthread_mutex_lock(&crew->mutex);
    crew->tasks = tasks;
    crew->count = count;
    crew->taken = 0;
    crew->finished = 0;
    if (count > 1) {
        pthread_cond_broadcast(&crew->is_called);
    }
    while (perform_next(crew)) {
    }
    while (crew->finished < crew->count) {
        pthread_cond_wait(&crew->is_done, &crew->mutex);
    }
    crew->count = 0;
    crew->taken = 0;
    pthread_mutex_unlock(&crew->mutex);
}
