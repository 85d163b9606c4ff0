/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_kin.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/clock.h"

/* No sum of a random number and this is a limit that somebody would set, nor RLIM_INFINITY. */
#define LEAST_LIMIT (UINT64_C(1) << 62)

bool process_kin_may_meet_strangers(void) {
    siginfo_t info;
    return getpid() == 1 || waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Tries it on this process, because a sandbox may refuse it. */
uint64_t process_kin_choose_limit(void) {
    uint64_t limit = LEAST_LIMIT + random_seed() % LEAST_LIMIT;
    struct rlimit before;
    if (getrlimit(RLIMIT_LOCKS, &before) != 0) {
        return 0;
    }
    process_kin_take_limit(limit);
    bool is_taken = process_kin_has_limit(getpid(), limit) == PROCESS_KIN_YES;
    return setrlimit(RLIMIT_LOCKS, &before) == 0 && is_taken ? limit : 0;
}

void process_kin_take_limit(uint64_t limit) {
    struct rlimit locks;
    if (limit != 0 && getrlimit(RLIMIT_LOCKS, &locks) == 0) {
        locks.rlim_cur = limit;
        (void)setrlimit(RLIMIT_LOCKS, &locks);
    }
}

enum process_kin_answer process_kin_has_limit(pid_t pid, uint64_t limit) {
    struct rlimit locks;
    if (limit == 0 || prlimit(pid, RLIMIT_LOCKS, NULL, &locks) != 0) {
        return PROCESS_KIN_UNKNOWN;
    }
    return locks.rlim_cur == limit ? PROCESS_KIN_YES : PROCESS_KIN_NO;
}
