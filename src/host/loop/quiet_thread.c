/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/quiet_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

/* Stack pages that are not touched use no memory. The resolver's plug-ins may need more stack than
 * our own code. */
#define STACK_SIZE (1024 * 1024)

enum failure_code quiet_thread_start(const char *name, void *(*run)(void *context), void *context,
    pthread_t *out_thread, struct failure *failure) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
    int status = pthread_create(out_thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (status != 0) {
        bool is_short = status == EAGAIN; /* also of memory for its stack */
        return failure_set_system(failure, status, "cannot start the thread %s%s", name,
            is_short ? ", since memory or processes (ulimit -u) are used up" : "");
    }
    pthread_setname_np(*out_thread, name);
    return FAILURE_NONE;
}
