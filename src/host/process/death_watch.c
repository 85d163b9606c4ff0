/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/death_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/table.h"
#include "host/process/pidfd.h"

struct watched {
    struct death_watch *watch;
    pid_t pid;
    int pidfd;
    struct event_descriptor *descriptor;
};

struct death_watch {
    struct event_loop *loop;
    struct table *watched; /* by pid */
    size_t maximum;
    void (*ended)(void *context, pid_t pid);
    void *context;
};

static struct slice pid_key(const pid_t *pid) {
    return (struct slice){(const uint8_t *)pid, sizeof *pid};
}

static void free_watched(void *value) {
    struct watched *watched = value;
    event_descriptor_free(watched->descriptor);
    close(watched->pidfd);
    free(watched);
}

struct death_watch *death_watch_new(struct event_loop *loop, size_t maximum,
    void (*ended)(void *context, pid_t pid), void *context) {
    struct death_watch *watch = memory_allocate(sizeof *watch);
    *watch = (struct death_watch){loop, table_new(free_watched), maximum, ended, context};
    return watch;
}

void death_watch_free(struct death_watch *watch) {
    if (watch != NULL) {
        table_free(watch->watched);
        free(watch);
    }
}

static void pidfd_readable(void *context) {
    struct watched *watched = context;
    struct death_watch *watch = watched->watch;
    pid_t pid = watched->pid;
    death_watch_remove(watch, pid);
    watch->ended(watch->context, pid);
}

bool death_watch_add(struct death_watch *watch, pid_t pid) {
    if (table_get(watch->watched, pid_key(&pid)) != NULL ||
        table_count(watch->watched) >= watch->maximum) {
        return true;
    }
    int pidfd = pidfd_open_process(pid);
    if (pidfd < 0) {
        return errno != ESRCH;
    }
    struct watched *watched = memory_allocate(sizeof *watched);
    *watched = (struct watched){.watch = watch, .pid = pid, .pidfd = pidfd};
    if (event_descriptor_new(watch->loop, pidfd, pidfd_readable, watched, &watched->descriptor,
            NULL) == FAILURE_NONE) {
        table_put(watch->watched, pid_key(&pid), watched);
    } else {
        free_watched(watched);
    }
    return true;
}

void death_watch_remove(struct death_watch *watch, pid_t pid) {
    table_remove(watch->watched, pid_key(&pid));
}

void death_watch_remove_all(struct death_watch *watch) {
    table_free(watch->watched);
    watch->watched = table_new(free_watched);
}
