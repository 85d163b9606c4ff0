/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function of the library asks before it works, so that it fails where there is no memory.
 * Small things have no failure in the house: see base/spare_memory.h. */
#ifndef MUSTER_LIBRARY_LIBRARY_MEMORY_H
#define MUSTER_LIBRARY_LIBRARY_MEMORY_H

#include <stdbool.h>

#include <muster/error.h>

/* MUSTER_ERROR_MEMORY where there is not enough for the small things of one step. */
enum muster_error library_memory_check(struct muster_failure *out_failure);

/* The same as errno, for functions that have no other error. */
bool library_memory_is_there(void);

#endif
