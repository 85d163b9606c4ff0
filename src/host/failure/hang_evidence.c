/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/failure/failure_report.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "host/process/process_spawn.h"
#include "host/process/process_table.h"
#include "wire/failure/kernel_text.h"
#include "wire/failure/python_stack.h"

/* A machine with a hundred thousand connections has a table of about this size. */
#define TABLE_CEILING (16 * 1024 * 1024)
#define HANG_EVIDENCE_FILES_PATH_SIZE 128

/* Reports the open files of a process. Sockets are reported with their state and peer. */

struct open_file {
    int fd;
    char *target;
    bool is_socket;
    uint64_t inode;
    char *words; /* description of a socket */
};

/* Further descriptors are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_FILES 512

struct open_files {
    pid_t pid;
    struct open_file items[HANG_EVIDENCE_MAXIMUM_FILES];
    size_t count;
    size_t left_out;
    size_t socket_count; /* sockets that have not been found in a table */
};

static bool visit_descriptor(void *context, int fd) {
    struct open_files *files = context;
    char path[HANG_EVIDENCE_FILES_PATH_SIZE];
    char target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)files->pid, fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) {
        return true;
    }
    if (files->count == HANG_EVIDENCE_MAXIMUM_FILES) {
        files->left_out++;
        return true;
    }
    target[length] = '\0';
    struct open_file *file = &files->items[files->count++];
    *file = (struct open_file){.fd = fd, .target = memory_duplicate_string(target)};
    file->is_socket = socket_table_read_link(target, &file->inode) == FAILURE_NONE;
    files->socket_count += file->is_socket ? 1 : 0;
    return true;
}

static void note_socket(
    struct open_files *files, uint64_t inode, const char *kind, const struct text *words) {
    for (size_t i = 0; i < files->count; i++) {
        struct open_file *file = &files->items[i];
        if (file->is_socket && file->inode == inode && file->words == NULL) {
            file->words = text_format("%s %s", kind, text_string(words));
            files->socket_count--;
        }
    }
}

/* These tables show the sockets of the process' own network namespace. */
static void look_up(struct open_files *files, const struct hang_report *report, const char *kind) {
    char path[HANG_EVIDENCE_FILES_PATH_SIZE];
    struct bytes table = {0};
    struct slice line;
    bool is_unix = text_equals(kind, "unix");
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)files->pid, kind);
    hang_report_read(path, TABLE_CEILING, &table);
    struct slice rest = bytes_slice(&table);
    while (files->socket_count > 0 && socket_table_next_line(&rest, &line) &&
           !hang_report_is_over(report)) {
        struct text words = {0};
        uint64_t inode;
        enum failure_code code =
            is_unix ? socket_table_read_unix(line, &inode, &words)
                    : socket_table_read_address(line, kind[0] == 't', &inode, &words);
        if (code == FAILURE_NONE) {
            note_socket(files, inode, kind, &words);
        }
        text_clear(&words);
    }
    bytes_clear(&table);
}

static void append_file(struct text *text, const struct open_file *file) {
    struct text line = {0};
    text_append_format(&line, "%d -> %s", file->fd, file->target);
    if (file->words != NULL) {
        text_append_format(&line, " %s", file->words);
    }
    text_append(text, "  ");
    hang_report_append_safely(text, line.data, line.length);
    text_append(text, "\n");
    text_clear(&line);
}

static void hang_evidence_write_files(struct hang_report *report, pid_t pid) {
    static const char *const kinds[] = {"tcp", "tcp6", "unix", "udp", "udp6"};
    char path[NUMBER_PATH_SIZE];
    struct open_files *files = memory_allocate(sizeof *files);
    files->pid = pid;
    number_path_format(path, "/proc/", pid, "/fd");
    if (!number_directory_each(path, visit_descriptor, files)) {
        hang_report_append_error(report, "they", errno);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && files->socket_count > 0; i++) {
        look_up(files, report, kinds[i]);
    }
    for (size_t i = 0; i < files->count; i++) {
        append_file(&report->text, &files->items[i]);
        free(files->items[i].target);
        free(files->items[i].words);
    }
    if (files->left_out > 0) {
        text_append_format(&report->text, "  and %zu more\n", files->left_out);
    }
    free(files);
    hang_report_flush(report);
}

/* Hang evidence python. */

