/* SPDX-License-Identifier: BSD-3-Clause */
/* The failures of the house, as the public header muster/error.h words them. */
#ifndef MUSTER_LIBRARY_LIBRARY_FAILURE_H
#define MUSTER_LIBRARY_LIBRARY_FAILURE_H

#include <muster/error.h>

#include "base/failure.h"

enum muster_error library_error(enum failure_code code);

/* Fills in `out_failure`, which may be NULL, and returns `error`. */
__attribute__((format(printf, 3, 4))) enum muster_error library_fail(
    struct muster_failure *out_failure, enum muster_error error, const char *format, ...);

/* The same with what a function of the house has said. */
enum muster_error library_pass_on(
    struct muster_failure *out_failure, const struct failure *failure);

#endif
