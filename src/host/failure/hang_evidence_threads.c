/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence_threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/memory.h"
#include "host/loop/number_directory.h"
#include "host/process/process_table.h"
#include "wire/failure/socket_table.h"

#define SMALL_FILE 16384
#define PATH_SIZE 128

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
    char path[PATH_SIZE];
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

void hang_evidence_write_threads(
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
