/* SPDX-License-Identifier: BSD-3-Clause */
/* Files without a name, in memory (memfd): what an agent and its workers pass to each other. All
 * are close-on-exec. */
#ifndef MUSTER_HOST_STANDBY_MEMORY_FILE_H
#define MUSTER_HOST_STANDBY_MEMORY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"

/* An empty file. Whoever shares the open file only appends to it, where `appends` is set. */
__attribute__((warn_unused_result)) enum failure_code memory_file_new(
    const char *name, bool appends, int *out_fd, struct failure *failure);

/* The same, appended to behind a head of `head` bytes, which are zero at first. The head stays:
 * nobody can make the file shorter, so it may be mapped. */
__attribute__((warn_unused_result)) enum failure_code memory_file_with_head(
    const char *name, size_t head, int *out_fd, struct failure *failure);

/* Writes all of it. */
__attribute__((warn_unused_result)) enum failure_code memory_file_write(
    int fd, struct slice bytes, struct failure *failure);

/* A file with these bytes, which nobody changes any more. */
__attribute__((warn_unused_result)) enum failure_code memory_file_of(
    const char *name, struct slice bytes, int *out_fd, struct failure *failure);

/* Appends what the file has from `start` on, up to `ceiling` bytes, to `out_bytes`, wherever others
 * are in it. */
void memory_file_read(int fd, size_t start, size_t ceiling, struct bytes *out_bytes);

/* Gives the memory between these places back, but for parts of pages. It reads as zeros then. */
void memory_file_forget(int fd, size_t start, size_t end);

size_t memory_file_length(int fd);

#endif
