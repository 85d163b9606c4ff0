/* SPDX-License-Identifier: BSD-3-Clause */
/* What every function of an embedded server asks first. */
#ifndef MUSTER_LIBRARY_LIBRARY_SERVER_H
#define MUSTER_LIBRARY_LIBRARY_SERVER_H

#include <muster/error.h>

#include "host/loop/embedded_loop.h"

/* `loop` is the server's, or NULL where the program has handed in no server: MUSTER_ERROR_INVALID.
 * MUSTER_ERROR_FORKED in a child of the process that has made it. */
enum muster_error library_server_check(
    const struct embedded_loop *loop, struct muster_failure *out_failure);

/* The same, and MUSTER_ERROR_STATE from inside a callback of the server's. */
enum muster_error library_server_check_outside(
    const struct embedded_loop *loop, struct muster_failure *out_failure);

/* The same, and then does what there is to do; MUSTER_ERROR_MEMORY where that needs more than there
 * is. */
enum muster_error library_server_process(
    struct embedded_loop *loop, struct muster_failure *out_failure);

#endif
