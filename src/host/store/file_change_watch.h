/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports by inotify that a file has been written and closed, removed or replaced. Changes by other
 * hosts on a network file system are not reported, and the kernel may have no watch left. So users
 * of this module must also look at the file themselves from time to time. */
#ifndef MUSTER_HOST_STORE_FILE_CHANGE_WATCH_H
#define MUSTER_HOST_STORE_FILE_CHANGE_WATCH_H

#include <stdbool.h>

#include "host/loop/event_loop.h"

struct file_change_watch;

/* NULL when the file cannot be watched. Several changes may cause one call. */
struct file_change_watch *file_change_watch_new(
    struct event_loop *loop, const char *path, void (*changed)(void *context), void *context);
/* May be called from inside its callback. Accepts NULL. */
void file_change_watch_free(struct file_change_watch *watch);

/* Drops changes that have not been reported yet. Returns whether there were any. Accepts NULL
 * (false). */
bool file_change_watch_drain(struct file_change_watch *watch);

#endif