#define MAPS_CEILING (8 * 1024 * 1024)
/* The mapping with the interpreter's variables is much smaller. */
#define MAPPING_CEILING (64 * 1024 * 1024)
#define HANG_EVIDENCE_PYTHON_PIECE_SIZE 65536
#define HANG_EVIDENCE_PYTHON_PATH_SIZE 64
#define COOKIE_ALIGNMENT 8

struct python_look {
    struct hang_report *report;
    pid_t pid;
    int memory_fd;
    char executable[PATH_MAX];
    uint64_t native_id; /* of the current thread */
    size_t frame_count; /* number of frames reported so far, of all threads */
    size_t main_count;  /* of them, those of the first thread that are in `stack` */
    const char *otherwise;
    struct text stack;
};

/* This uses pread of /proc/<pid>/mem instead of process_vm_readv. If the process holds its
 * memory lock in an uninterruptible sleep, a thread that waits for the lock in pread can still
 * be ended. */
static bool read_memory(void *context, uint64_t address, void *buffer, size_t size) {
    const struct python_look *look = context;
    return address <= INT64_MAX && !hang_report_is_over(look->report) &&
           pread(look->memory_fd, buffer, size, (off_t)address) == (ssize_t)size;
}

/* Writing the stacks. */

static bool tell_thread(void *context, uint64_t native_id) {
    struct python_look *look = context;
    look->native_id = native_id;
    text_append_format(&look->report->text, "  Python thread %" PRIu64 ":\n", native_id);
    return true;
}

static bool tell_frame(void *context, const struct python_frame *frame) {
    struct python_look *look = context;
    text_append_format(
        &look->report->text, "    %s:%d in %s\n", frame->file, frame->line, frame->function);
    if (look->native_id == (uint64_t)look->pid && look->main_count < HANG_SUMMARY_FRAMES_MAXIMUM) {
        look->main_count++;
        text_append_format(
            &look->stack, "%s:%d in %s\n", frame->file, frame->line, frame->function);
    }
    look->frame_count++;
    return true;
}

static bool tell_stacks(struct python_look *look, const struct python_runtime *runtime) {
    const struct python_memory memory = {read_memory, look};
    const struct python_visitor visitor = {tell_thread, tell_frame, look};
    text_append_format(&look->report->text, "  CPython %d.%d.%d, innermost frames first\n",
        runtime->major, runtime->minor, runtime->micro);
    python_stack_walk(&memory, runtime, &visitor);
    hang_report_flush(look->report);
    return look->frame_count > 0;
}

/* Finding the runtime's state. */

static bool try_address(struct python_look *look, uint64_t address, bool *out_is_told) {
    const struct python_memory memory = {read_memory, look};
    struct python_runtime runtime;
    enum failure_code code = python_runtime_read(&memory, address, &runtime);
    *out_is_told = false;
    if (code == FAILURE_NONE) {
        *out_is_told = tell_stacks(look, &runtime);
    } else if (code == FAILURE_UNSUPPORTED) {
        text_append_format(&look->report->text,
            "  CPython %d.%d.%d: the stacks of this build cannot be read; %s\n", runtime.major,
            runtime.minor, runtime.micro, look->otherwise);
    }
    return code == FAILURE_NONE || code == FAILURE_UNSUPPORTED;
}

static bool search_mapping(
    struct python_look *look, const struct memory_mapping *mapping, bool *out_is_told) {
    uint8_t *piece = memory_allocate(HANG_EVIDENCE_PYTHON_PIECE_SIZE);
    bool is_found = false;
    for (uint64_t at = mapping->start; at < mapping->end && !is_found;
         at += HANG_EVIDENCE_PYTHON_PIECE_SIZE) {
        uint64_t left = mapping->end - at;
        size_t size =
            left < HANG_EVIDENCE_PYTHON_PIECE_SIZE ? (size_t)left : HANG_EVIDENCE_PYTHON_PIECE_SIZE;
        if (!read_memory(look, at, piece, size)) {
            break;
        }
        for (size_t i = 0; i + COOKIE_ALIGNMENT <= size && !is_found; i += COOKIE_ALIGNMENT) {
            is_found = memcmp(piece + i, PYTHON_RUNTIME_COOKIE, COOKIE_ALIGNMENT) == 0 &&
                       try_address(look, at + i, out_is_told);
        }
    }
    free(piece);
    return is_found;
}

