/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"

/* Of a command line, for people. */
#define COMMAND_SHOWN 100

size_t process_words_read(pid_t pid, const char *file, char *buffer, size_t size) {
    char path[NUMBER_PATH_SIZE];
    size_t used = 0;
    number_path_format(path, "/proc/", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length;
    while (used < size && (length = read(fd, buffer + used, size - used)) > 0) {
        used += (size_t)length;
    }
    close(fd);
    return used;
}

const char *process_words_variable(
    const char *start, const char *environment, size_t length, size_t *out_rest_length) {
    size_t start_length = strlen(start);
    for (size_t offset = 0; offset < length;) {
        size_t entry_length = strnlen(environment + offset, length - offset);
        if (entry_length >= start_length &&
            memcmp(environment + offset, start, start_length) == 0) {
            *out_rest_length = entry_length - start_length;
            return environment + offset + start_length;
        }
        offset += entry_length + 1;
    }
    return NULL;
}

bool process_words_find(pid_t pid, const char *start, char *out_rest, size_t size) {
    char *environment = memory_allocate(PROCESS_WORDS_ENVIRONMENT_CEILING);
    size_t length =
        process_words_read(pid, "/environ", environment, PROCESS_WORDS_ENVIRONMENT_CEILING);
    size_t rest_length = 0;
    const char *rest = process_words_variable(start, environment, length, &rest_length);
    if (rest != NULL) {
        size_t copied = rest_length < size - 1 ? rest_length : size - 1;
        memcpy(out_rest, rest, copied);
        out_rest[copied] = '\0';
    }
    free(environment);
    return rest != NULL;
}

/* A character of several bytes is left whole. */
static size_t cut(const char *words, size_t length) {
    if (length <= COMMAND_SHOWN) {
        return length;
    }
    length = COMMAND_SHOWN;
    while (length > 0 && ((unsigned char)words[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

char *process_words_command(pid_t pid) {
    char words[COMMAND_SHOWN + 1];
    struct text command = {0};
    size_t length = process_words_read(pid, "/cmdline", words, sizeof words);
    while (length > 0 && words[length - 1] == '\0') {
        length--;
    }
    if (length == 0) {
        length = process_words_read(pid, "/comm", words, sizeof words);
        length -= length > 0; /* the newline */
    }
    size_t shown = cut(words, length);
    for (size_t i = 0; i < shown; i++) {
        bool is_printable = (unsigned char)words[i] > ' ' && words[i] != 0x7f;
        text_append_bytes(&command, is_printable ? &words[i] : " ", 1);
    }
    text_append(&command, length == 0 ? "?" : shown < length ? "…" : "");
    return text_take(&command);
}

/* Name. */

/* Overwrites the command line that was inherited from the agent. */
void process_name_take(const char *name) {
    struct kernel_process_stat self;
    prctl(PR_SET_NAME, name);
    if (!process_table_read(getpid(), &self) || self.arguments_end <= self.arguments_start) {
        return;
    }
    int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (fd == -1) {
        return;
    }
    size_t size = self.arguments_end - self.arguments_start;
    char *arguments = memory_allocate(size);
    size_t length = strlen(name) < size ? strlen(name) : size - 1;
    memcpy(arguments, name, length);
    ssize_t written = pwrite(fd, arguments, size, (off_t)self.arguments_start);
    (void)written;
    free(arguments);
    close(fd);
}

/* Table. */

/* More than the longest stat line: a command name of 64 bytes and 52 numbers. */
#define STAT_SIZE 2048

/* The largest process number of any kernel (PID_MAX_LIMIT). */
#define PID_CEILING (4 << 20)

/* Reads up to `size` bytes of a small kernel file; -1 when it cannot be opened or read. */
static ssize_t read_kernel_file(const char *path, char *buffer, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t length = read(fd, buffer, size);
    close(fd);
    return length;
}

bool process_table_read(pid_t pid, struct kernel_process_stat *out_stat) {
    char path[NUMBER_PATH_SIZE];
    char line[STAT_SIZE];
    number_path_format(path, "/proc/", pid, "/stat");
    ssize_t length = read_kernel_file(path, line, sizeof line);
    if (length <= 0) {
        return false;
    }
    struct slice text = {(const uint8_t *)line, (size_t)length};
    return kernel_text_read_stat(text, out_stat) == FAILURE_NONE;
}

void process_ids_add(struct process_ids *ids, pid_t pid) {
    ids->items = memory_reserve(ids->items, &ids->capacity, ids->count + 1, sizeof *ids->items);
    ids->items[ids->count++] = pid;
}

bool process_ids_have(const struct process_ids *ids, pid_t pid) {
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->items[i] == pid) {
            return true;
        }
    }
    return false;
}

void process_ids_clear(struct process_ids *ids) {
    free(ids->items);
    *ids = (struct process_ids){0};
}

struct thread_children {
    pid_t pid;
    struct process_ids *children;
    bool is_listed; /* the kernel has the files that list children */
};

/* Adds the blank-separated pids that can be read from `fd`. */
static void add_listed_children(int fd, struct process_ids *children) {
    char buffer[1024];
    pid_t pid = 0;
    ssize_t length;
    while ((length = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < length; i++) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                pid = pid * 10 + (buffer[i] - '0');
            } else if (pid != 0) {
                process_ids_add(children, pid);
                pid = 0;
            }
        }
    }
}

static bool add_children_of_thread(void *context, int thread) {
    struct thread_children *search = context;
    char path[NUMBER_PATH_SIZE];
    char tail[NUMBER_PATH_SIZE];
    number_path_format(tail, "/task/", thread, "/children");
    number_path_format(path, "/proc/", search->pid, tail);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        search->is_listed = true;
        add_listed_children(fd, search->children);
        close(fd);
    }
    return true;
}

