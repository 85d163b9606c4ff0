/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked before memory is taken that base/memory has no failure for. A function that may
 * fail first keeps a reserve, which base/memory gives up when the system has no more: so what that
 * function then takes in small pieces is there. Memory whose size a peer or a user says is asked
 * for by its size. */
#ifndef MUSTER_BASE_SPARE_MEMORY_H
#define MUSTER_BASE_SPARE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* More than what one step takes in small pieces. */
#define SPARE_MEMORY_RESERVE ((size_t)1 << 20)

/* More than the end of an agent takes. It is larger, because the C library gives each small piece a
 * page where none of its arenas can grow. */
#define SPARE_MEMORY_LAST_RESERVE ((size_t)4 << 20)

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

#endif