static bool may_hold_runtime(const struct python_look *look, const struct memory_mapping *mapping) {
    return mapping->is_readable && mapping->is_writable &&
           mapping->end - mapping->start <= MAPPING_CEILING &&
           (memory_mapping_is_file(mapping, "python") ||
               memory_mapping_is_file(mapping, "libpython") ||
               slice_equals(mapping->path, slice_from_string(look->executable)));
}

static bool search_process(struct python_look *look, struct slice maps) {
    struct slice line;
    bool is_python = false;
    bool is_told = false;
    while (socket_table_next_line(&maps, &line)) {
        struct memory_mapping mapping;
        if (memory_map_read_line(line, &mapping) != FAILURE_NONE) {
            continue;
        }
        is_python = is_python || memory_mapping_is_file(&mapping, "python") ||
                    memory_mapping_is_file(&mapping, "libpython");
        if (may_hold_runtime(look, &mapping) && search_mapping(look, &mapping, &is_told)) {
            return is_told;
        }
    }
    if (is_python) {
        text_append_format(&look->report->text,
            "  Python without a table for debuggers (before CPython 3.13): its stacks cannot be "
            "read; %s\n",
            look->otherwise);
    }
    return false;
}

/* Reads the Python stacks of another process from its memory while it runs on. The process is not
 * stopped and does not have to cooperate. Supports builds of CPython 3.13 and 3.14 with a global
 * lock. */

/* Adds the stacks to the report. *out_stack becomes the stack of the process' first thread, with
 * lines such as "train.py:17 in step", or NULL when it is not known; the caller frees it. Returns
 * false when no stack could be read. If the process is a Python at all, the report then says why,
 * and what is done otherwise: `otherwise`, half a sentence. */
static bool hang_evidence_write_python(
    struct hang_report *report, pid_t pid, const char *otherwise, char **out_stack) {
    struct python_look look = {.report = report, .pid = pid, .otherwise = otherwise};
    char path[HANG_EVIDENCE_PYTHON_PATH_SIZE];
    struct bytes maps = {0};
    bool is_told = false;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, look.executable, sizeof look.executable - 1);
    look.executable[length < 0 ? 0 : length] = '\0';
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    look.memory_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (look.memory_fd < 0 && errno != ENOENT) {
        hang_report_append_error(report, "memory, with Python's stacks,", errno);
    }
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    if (look.memory_fd >= 0 && hang_report_read(path, MAPS_CEILING, &maps)) {
        is_told = search_process(&look, bytes_slice(&maps));
    }
    if (look.memory_fd >= 0) {
        close(look.memory_fd);
    }
    bytes_clear(&maps);
    *out_stack = look.stack.length > 0 ? text_take(&look.stack) : NULL;
    hang_report_flush(report);
    return is_told;
}

/* Hang evidence threads. */

/* Further threads are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_THREADS 512

#define SMALL_FILE 16384
#define HANG_EVIDENCE_THREADS_PATH_SIZE 128

/* System calls in which programs often wait, with this machine's numbers. */
static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_futex, "futex"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_kill, "kill"},
    {SYS_tgkill, "tgkill"},
    {SYS_execve, "execve"},
    {SYS_clone, "clone"},
    {SYS_clone3, "clone3"},
    {SYS_mmap, "mmap"},
    {SYS_mprotect, "mprotect"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_fallocate, "fallocate"},
    {SYS_getdents64, "getdents64"},
    {SYS_sync, "sync"},
    {SYS_syncfs, "syncfs"},
    {SYS_statfs, "statfs"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_exit_group, "exit_group"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
#ifdef SYS_newfstatat
    {SYS_newfstatat, "newfstatat"},
#endif
#ifdef SYS_poll
    {SYS_vfork, "vfork"},
    {SYS_stat, "stat"},
    {SYS_rename, "rename"},
    {SYS_unlink, "unlink"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_pause, "pause"},
    {SYS_open, "open"},
#endif
};

struct threads {
    struct hang_report *report;
    struct hang_summary *summary;
    pid_t pid;
    size_t count;
};

static char *call_name(long number) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].number == number) {
            return memory_duplicate_string(calls[i].name);
        }
    }
    return text_format("system call %ld", number);
}

/* Returns the file's text without its last newline; NULL when it cannot be read (errno says
 * why). */
