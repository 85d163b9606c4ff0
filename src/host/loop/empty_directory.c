/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/empty_directory.h"

#include <ftw.h>
#include <unistd.h>

#define WALK_DESCRIPTORS 8

static int stop_at_file(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)path;
    (void)status;
    (void)place;
    return kind == FTW_D ? 0 : 1;
}

/* rmdir() refuses what is not empty, so a file that appears meanwhile is safe. */
static int remove_directory(
    const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return rmdir(path);
}

bool empty_directory_remove(const char *path) {
    return nftw(path, stop_at_file, WALK_DESCRIPTORS, FTW_PHYS) == 0 &&
           nftw(path, remove_directory, WALK_DESCRIPTORS, FTW_PHYS | FTW_DEPTH) == 0;
}
