/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/inherited_descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/loop/number_directory.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define FLAG_CLOSE_ON_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC */

/* The highest descriptor tried when there is neither close_range nor /proc. */
#define DESCRIPTORS_CEILING 65536

static bool mark_close_on_exec(void *context, int fd) {
    const int *first = context;
    if (fd >= *first) {
        fcntl(fd, F_SETFD,
            FD_CLOEXEC); /* fails for a number that is no open descriptor, which does not matter */
    }
    return true;
}

static int descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > DESCRIPTORS_CEILING) {
        return DESCRIPTORS_CEILING;
    }
    return (int)limit.rlim_cur;
}

void inherited_descriptors_end_at_exec_one_by_one(int first) {
    if (!number_directory_each("/proc/self/fd", mark_close_on_exec, &first)) {
        int limit = descriptor_limit();
        for (int fd = first; fd < limit; fd++) {
            mark_close_on_exec(&first, fd);
        }
    }
}

void inherited_descriptors_end_at_exec(int first) {
    if (syscall(SYS_close_range, (unsigned)first, ~0U, FLAG_CLOSE_ON_EXEC) != 0) {
        inherited_descriptors_end_at_exec_one_by_one(first);
    }
}

void inherited_descriptors_close(int first) {
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) != 0) {
        int limit = descriptor_limit();
        for (int fd = first; fd < limit; fd++) {
            close(fd);
        }
    }
}
