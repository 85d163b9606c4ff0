/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "wire/failure/kernel_text.h"
#include "wire/failure/python_stack.h"

#define PIECE_SIZE 4096

bool hang_report_open(struct hang_report *report, const char *path) {
    report->fd = -1;
    report->is_held = false;
    if (path != NULL) {
        report->fd = open(path,
            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
        report->error = report->fd >= 0 ? 0 : errno;
    }
    return report->fd >= 0;
}

void hang_report_flush(struct hang_report *report) {
    size_t written = 0;
    if (report->is_held) {
        return;
    }
    while (report->fd >= 0 && written < report->text.length) {
        ssize_t length =
            write(report->fd, report->text.data + written, report->text.length - written);
        if (length < 0 && errno != EINTR) {
            report->error = report->error != 0 ? report->error : errno;
            break;
        }
        written += length < 0 ? 0 : (size_t)length;
    }
    text_clear(&report->text);
}

void hang_report_close(struct hang_report *report) {
    hang_report_flush(report);
    if (report->fd >= 0) {
        close(report->fd);
        report->fd = -1;
    }
}

struct duration hang_report_time_left(const struct hang_report *report) {
    if (report->is_abandoned != NULL && atomic_load(report->is_abandoned)) {
        return (struct duration){0};
    }
    return instant_until(clock_now(), report->end);
}

bool hang_report_is_over(const struct hang_report *report) {
    return hang_report_time_left(report).nanoseconds == 0;
}

bool hang_report_read(const char *path, size_t ceiling, struct bytes *out_bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    char piece[PIECE_SIZE];
    size_t total = 0;
    ssize_t length = 0;
    while (total < ceiling &&
           ((length = read(fd, piece, sizeof piece)) > 0 || (length < 0 && errno == EINTR))) {
        size_t taken = length < 0 ? 0 : (size_t)length;
        if (bytes_append(out_bytes, piece, taken) != FAILURE_NONE) {
            break;
        }
        total += taken;
    }
    int error = length < 0 ? errno : 0;
    close(fd);
    errno = error;
    return total > 0;
}

void hang_report_append_error(struct hang_report *report, const char *what, int error) {
    bool is_forbidden = error == EACCES || error == EPERM;
    text_append_format(&report->text, "  %s cannot be read: %s%s\n", what,
        failure_system_words(error),
        is_forbidden
            ? " (the agent may not look into this process: it runs as another user, is not "
              "dumpable, or kernel.yama.ptrace_scope forbids it)"
            : "");
}

void hang_report_append_safely(struct text *text, const char *bytes, size_t length) {
    size_t start = text->length;
    text_append_bytes(text, bytes, length);
    if (length > 0) {
        text->length = start + utf8_make_printable(text->data + start, length);
        text->data[text->length] = '\0';
    }
}

/* Hang evidence dump. */

#define PATH_SIZE 128
#define SMALL_FILE 16384
#define MAXIMUM_THREADS 4096
/* Waiting for the end of the answer. A Python with a hundred threads needs a few milliseconds. */
#define FIRST_PAUSE 500000
#define LONGEST_PAUSE 16000000
#define LONGEST_WAIT 1000000000
/* A process may have put a handler of its own in place of faulthandler's. After so many looks at it
 * without a word it will not answer. */
#define MAXIMUM_SILENT_LOOKS 16

struct asking {
    struct hang_report *report;
    const struct hang_evidence_dump *dump;
    pid_t pid;
    size_t start;        /* of the answer in the file */
    char name[PATH_MAX]; /* of the file, as the kernel shows it */
    bool has_file;       /* the process has it open */
    int thread;          /* the thread that is asked; 0: none has been found */
    size_t thread_count;
};

/* Looking at the process. */

static bool has_signal(const struct asking *asking, struct slice status, const char *name) {
    uint64_t signals;
    return kernel_text_read_signals(status, name, &signals) == FAILURE_NONE &&
           (signals >> (asking->dump->signal - 1) & 1) != 0;
}

static bool read_thread_file(
    const struct asking *asking, int thread, const char *name, struct bytes *out_bytes) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)asking->pid, thread, name);
    return hang_report_read(path, SMALL_FILE, out_bytes);
}

