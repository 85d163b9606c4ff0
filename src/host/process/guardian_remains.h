/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent that was killed leaves in the file system: a FIFO, a socket, a directory without
 * any file, a directory that goes with all that is in it. The guardian process removes it. Nothing
 * is removed that another process uses, that belongs to another user, or that has come to the same
 * path since. */
#ifndef MUSTER_HOST_PROCESS_GUARDIAN_REMAINS_H
#define MUSTER_HOST_PROCESS_GUARDIAN_REMAINS_H

#include <stddef.h>
#include <stdint.h>

#include "host/loop/owned_tree.h"

enum guardian_remains_kind {
    GUARDIAN_REMAINS_FIFO,      /* removed when nobody reads it */
    GUARDIAN_REMAINS_SOCKET,    /* removed when nobody listens */
    GUARDIAN_REMAINS_DIRECTORY, /* removed with the directories in it when there is no file */
    GUARDIAN_REMAINS_TREE,      /* removed with everything in it; it is there when it is added */
};

struct guardian_remainder {
    enum guardian_remains_kind kind;
    char *path;             /* absolute */
    struct owned_tree tree; /* GUARDIAN_REMAINS_TREE */
};

/* A zeroed struct is a valid empty list. */
struct guardian_remains {
    struct guardian_remainder *items;
    size_t count;
    size_t capacity;
};

/* Copies the path. Looks at what is there when that is a tree. */
void guardian_remains_add(
    struct guardian_remains *remains, enum guardian_remains_kind kind, const char *path);
void guardian_remains_clear(struct guardian_remains *remains);

/* Removes everything in the list. Changes the working directory. It waits for the disk. */
void guardian_remains_remove(const struct guardian_remains *remains);

#endif
