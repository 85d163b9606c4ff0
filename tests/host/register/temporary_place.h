/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory for one test, removed with all that is in it. */
#ifndef MUSTER_TESTS_HOST_REGISTER_TEMPORARY_PLACE_H
#define MUSTER_TESTS_HOST_REGISTER_TEMPORARY_PLACE_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static inline char *temporary_place_new(void) {
    char *path = text_format("/tmp/muster-register-test.XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int temporary_place_remove_one(
    const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Frees the path. A thread that a register has left behind may still be inside: it finds no way in
 * again, and what it makes meanwhile is removed, too. */
static inline void temporary_place_free(char *path) {
    char *closed = text_format("%s.closed", path);
    assert_int_equal(rename(path, closed), 0);
    while (nftw(closed, temporary_place_remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0) {
        usleep(1000);
    }
    free(closed);
    free(path);
}

#endif
