/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/directory_kind.h"

#include <errno.h>
#include <stddef.h>
#include <sys/vfs.h>

struct explanation {
    int error;
    bool is_final;
    const char *advice;
};

/* A directory that is full, away or not permitted now may be fine later, but not by itself. */
static const struct explanation explanations[] = {
    {ENOENT, true, "make it first, on a file system that all nodes share"},
    {ENOTDIR, true, "--rdzv-backend dir needs a directory"},
    {ELOOP, true, "it is a circle of symbolic links"},
    {ENAMETOOLONG, true, "the path is too long"},
    {EACCES, true, "this user must be able to read and write there"},
    {EPERM, true, "this user must be able to write there, and the file system to make hard links"},
    {EOPNOTSUPP, true, "the file system must be able to make hard links"},
    {ENOSYS, true, "the file system must be able to make hard links"},
    {EMLINK, true, "the file system must be able to make hard links"},
    {EROFS, true, "it must be mounted for writing"},
    {ENOSPC, true, "the file system is full: remove something"},
    {EDQUOT, true, "your quota there is used up: remove something"},
    {EIO, false, "its disk or its server fails: the kernel's log says more"},
    {EREMOTEIO, false, "its server fails"},
    {ESTALE, false, "its server has another file system there by now: mount it again"},
    {ETIMEDOUT, false, "its server does not answer"},
    {EHOSTDOWN, false, "its server does not answer"},
    {ENOTCONN, false, "its mount has lost its server: mount it again"},
};

enum failure_code directory_kind_fail(
    const char *path, int error, const char *what, bool *is_final, struct failure *failure) {
    for (size_t i = 0; i < sizeof explanations / sizeof *explanations; i++) {
        if (explanations[i].error == error) {
            *is_final = explanations[i].is_final;
            return failure_set_system(failure, error,
                "the directory of --rdzv-endpoint, %s: %s (%s)", path, what,
                explanations[i].advice);
        }
    }
    *is_final = false;
    return failure_set_system(
        failure, error, "the directory of --rdzv-endpoint, %s: %s", path, what);
}

const char *directory_kind_local_name(long type) {
    /* from linux/magic.h and the file systems' own headers */
    static const struct {
        long type;
        const char *name;
    } kinds[] = {
        {0xef53, "ext4"},
        {0x58465342, "xfs"},
        {0x9123683e, "btrfs"},
        {0x2fc12fc1, "zfs"},
        {0xf2f52010, "f2fs"},
        {0x01021994, "tmpfs"},
        {(long)0x858458f6, "ramfs"},
        {0x794c7630, "overlay"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].type == type) {
            return kinds[i].name;
        }
    }
    return NULL;
}

void directory_kind_describe(int fd, const char *path, struct text *out) {
    struct statfs status;
    const char *local =
        fstatfs(fd, &status) == 0 ? directory_kind_local_name((long)status.f_type) : NULL;
    if (local != NULL) {
        text_append_format(out,
            "the directory of --rdzv-endpoint, %s, is on a file system of this machine alone (%s): "
            "nodes on other machines see another directory of that name",
            path, local);
    } else {
        text_append_format(out,
            "only this machine has written in the directory of --rdzv-endpoint, %s: other nodes "
            "have not come, or see another directory of that name",
            path);
    }
}
