/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "host/loop/blocking_pool.h"

struct seen {
    bool blocks_termination;
};

static void *look_around(void *context) {
    struct seen *seen = context;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    seen->blocks_termination = sigismember(&blocked, SIGTERM) == 1;
    return NULL;
}

TEST(signals_stay_with_the_thread_that_started_it) {
    struct seen seen = {0};
    pthread_t thread;
    assert_int_equal(
        quiet_thread_start("muster-test", look_around, &seen, &thread, NULL), FAILURE_NONE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(seen.blocks_termination);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_int_equal(sigismember(&blocked, SIGTERM), 0);
}
