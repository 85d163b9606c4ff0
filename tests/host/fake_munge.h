/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of made-up daemons of munge (fake_munge.c), as empty files of a directory. */
#ifndef MUSTER_TESTS_HOST_FAKE_MUNGE_H
#define MUSTER_TESTS_HOST_FAKE_MUNGE_H

#include "temporary_tree.h"

#define FAKE_MUNGE TESTS_BUILD_DIRECTORY "/libfake_munge.so"

/* The path of a socket with this name; the caller frees it. */
static inline char *fake_munge_socket(const struct temporary_tree *tree, const char *name) {
    char *path = temporary_tree_path(tree, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

#endif
