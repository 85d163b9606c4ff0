/* SPDX-License-Identifier: BSD-3-Clause */
/* What the function of a worker gives back: a file in memory that the worker writes before it ends,
 * and the agent reads when it has ended well. Nobody waits for anybody, and a worker that is killed
 * meanwhile has given nothing back. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_VALUE_H
#define MUSTER_AGENT_WORKERS_WORKER_VALUE_H

#include "base/bytes.h"
#include "base/failure.h"

/* A zeroed struct has no file. */
struct worker_value {
    int fd; /* 0: none, since standard input is open in the agent */
};

/* Makes the file; its descriptor stays the value's. */
__attribute__((warn_unused_result)) enum failure_code worker_value_open(
    struct worker_value *value, int *out_fd, struct failure *failure);

/* In the worker, once. FAILURE_LIMIT above RUN_RETURN_VALUE_MAXIMUM, FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code worker_value_write(
    int fd, struct slice bytes, struct failure *failure);

/* Appends what was written: nothing where there is no file, or more in it than there may be. */
void worker_value_read(const struct worker_value *value, struct bytes *out_bytes);

void worker_value_clear(struct worker_value *value);

#endif
