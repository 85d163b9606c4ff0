/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/descriptor_limit.h"

#include <sys/resource.h>

void descriptor_limit_raise(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
