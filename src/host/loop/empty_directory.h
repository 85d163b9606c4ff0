/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes a directory in which nobody has left anything but directories. It waits for the disk. */
#ifndef MUSTER_HOST_LOOP_EMPTY_DIRECTORY_H
#define MUSTER_HOST_LOOP_EMPTY_DIRECTORY_H

#include <stdbool.h>

/* Removes `path` and the directories below it, if there is nothing else. Links are not followed.
 * Returns whether it is gone. */
bool empty_directory_remove(const char *path);

#endif
