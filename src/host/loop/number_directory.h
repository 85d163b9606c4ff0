/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists directories whose entries are numbers (/proc, /proc/<pid>/task, /proc/self/fd) or are named
 * <prefix><number> (/dev/nvidia0). The async-signal-safe functions also allocate nothing, so that a
 * child between fork and exec may use them. */
#ifndef MUSTER_HOST_LOOP_NUMBER_DIRECTORY_H
#define MUSTER_HOST_LOOP_NUMBER_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

/* Room for the longest path below. */
#define NUMBER_PATH_SIZE 64

/* Calls `visit` for each entry whose name is a number until it returns false. Other names are
 * ignored. False when the directory cannot be read. Async-signal-safe. */
bool number_directory_each(
    const char *path, bool (*visit)(void *context, int number), void *context);

/* The maximum number of entries that are listed. Higher numbers are not listed either. */
#define NUMBER_LIST_CEILING 4096
#define NUMBER_LIST_HIGHEST 999999

/* A zeroed struct is an empty list. */
struct number_list {
    int *items; /* ascending */
    size_t count;
    size_t capacity;
};

/* The numbers of the entries named <prefix><number>; `prefix` may be empty. The list is empty when
 * the directory cannot be read. The caller clears the result. */
struct number_list number_directory_list(const char *path, const char *prefix);
void number_list_clear(struct number_list *list);

/* Writes `before`, the number in decimal, and `after`. Async-signal-safe. */
void number_path_format(
    char path[NUMBER_PATH_SIZE], const char *before, int number, const char *after);

#endif
