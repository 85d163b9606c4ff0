/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/descriptor_limit.h"

#include <stdbool.h>
#include <sys/resource.h>

/* The limit is the process', and so is what is kept of it; stores ask on threads of their own. */
static _Atomic uint64_t kept;

void descriptor_limit_keep(uint64_t count) {
    kept = count;
}

uint64_t descriptor_limit_kept(void) {
    return kept;
}

long descriptor_limit_raise(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) {
        return -1;
    }
    long before = (long)limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? before : -1;
}

uint64_t descriptor_limit_read(void) {
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

void descriptor_limit_restore(long soft_limit) {
    struct rlimit limit;
    if (soft_limit >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = (rlim_t)soft_limit;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