static bool add_if_child(void *context, pid_t pid) {
    struct thread_children *search = context;
    struct kernel_process_stat stat;
    if (process_table_read(pid, &stat) && stat.parent == search->pid) {
        process_ids_add(search->children, pid);
    }
    return true;
}

void process_table_children_by_search(pid_t pid, struct process_ids *out_children) {
    struct thread_children search = {.pid = pid, .children = out_children};
    process_table_each(add_if_child, &search);
}

void process_table_children(pid_t pid, struct process_ids *out_children) {
    struct thread_children search = {.pid = pid, .children = out_children};
    char path[NUMBER_PATH_SIZE];
    number_path_format(path, "/proc/", pid, "/task");
    bool exists = number_directory_each(path, add_children_of_thread, &search);
    if (exists && !search.is_listed) {
        process_table_children_by_search(pid, out_children);
    }
}

bool process_table_each(bool (*visit)(void *context, pid_t pid), void *context) {
    return number_directory_each("/proc", visit, context);
}

static bool is_still(const struct kernel_process_stat *known) {
    struct kernel_process_stat now;
    return process_table_read((pid_t)known->pid, &now) && now.start_time == known->start_time;
}

/* The pidfd of a process that was `known` when it was opened. A seccomp profile may deny the system
 * call for pidfds alone. Then the number has to do, right after it was compared. */
static bool signal_by_pidfd(int pidfd, const struct kernel_process_stat *known, int signal) {
    if (pidfd_signal(pidfd, signal)) {
        return true;
    }
    return errno != ESRCH && is_still(known) && kill((pid_t)known->pid, signal) == 0;
}

bool process_table_signal(const struct kernel_process_stat *known, int signal) {
    pid_t pid = (pid_t)known->pid;
    int fd = pidfd_open_process(pid);
    bool has_sent = false;
    if (fd >= 0) {
        /* From here on the descriptor refers to one process only. Before pidfd_open the pid may
         * have been reused, so it is compared again. */
        has_sent = is_still(known) && signal_by_pidfd(fd, known, signal);
        close(fd);
    } else if (errno != ESRCH) {
        has_sent = is_still(known) && kill(pid, signal) == 0;
    }
    return has_sent;
}

/* Without /proc. */

bool process_table_is_there(void) {
    struct kernel_process_stat self;
    return process_table_read(getpid(), &self);
}

/* The number that a process gets which is started now; the largest possible one when none can be
 * started. A signal handler must not run in the child, which shares the memory. */
static pid_t newest_number(void) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork();
    if (pid == 0) {
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid > 0 ? pid : PID_CEILING;
}

static void add_children_between(pid_t first, pid_t last, struct process_ids *children) {
    for (pid_t pid = first; pid <= last; pid++) {
        siginfo_t info;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
            process_ids_add(children, pid);
        }
    }
}

void process_table_own_children(struct process_ids *out_children) {
    pid_t newest = newest_number();
    size_t before = out_children->count;
    siginfo_t info;
    if (newest > getpid()) {
        add_children_between(getpid() + 1, newest, out_children);
    }
    bool has_children = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (out_children->count == before && has_children) { /* the numbers began anew meanwhile */
        add_children_between(2, PID_CEILING, out_children);
    }
}

/* Kin. */

/* No sum of a random number and this is a limit that somebody would set, nor RLIM_INFINITY. */
#define LEAST_LIMIT (UINT64_C(1) << 62)

bool process_kin_may_meet_strangers(void) {
    siginfo_t info;
    return getpid() == 1 || waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Tries it on this process, because a sandbox may refuse it. */
uint64_t process_kin_choose_limit(void) {
    uint64_t limit = LEAST_LIMIT + random_seed() % LEAST_LIMIT;
    struct rlimit before;
    if (getrlimit(RLIMIT_LOCKS, &before) != 0) {
        return 0;
    }
    process_kin_take_limit(limit);
    bool is_taken = process_kin_has_limit(getpid(), limit) == PROCESS_KIN_YES;
    return setrlimit(RLIMIT_LOCKS, &before) == 0 && is_taken ? limit : 0;
}

void process_kin_take_limit(uint64_t limit) {
    struct rlimit locks;
    if (limit != 0 && getrlimit(RLIMIT_LOCKS, &locks) == 0) {
        locks.rlim_cur = limit;
        (void)setrlimit(RLIMIT_LOCKS, &locks);
    }
}

enum process_kin_answer process_kin_has_limit(pid_t pid, uint64_t limit) {
    struct rlimit locks;
    if (limit == 0 || prlimit(pid, RLIMIT_LOCKS, NULL, &locks) != 0) {
        return PROCESS_KIN_UNKNOWN;
    }
    return locks.rlim_cur == limit ? PROCESS_KIN_YES : PROCESS_KIN_NO;
}