static bool read_stat(
    const struct asking *asking, int thread, struct kernel_process_stat *out_stat) {
    struct bytes bytes = {0};
    bool is_read = read_thread_file(asking, thread, "stat", &bytes) &&
                   kernel_text_read_stat(bytes_slice(&bytes), out_stat) == FAILURE_NONE;
    bytes_clear(&bytes);
    return is_read;
}

/* A thread in an uninterruptible sleep takes no signal, and one that blocks the signal neither. */
static bool can_be_asked(const struct asking *asking, int thread) {
    struct kernel_process_stat stat;
    struct bytes status = {0};
    bool can = read_stat(asking, thread, &stat) && (stat.state == 'R' || stat.state == 'S') &&
               read_thread_file(asking, thread, "status", &status) &&
               !has_signal(asking, bytes_slice(&status), "SigBlk") &&
               !has_signal(asking, bytes_slice(&status), "SigPnd");
    bytes_clear(&status);
    return can;
}

static bool visit_thread(void *context, int thread) {
    struct asking *asking = context;
    asking->thread_count++;
    if (can_be_asked(asking, thread)) {
        asking->thread = thread;
    }
    return asking->thread == 0 && asking->thread_count < MAXIMUM_THREADS &&
           !hang_report_is_over(asking->report);
}

/* The first thread is asked if possible: its frames are then shown in any case. Any other thread
 * can write the stacks of all, too. */
static void find_thread(struct asking *asking) {
    char path[NUMBER_PATH_SIZE];
    if (can_be_asked(asking, (int)asking->pid)) {
        asking->thread = (int)asking->pid;
        return;
    }
    number_path_format(path, "/proc/", asking->pid, "/task");
    number_directory_each(path, visit_thread, asking);
}