static char *read_line(pid_t pid, int thread, const char *name) {
    char path[HANG_EVIDENCE_THREADS_PATH_SIZE];
    struct bytes bytes = {0};
    struct text text = {0};
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, thread, name);
    if (!hang_report_read(path, SMALL_FILE, &bytes)) {
        int error = errno;
        bytes_clear(&bytes);
        errno = error;
        return NULL;
    }
    size_t length = bytes.length;
    while (length > 0 && bytes.data[length - 1] == '\n') {
        length--;
    }
    hang_report_append_safely(&text, (const char *)bytes.data, length);
    bytes_clear(&bytes);
    return text_take(&text);
}

/* The file holds "running", or the system call's number and arguments. The number -1 means that the
 * thread waits outside a system call. */
static char *find_call(const char *line) {
    char *end;
    long number = line == NULL ? -1 : strtol(line, &end, 10);
    return line == NULL || end == line || number < 0 ? NULL : call_name(number);
}

/* Missing permission is reported once, for the first thread. A thread that has ended is not
 * reported. */
static void note_refusal(const struct threads *threads, int thread, const char *what, int error) {
    if (thread == (int)threads->pid && error != 0 && error != ENOENT && error != ESRCH) {
        hang_report_append_error(threads->report, what, error);
    }
}

static void append_stack(const struct threads *threads, int thread) {
    struct text *text = &threads->report->text;
    char *stack = read_line(threads->pid, thread, "stack");
    const char *rest = stack;
    if (stack == NULL) {
        note_refusal(threads, thread, "kernel stacks, which are root's,", errno);
    }
    while (rest != NULL && *rest != '\0') {
        size_t length = strcspn(rest, "\n");
        text_append(text, "      ");
        text_append_bytes(text, rest, length);
        text_append(text, "\n");
        rest += length + (rest[length] == '\n' ? 1 : 0);
    }
    free(stack);
}

/* The kernel writes "0" for a function that is unknown. */
static char *read_waiting_place(pid_t pid, int thread) {
    char *place = read_line(pid, thread, "wchan");
    if (place != NULL && (*place == '\0' || text_equals(place, "0"))) {
        free(place);
        return NULL;
    }
    return place;
}

static char read_state(pid_t pid, int thread) {
    char *line = read_line(pid, thread, "stat");
    struct kernel_process_stat stat;
    bool is_read =
        line != NULL && kernel_text_read_stat(slice_from_string(line), &stat) == FAILURE_NONE;
    free(line);
    return is_read ? stat.state : '\0';
}

static void describe_thread(const struct threads *threads, int thread) {
    struct text *text = &threads->report->text;
    char *name = read_line(threads->pid, thread, "comm");
    char *line = read_line(threads->pid, thread, "syscall");
    int call_error = line == NULL ? errno : 0;
    struct hang_summary summary = {
        .state = read_state(threads->pid, thread),
        .call = find_call(line),
        .waits_in = read_waiting_place(threads->pid, thread),
    };
    text_append_format(text, "  thread %d (%s): ", thread, name == NULL ? "?" : name);
    hang_summary_append(&summary, text);
    if (line != NULL) {
        text_append_format(text, " [%s]", line);
    }
    text_append(text, "\n");
    note_refusal(threads, thread, "system calls", call_error);
    append_stack(threads, thread);
    free(name);
    free(line);
    if (thread == (int)threads->pid) {
        hang_summary_clear(threads->summary);
        *threads->summary = summary;
    } else {
        hang_summary_clear(&summary);
    }
}

static bool visit_thread(void *context, int thread) {
    struct threads *threads = context;
    threads->count++;
    if (threads->count <= HANG_EVIDENCE_MAXIMUM_THREADS && !hang_report_is_over(threads->report)) {
        describe_thread(threads, thread);
        hang_report_flush(threads->report);
    }
    return true;
}

/* Appends the lines of /proc/<pid>/status that help to explain a hang. */
static void append_status(struct text *text, pid_t pid) {
    static const char *const names[] = {"Name:", "State:", "PPid:", "TracerPid:", "VmRSS:",
        "VmSwap:", "Threads:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:",
        "Cpus_allowed_list:", "voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"};
    char *status = read_line(pid, (int)pid, "status");
    struct slice rest = slice_from_string(status == NULL ? "" : status);
    struct slice line;
    while (socket_table_next_line(&rest, &line)) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (slice_starts_with(line, slice_from_string(names[i]))) {
                text_append(text, "  ");
                text_append_bytes(text, (const char *)line.data, line.length);
                text_append(text, "\n");
            }
        }
    }
    free(status);
}

