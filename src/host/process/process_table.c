/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/number_directory.h"
#include "host/process/pidfd.h"

/* More than the longest stat line: a command name of 64 bytes and 52 numbers. */
#define STAT_SIZE 2048

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

bool process_table_signal(const struct kernel_process_stat *known, int signal) {
    pid_t pid = (pid_t)known->pid;
    int fd = pidfd_open_process(pid);
    bool has_sent = false;
    if (fd >= 0) {
        /* From here on the descriptor refers to one process only. Before pidfd_open the pid may
         * have been reused, so it is compared again. */
        has_sent = is_still(known) && pidfd_signal(fd, signal);
        close(fd);
    } else if (errno != ESRCH) {
        has_sent = is_still(known) && kill(pid, signal) == 0;
    }
    return has_sent;
}
