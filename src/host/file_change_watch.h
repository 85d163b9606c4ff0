/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells when a file has been written and closed, removed or replaced, by inotify. What other hosts
 * do to a file on a network file system is not told; and where the kernel has no watch left there
 * is none. So who uses this looks by himself too, only less often. */
#ifndef MUSTER_HOST_FILE_CHANGE_WATCH_H
#define MUSTER_HOST_FILE_CHANGE_WATCH_H

#include <stdbool.h>

#include "host/event_loop.h"

struct file_change_watch;

/* NULL when the file cannot be watched. Several changes may be one call. */
struct file_change_watch *file_change_watch_new(
    struct event_loop *loop, const char *path, void (*changed)(void *context), void *context);
/* Also from inside its callback. NULL is fine. */
void file_change_watch_free(struct file_change_watch *watch);

/* Forgets changes that have not been told yet; whether there were any. NULL is fine (false). */
bool file_change_watch_drain(struct file_change_watch *watch);

#endif
