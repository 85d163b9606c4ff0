/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a thread with a small stack to which no signal is ever delivered: the store thread, the
 * log thread, and threads for work that may block. */
#ifndef MUSTER_HOST_LOOP_QUIET_THREAD_H
#define MUSTER_HOST_LOOP_QUIET_THREAD_H

#include <pthread.h>

#include "base/failure.h"

/* `name` (at most 15 characters) is shown by ps and top. The caller joins the thread. */
__attribute__((warn_unused_result)) enum failure_code quiet_thread_start(const char *name,
    void *(*run)(void *context), void *context, pthread_t *out_thread, struct failure *failure);

#endif