static bool read_file_name(const char *directory, int fd, char out_name[PATH_MAX]) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%d", directory, fd);
    ssize_t length = readlink(path, out_name, PATH_MAX - 1);
    out_name[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

static bool visit_file(void *context, int fd) {
    struct asking *asking = context;
    char directory[NUMBER_PATH_SIZE];
    char name[PATH_MAX];
    number_path_format(directory, "/proc/", asking->pid, "/fd");
    asking->has_file = read_file_name(directory, fd, name) && strcmp(name, asking->name) == 0;
    return !asking->has_file && !hang_report_is_over(asking->report);
}

/* Where the agent may not see the files of the process, it is believed to have this one. */
static bool has_file(struct asking *asking) {
    char path[NUMBER_PATH_SIZE];
    number_path_format(path, "/proc/", asking->pid, "/fd");
    return !read_file_name("/proc/self/fd", asking->dump->fd, asking->name) ||
           !number_directory_each(path, visit_file, asking) || asking->has_file;
}

/* Why the process must not be asked, or NULL. */
static const char *find_objection(struct asking *asking) {
    struct kernel_process_stat stat;
    struct bytes status = {0};
    const char *objection = NULL;
    if (!read_stat(asking, (int)asking->pid, &stat)) {
        return "it is gone";
    }
    if (stat.parent != getpid()) {
        return "it is no child of the agent";
    }
    if (stat.state == 'T' || stat.state == 't') {
        return "it is stopped";
    }
    if (!read_thread_file(asking, (int)asking->pid, "status", &status) ||
        !has_signal(asking, bytes_slice(&status), "SigCgt")) {
        objection = "it has no handler for the signal (any more)";
    } else if (!has_file(asking)) {
        objection = "it has closed the file for them";
    }
    bytes_clear(&status);
    if (objection == NULL) {
        find_thread(asking);
    }
    return objection != NULL     ? objection
           : asking->thread == 0 ? "none of its threads takes a signal now"
                                 : NULL;
}

/* Waiting for the answer. */

static size_t file_size(const struct asking *asking) {
    struct stat file;
    return fstat(asking->dump->fd, &file) == 0 && file.st_size > 0 ? (size_t)file.st_size : 0;
}

static size_t answer_size(const struct asking *asking) {
    size_t size = file_size(asking);
    return size > asking->start ? size - asking->start : 0;
}

/* Until the handler has returned, its signal is pending or blocked. */
static bool is_busy(const struct asking *asking) {
    struct bytes status = {0};
    bool is_read = read_thread_file(asking, asking->thread, "status", &status);
    bool is_busy = is_read && (has_signal(asking, bytes_slice(&status), "SigPnd") ||
                                  has_signal(asking, bytes_slice(&status), "SigBlk"));
    bytes_clear(&status);
    return is_busy;
}

/* Nothing tells that faulthandler has written its last byte, so the thread is looked at again and
 * again. Between taking a signal and blocking it there is a moment in which it is neither pending
 * nor blocked; so there must be an answer, too. */
static bool wait_for_answer(const struct asking *asking) {
    struct duration left = hang_report_time_left(asking->report);
    int64_t wait = left.nanoseconds / 2 < LONGEST_WAIT ? left.nanoseconds / 2 : LONGEST_WAIT;
    struct instant end = instant_after(clock_now(), (struct duration){wait});
    struct timespec pause = {0, FIRST_PAUSE};
    for (int silent = 0; silent < MAXIMUM_SILENT_LOOKS;) {
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec * 2 < LONGEST_PAUSE ? pause.tv_nsec * 2 : LONGEST_PAUSE;
        if (!is_busy(asking)) {
            if (answer_size(asking) > 0) {
                return true;
            }
            silent++;
        }
        if (instant_until(clock_now(), end).nanoseconds == 0 ||
            hang_report_is_over(asking->report)) {
            return false;
        }
    }
    return false;
}

static bool ask(struct asking *asking) {
    asking->start = file_size(asking);
    if (syscall(SYS_tgkill, asking->pid, asking->thread, asking->dump->signal) != 0) {
        text_append_format(&asking->report->text, "  Python was not asked for its stacks: %s\n",
            failure_system_words(errno));
        return false;
    }
    return true;
}

static size_t tell_answer(const struct asking *asking, char **out_stack) {
    struct bytes answer = {0};
    bytes_init(&answer, PYTHON_DUMP_CEILING + 1);
    size_t size = answer_size(asking);
    size = size > PYTHON_DUMP_CEILING ? PYTHON_DUMP_CEILING + 1 : size;
    size_t frame_count = 0;
    if (size > 0 && bytes_reserve(&answer, size) == FAILURE_NONE) {
        ssize_t length = pread(asking->dump->fd, answer.data, size, (off_t)asking->start);
        answer.length = length > 0 ? (size_t)length : 0;
        text_append(
            &asking->report->text, "  CPython, by its own account, innermost frames first\n");
        frame_count = python_dump_describe(
            bytes_slice(&answer), asking->thread, asking->pid, &asking->report->text, out_stack);
    }
    bytes_clear(&answer);
    return frame_count;
}

bool hang_evidence_write_dump(struct hang_report *report, pid_t pid,
    const struct hang_evidence_dump *dump, char **out_stack) {
    struct asking asking = {.report = report, .dump = dump, .pid = pid};
    *out_stack = NULL;
    if (dump->signal <= 0 || dump->signal > 64 || hang_report_is_over(report)) {
        return false;
    }
    const char *objection = find_objection(&asking);
    if (objection != NULL) {
        text_append_format(&report->text, "  Python was not asked for its stacks: %s\n", objection);
        hang_report_flush(report);
        return false;
    }
    if (!ask(&asking)) {
        return false;
    }
    bool is_complete = wait_for_answer(&asking);
    size_t frame_count = tell_answer(&asking, out_stack);
    if (!is_complete) {
        text_append_format(&report->text, "  Python was asked for its stacks and %s in time\n",
            frame_count > 0 ? "did not finish" : "did not answer");
    }
    hang_report_flush(report);
    return frame_count > 0;
}
