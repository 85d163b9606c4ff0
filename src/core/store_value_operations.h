/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on values and counters. A part of store_table; what each does is said there and in
 * store_request.h. */
#ifndef MUSTER_CORE_STORE_VALUE_OPERATIONS_H
#define MUSTER_CORE_STORE_VALUE_OPERATIONS_H

#include "core/store_step.h"

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

#endif
