/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists directories whose entries are numbers, as /proc, /proc/<pid>/task and /proc/self/fd are.
 * Without allocating, so that a child between fork and exec may use it. */
#ifndef MUSTER_HOST_NUMBER_DIRECTORY_H
#define MUSTER_HOST_NUMBER_DIRECTORY_H

#include <stdbool.h>

/* Room for the longest path below. */
#define NUMBER_PATH_SIZE 64

/* Calls `visit` for each entry whose name is a number until it returns false; other names are
 * passed over. False when the directory cannot be read. Async-signal-safe. */
bool number_directory_each(
    const char *path, bool (*visit)(void *context, int number), void *context);

/* Writes before, the number in decimal, and after. Async-signal-safe. */
void number_path_format(
    char path[NUMBER_PATH_SIZE], const char *before, int number, const char *after);

#endif
