/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/file_change_watch.h"

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/memory.h"

/* Watches closing instead of each write, because FileStore's writers write in pieces and have
 * unlocked when they close. Removing a file that is still open first changes its attributes. */
#define CHANGES (IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define READ_SIZE 4096

struct file_change_watch {
    int fd;
    struct event_descriptor *descriptor;
    void (*changed)(void *context);
    void *context;
};

bool file_change_watch_drain(struct file_change_watch *watch) {
    char events[READ_SIZE];
    bool has_changed = false;
    while (watch != NULL && read(watch->fd, events, sizeof events) > 0) {
        has_changed = true;
    }
    return has_changed;
}

static void readable(void *context) {
    struct file_change_watch *watch = context;
    if (file_change_watch_drain(watch)) {
        watch->changed(watch->context);
    }
}

struct file_change_watch *file_change_watch_new(
    struct event_loop *loop, const char *path, void (*changed)(void *context), void *context) {
    struct file_change_watch *watch = memory_allocate(sizeof *watch);
    watch->changed = changed;
    watch->context = context;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0 || inotify_add_watch(watch->fd, path, CHANGES) < 0 ||
        event_descriptor_new(loop, watch->fd, readable, watch, &watch->descriptor, NULL) !=
            FAILURE_NONE) {
        file_change_watch_free(watch);
        return NULL;
    }
    return watch;
}

void file_change_watch_free(struct file_change_watch *watch) {
    if (watch == NULL) {
        return;
    }
    event_descriptor_free(watch->descriptor);
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    free(watch);
}