/* Reports what the kernel shows of a process and of each of its threads: the state, the current
 * system call, the kernel function in which it waits, and the kernel's stack where permissions
 * allow it. */

/* Adds the threads to the report, and the facts about the process' first thread to the summary. */
static void hang_evidence_write_threads(
    struct hang_report *report, pid_t pid, struct hang_summary *out_summary) {
    struct threads threads = {report, out_summary, pid, 0};
    char path[NUMBER_PATH_SIZE];
    append_status(&report->text, pid);
    number_path_format(path, "/proc/", pid, "/task");
    if (!number_directory_each(path, visit_thread, &threads)) {
        text_append(&report->text, "  the process is gone\n");
    } else if (threads.count > HANG_EVIDENCE_MAXIMUM_THREADS) {
        text_append_format(&report->text, "  and %zu more threads\n",
            threads.count - HANG_EVIDENCE_MAXIMUM_THREADS);
    }
    out_summary->thread_count = threads.count;
    hang_report_flush(report);
}

/* Hang evidence tool. */

#define OUTPUT_CEILING (1024 * 1024)
#define HANG_EVIDENCE_TOOL_PIECE_SIZE 4096

extern char **environ;

static char *find_program(const char *name) {
    const char *path = getenv("PATH");
    const char *rest = path == NULL ? "/usr/bin:/bin" : path;
    while (*rest != '\0') {
        size_t length = strcspn(rest, ":");
        char *program = text_format("%.*s/%s", (int)length, rest, name);
        if (length > 0 && access(program, X_OK) == 0) {
            return program;
        }
        free(program);
        rest += length + (rest[length] == ':' ? 1 : 0);
    }
    return NULL;
}

static void build_arguments(
    struct text_list *arguments, char *program, const char *const words[], pid_t pid) {
    text_list_add_taken(arguments, program);
    for (size_t i = 0; words[i] != NULL; i++) {
        text_list_add(arguments, words[i]);
    }
    text_list_add_taken(arguments, text_format("%d", (int)pid));
}

/* Reads once from the tool's output. Returns true when there may be more. */
static bool take_output(struct hang_report *report, int fd, struct text *output) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int64_t left = duration_milliseconds_ceiling(hang_report_time_left(report));
    char piece[HANG_EVIDENCE_TOOL_PIECE_SIZE];
    if (left == 0 || output->length >= OUTPUT_CEILING) {
        return false;
    }
    int ready = poll(&wait, 1, left > 50 ? 50 : (int)left);
    if (ready <= 0) {
        return ready == 0 || errno == EINTR;
    }
    ssize_t length = read(fd, piece, sizeof piece);
    if (length > 0) {
        hang_report_append_safely(output, piece, (size_t)length);
        hang_report_append_safely(&report->text, piece, (size_t)length);
        hang_report_flush(report);
    }
    return length > 0 || (length < 0 && errno == EINTR);
}

static void run(
    struct hang_report *report, const struct text_list *arguments, struct text *output) {
    int fds[2];
    struct text_list environment = {0};
    struct process_request request;
    struct process process;
    struct failure failure;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        hang_report_append_error(report, "its output", errno);
        return;
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        text_list_add(&environment, *variable);
    }
    process_request_init(&request, arguments, &environment);
    request.stdout_fd = fds[1];
    request.stderr_fd = fds[1];
    enum failure_code code = process_spawn(&request, &process, &failure);
    close(fds[1]);
    text_list_clear(&environment);
    if (code == FAILURE_NONE) {
        while (take_output(report, fds[0], output)) {
        }
        if (process.pidfd >= 0) {
            pidfd_signal(process.pidfd, SIGKILL);
            close(process.pidfd);
        }
    } else {
        text_append_format(&report->text, "  %s\n", failure.message);
    }
    close(fds[0]);
}

static void ask(struct hang_report *report, const char *name, const char *const words[], pid_t pid,
    struct text *output) {
    struct text_list arguments = {0};
    char *program = find_program(name);
    if (program == NULL) {
        text_append_format(
            &report->text, "%s of process %d: it is not installed\n", name, (int)pid);
        return;
    }
    text_append_format(&report->text, "%s of process %d:\n", name, (int)pid);
    hang_report_flush(report);
    build_arguments(&arguments, program, words, pid);
    run(report, &arguments, output);
    text_list_clear(&arguments);
    if (hang_report_is_over(report)) {
        text_append(&report->text, "\n  no time was left for the rest\n");
    }
    hang_report_flush(report);
}

