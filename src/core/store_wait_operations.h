/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that ask for keys without reading them, wait for them, or gather at one. A part of
 * store_table; what each does is said there and in store_request.h. */
#ifndef MUSTER_CORE_STORE_WAIT_OPERATIONS_H
#define MUSTER_CORE_STORE_WAIT_OPERATIONS_H

#include "core/store_step.h"

void store_apply_check(const struct store_step *step);
void store_apply_wait(const struct store_step *step);
void store_apply_cancel_wait(const struct store_step *step);
void store_apply_barrier(const struct store_step *step);

#endif
