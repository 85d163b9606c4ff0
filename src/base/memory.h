/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that cannot fail: an allocation succeeds, if need be from the reserves, or ends
 * the process. Sizes that a peer controls are checked against a ceiling
 * before they reach this module, and whoever may fail asks for them first. */
#ifndef MUSTER_BASE_MEMORY_H
#define MUSTER_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* What is asked before memory is taken that has no failure. A function that may
 * fail first keeps a reserve, which is given up when the system has no more: so what that
 * function then takes in small pieces is there. Memory whose size a peer or a user says is asked
 * for by its size. */

/* Whether the process has its reserve, which is taken again where it was given up. Any thread may
 * ask. */
bool spare_memory_keep_reserve(void);

/* The same for a second one, which is given up after the first: for who ends in order when the
 * first is gone for good. */
bool spare_memory_keep_last_reserve(void);
bool spare_memory_has_last_reserve(void);

/* Gives a reserve up: whether there was one. */
bool spare_memory_give_up_reserve(void);

/* From now on `given_up` is called, by any thread, whenever a reserve was given up; NULL: nothing
 * is. One function of the process; it must take no memory. */
void spare_memory_watch(void (*given_up)(void *context), void *context);

/* Whether there are so many bytes now, beside the reserve. */
bool spare_memory_is_there(size_t bytes);

/* The same, but what is small comes from the reserve, if need be, and is not asked for: for lists
 * that double. */
bool spare_memory_has_room_for(size_t bytes);

/* Both: a step may begin that handles so many bytes of somebody else, and makes `factor` times as
 * many of them. */
bool spare_memory_is_enough_for(size_t bytes, size_t factor);

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
