/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said to a user about a directory that nodes share: why it cannot be used, and whether
 * other machines can see it at all. */
#ifndef MUSTER_HOST_REGISTER_DIRECTORY_KIND_H
#define MUSTER_HOST_REGISTER_DIRECTORY_KIND_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"

/* Explains the errno of a system call in that directory. `*is_final` becomes true when it will be
 * the same until the user has done something. */
enum failure_code directory_kind_fail(
    const char *path, int error, const char *what, bool *is_final, struct failure *failure);

/* The name of a file system that is never shared between machines, by the f_type of statfs(2); NULL
 * for others. */
const char *directory_kind_local_name(long type);

/* Appends one sentence for a user who waits for other nodes in a directory in which only this
 * machine has written. `fd` is open inside it. */
void directory_kind_describe(int fd, const char *path, struct text *out);

#endif
