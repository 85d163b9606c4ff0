/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that cannot fail: an allocation succeeds, if need be from the reserves of
 * base/spare_memory, or ends the process. Sizes that a peer controls are checked against a ceiling
 * before they reach this module, and whoever may fail asks base/spare_memory for them first. */
#ifndef MUSTER_BASE_MEMORY_H
#define MUSTER_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed memory of `size` bytes (at least one); the caller frees it with free(). */
void *memory_allocate(size_t size);

/* Like realloc; new bytes are not zeroed. The caller frees the result with free(). */
void *memory_reallocate(void *old, size_t size);

/* A copy of `size` bytes; the caller frees it with free(). */
void *memory_duplicate(const void *source, size_t size);

/* A copy of a NUL-terminated string; NULL stays NULL. The caller frees it with free(). */
char *memory_duplicate_string(const char *source);

/* Makes room for at least `needed` items of `item_size` bytes, doubling the capacity.
 * `*capacity` is in items. Returns the (possibly moved) array. */
void *memory_reserve(void *items, size_t *capacity, size_t needed, size_t item_size);

#endif
