/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on queues. A part of store_table; what each does is said there and in
 * store_request.h. */
#ifndef MUSTER_CORE_STORE_QUEUE_OPERATIONS_H
#define MUSTER_CORE_STORE_QUEUE_OPERATIONS_H

#include "core/store_step.h"

void store_apply_queue_push(const struct store_step *step);
void store_apply_queue_pop(const struct store_step *step);
void store_apply_queue_length(const struct store_step *step);

#endif