/* Asks an installed debugger, py-spy or gdb, for the stacks of another process. The debugger stops
 * the process meanwhile. Its output goes into the report; if it is not installed, the report says
 * so. It is killed when the report's time is up. The debugger becomes a child of this process, so
 * process_family, which waits for orphans, also waits for the debugger. */

/* Reports the Python stacks of any Python version. If *out_stack is NULL and the dump shows the
 * main thread, *out_stack becomes its innermost line; the caller frees it. */
static void hang_evidence_write_py_spy(struct hang_report *report, pid_t pid, char **out_stack) {
    static const char *const words[] = {"dump", "--pid", NULL};
    struct text dump = {0};
    ask(report, "py-spy", words, pid, &dump);
    if (*out_stack == NULL) {
        char *place =
            py_spy_dump_place((struct slice){(const uint8_t *)dump.data, dump.length}, pid);
        *out_stack = place != NULL ? text_format("%s\n", place) : NULL;
        free(place);
    }
    text_clear(&dump);
}

/* Reports the native stacks of all threads. */
static void hang_evidence_write_gdb(struct hang_report *report, pid_t pid) {
    static const char *const words[] = {"-batch", "-nx", "-iex", "set debuginfod enabled off",
        "-iex", "set pagination off", "-ex", "thread apply all backtrace 64", "-p", NULL};
    struct text output = {0};
    ask(report, "gdb", words, pid, &output);
    text_clear(&output);
}

/* Hang evidence. */

/* Further descendants are left out. */
#define HANG_EVIDENCE_MAXIMUM_PROCESSES 16

#define COMMAND_CEILING 4096
#define PATH_SIZE 64

struct look {
    const struct hang_evidence_request *request;
    struct hang_report report;
    struct hang_summary summary;
};

static void publish_summary(const struct look *look) {
    if (look->request->learnt != NULL) {
        look->request->learnt(look->request->context, &look->summary);
    }
}

/* The heading has microseconds, because benchmarks compare it with the deadline. */
static void write_heading(struct hang_report *report, const struct hang_evidence_request *request) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm local = clock_local_time((int64_t)now.tv_sec);
    long east = labs(local.tm_gmtoff) / 60;
    text_append_format(&report->text,
        "=== process %d%s, %d-%02d-%02d %02d:%02d:%02d.%06ld %c%02ld%02ld: %s\n", (int)request->pid,
        request->goes_on ? "" : " before it is ended", local.tm_year + 1900, local.tm_mon + 1,
        local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec / 1000,
        local.tm_gmtoff < 0 ? '-' : '+', east / 60, east % 60, request->reason);
}

/* The last lines of its output files. */

static void write_tail(struct hang_report *report, const char *path) {
    struct bytes end = {0};
    bool is_cut = false;
    if (file_end_read(path, LAST_LINES_WINDOW, &end, &is_cut, NULL) == FAILURE_NONE &&
        end.length > 0) {
        text_append_format(&report->text, "end of %s:\n", path);
        last_lines_append(bytes_slice(&end), is_cut, &report->text);
    }
    bytes_clear(&end);
    hang_report_flush(report);
}

/* Processes. */

static void write_command(struct hang_report *report, pid_t pid) {
    char path[PATH_SIZE];
    struct bytes command = {0};
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    text_append_format(&report->text, "command of process %d: ", (int)pid);
    if (hang_report_read(path, COMMAND_CEILING, &command)) {
        for (size_t i = 0; i + 1 < command.length; i++) {
            if (command.data[i] == '\0' || command.data[i] == '\n') {
                command.data[i] = ' ';
            }
        }
        command.length -= command.data[command.length - 1] == '\0' ? 1 : 0;
        hang_report_append_safely(&report->text, (const char *)command.data, command.length);
    }
    text_append(&report->text, "\n");
    bytes_clear(&command);
}

/* What is in memory is read first: that neither disturbs the process nor needs its help. */
static bool write_python(struct look *look, pid_t pid, char **out_stack) {
    static const struct hang_evidence_dump none = {0};
    const struct hang_evidence_dump *dump =
        pid == look->request->pid ? &look->request->dump : &none;
    const char *otherwise = dump->signal != 0        ? "it is asked itself"
                            : look->request->is_full ? "py-spy is asked below"
                                                     : "--evidence full asks py-spy";
    return hang_evidence_write_python(&look->report, pid, otherwise, out_stack) ||
           hang_evidence_write_dump(&look->report, pid, dump, out_stack);
}

