/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/library_server.h"

#include <stddef.h>

#include "library/library_failure.h"
#include "library/library_memory.h"

enum muster_error library_server_check(
    const struct embedded_loop *loop, struct muster_failure *out_failure) {
    if (loop == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "the server is NULL");
    }
    if (!embedded_loop_is_of_this_process(loop)) {
        return library_fail(
            out_failure, MUSTER_ERROR_FORKED, "the server belongs to the process that has made it");
    }
    return MUSTER_OK;
}

enum muster_error library_server_check_outside(
    const struct embedded_loop *loop, struct muster_failure *out_failure) {
    enum muster_error error = library_server_check(loop, out_failure);
    if (error == MUSTER_OK && embedded_loop_is_running(loop)) {
        return library_fail(out_failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    return error;
}

enum muster_error library_server_process(
    struct embedded_loop *loop, struct muster_failure *out_failure) {
    enum muster_error error = library_server_check_outside(loop, out_failure);
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error == MUSTER_OK) {
        embedded_loop_process(loop);
    }
    return error;
}
