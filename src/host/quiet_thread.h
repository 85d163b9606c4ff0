/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a thread that no signal is ever delivered to, with a small stack: the store's and the
 * logs'. */
#ifndef MUSTER_HOST_QUIET_THREAD_H
#define MUSTER_HOST_QUIET_THREAD_H

#include <pthread.h>

#include "base/failure.h"

/* `name` (at most 15 characters) is shown by ps and top. The caller joins the thread. */
__attribute__((warn_unused_result)) enum failure_code quiet_thread_start(const char *name,
    void *(*run)(void *context), void *context, pthread_t *out_thread, struct failure *failure);

#endif