/* Reports what the kernel and the process' memory show. The kernel's facts come first: they are the
 * quickest, they say most about any program, and the process cannot delay them. */
static bool write_activity(struct look *look, pid_t pid, struct hang_summary *summary) {
    text_append_format(&look->report.text, "process %d:\n", (int)pid);
    hang_evidence_write_threads(&look->report, pid, summary);
    publish_summary(look);
    write_command(&look->report, pid);
    bool is_told = write_python(look, pid, &summary->stack);
    publish_summary(look);
    return is_told;
}

/* `has_stacks`: the Python stacks have already been reported. */
static void write_surroundings(
    struct look *look, pid_t pid, bool has_stacks, struct hang_summary *summary) {
    if (look->request->is_brief) {
        return;
    }
    text_append_format(&look->report.text, "open files of process %d:\n", (int)pid);
    hang_evidence_write_files(&look->report, pid);
    if (!has_stacks && look->request->is_full && !hang_report_is_over(&look->report)) {
        hang_evidence_write_py_spy(&look->report, pid, &summary->stack);
        publish_summary(look);
    }
}

static void add_descendants(struct process_ids *processes) {
    for (size_t next = 0;
         next < processes->count && processes->count <= HANG_EVIDENCE_MAXIMUM_PROCESSES; next++) {
        process_table_children(processes->items[next], processes);
    }
    if (processes->count > HANG_EVIDENCE_MAXIMUM_PROCESSES) {
        processes->count = HANG_EVIDENCE_MAXIMUM_PROCESSES;
    }
}

/* A worker may be a shell that waits for a Python it has started. Then the summary gets the stack
 * of that Python. */
static void write_descendant(struct look *look, pid_t pid) {
    struct hang_summary own = {0};
    text_append(&look->report.text, "child, or child's child: ");
    bool has_stacks = write_activity(look, pid, &own);
    write_surroundings(look, pid, has_stacks, &own);
    if (look->summary.stack == NULL) {
        look->summary.stack = own.stack;
        own.stack = NULL;
        publish_summary(look);
    }
    hang_summary_clear(&own);
}

static void write_native_stacks(struct hang_report *report, const struct process_ids *processes) {
    for (size_t i = 0; i < processes->count && !hang_report_is_over(report); i++) {
        hang_evidence_write_gdb(report, processes->items[i]);
    }
}

static bool write_rest(struct look *look, const struct process_ids *processes) {
    struct hang_report *report = &look->report;
    for (size_t i = 0; i < HANG_EVIDENCE_OUTPUT_COUNT; i++) {
        if (look->request->outputs[i] != NULL && !hang_report_is_over(report)) {
            write_tail(report, look->request->outputs[i]);
        }
    }
    for (size_t i = 1; i < processes->count && !hang_report_is_over(report); i++) {
        if (look->request->is_brief && look->summary.stack != NULL) {
            break;
        }
        write_descendant(look, processes->items[i]);
    }
    if (look->request->is_full) {
        write_native_stacks(report, processes);
    }
    bool is_over = hang_report_is_over(report);
    if (is_over) {
        text_append(&report->text, "the time was up before everything could be read\n");
    }
    text_append(&report->text, "\n");
    return !is_over;
}

bool hang_evidence_collect(const struct hang_evidence_request *request) {
    struct look look = {
        .request = request,
        .report = {.fd = -1,
            .is_held = true,
            .is_abandoned = request->is_abandoned,
            .end = request->end},
    };
    struct process_ids processes = {0};
    write_heading(&look.report, request);
    process_ids_add(&processes, request->pid);
    add_descendants(&processes);
    bool has_stacks = write_activity(&look, request->pid, &look.summary);
    hang_report_open(&look.report, request->path);
    hang_report_flush(&look.report);
    write_surroundings(&look, request->pid, has_stacks, &look.summary);
    bool is_complete = write_rest(&look, &processes);
    hang_report_close(&look.report);
    look.summary.file_error = look.report.error;
    publish_summary(&look);
    process_ids_clear(&processes);
    hang_summary_clear(&look.summary);
    return is_complete;
}
