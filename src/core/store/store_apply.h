/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of the store, one function each. This is a part of store_table. store_table.h and
 * store_request.h say what each operation does. */
#ifndef MUSTER_CORE_STORE_STORE_APPLY_H
#define MUSTER_CORE_STORE_STORE_APPLY_H

#include "core/store/store_step.h"

/* Operations on values and counters. */
void store_apply_set(const struct store_step *step);
void store_apply_append(const struct store_step *step);
void store_apply_compare_set(const struct store_step *step);
void store_apply_get(const struct store_step *step);
void store_apply_add(const struct store_step *step);
void store_apply_delete(const struct store_step *step);
void store_apply_multi_get(const struct store_step *step);
void store_apply_multi_set(const struct store_step *step);
void store_apply_count_keys(const struct store_step *step);
void store_apply_list_keys(const struct store_step *step);

/* Operations on queues. */
void store_apply_queue_push(const struct store_step *step);
void store_apply_queue_pop(const struct store_step *step);
void store_apply_queue_length(const struct store_step *step);

/* Operations on keys alone: checking for keys, waiting for keys, and the barrier. */
void store_apply_check(const struct store_step *step);
void store_apply_wait(const struct store_step *step);
void store_apply_cancel_wait(const struct store_step *step);
void store_apply_barrier(const struct store_step *step);

/* Any operation that the host does not let the client make; see store_table_refuse. */
void store_apply_refused(const struct store_step *step, const char *reason);

#endif
