/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_ending.h"

#include <signal.h>
#include <sys/wait.h>

#include "host/loop/number_directory.h"
#include "host/process/process_table.h"

/* Numbers of signals that stop a process show up in the same field, but end nobody. */
static bool is_stop(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static bool read_exit(int wait_status, struct process_exit *out_exit) {
    if (WIFSIGNALED(wait_status) && !is_stop(WTERMSIG(wait_status))) {
        *out_exit = (struct process_exit){.is_signal = true,
            .value = WTERMSIG(wait_status),
            .has_dumped_core = WCOREDUMP(wait_status)};
        return true;
    }
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0) {
        *out_exit = (struct process_exit){.value = WEXITSTATUS(wait_status)};
        return true;
    }
    return false;
}

struct threads {
    pid_t first;
    bool are_ending;
};

static bool visit_thread(void *context, int thread) {
    struct threads *threads = context;
    struct kernel_process_stat stat;
    if (thread == threads->first || !process_table_read(thread, &stat)) {
        return true;
    }
    bool is_killed = (stat.pending >> (SIGKILL - 1) & 1) != 0;
    bool is_ending = (stat.flags & (KERNEL_PROCESS_EXITING | KERNEL_PROCESS_DUMPED)) != 0;
    threads->are_ending = is_killed || is_ending;
    return threads->are_ending;
}

/* A thread can end alone. When the process ends, the kernel kills all others at the same moment. */
static bool are_others_ending(pid_t pid) {
    char path[NUMBER_PATH_SIZE];
    struct threads threads = {.first = pid, .are_ending = true};
    number_path_format(path, "/proc/", pid, "/task");
    return number_directory_each(path, visit_thread, &threads) && threads.are_ending;
}

bool process_ending_read(pid_t pid, uint64_t start_time, struct process_exit *out_exit) {
    struct kernel_process_stat stat;
    struct process_exit exit;
    if (!process_table_read(pid, &stat) || stat.start_time != start_time ||
        (stat.flags & KERNEL_PROCESS_EXITING) == 0 || !read_exit(stat.wait_status, &exit)) {
        return false;
    }
    /* SIGKILL ends no thread alone. */
    if (!(exit.is_signal && exit.value == SIGKILL) && !are_others_ending(pid)) {
        return false;
    }
    *out_exit = exit;
    return true;
}
