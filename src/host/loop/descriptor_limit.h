/* SPDX-License-Identifier: BSD-3-Clause */
/* The limit on this process' open files. */
#ifndef MUSTER_HOST_LOOP_DESCRIPTOR_LIMIT_H
#define MUSTER_HOST_LOOP_DESCRIPTOR_LIMIT_H

#include <stdint.h>

/* Raises the soft limit to the hard limit, for which no privilege is needed. Returns the old soft
 * limit; -1 when nothing was changed. Programs that are started later should get the old limit
 * back, because many of them use select(), which breaks beyond 1024. */
long descriptor_limit_raise(void);

/* How many files this process may have open at the same time: the soft limit. UINT64_MAX where
 * there is none, or where the kernel does not tell. */
uint64_t descriptor_limit_read(void);

/* From now on so many descriptors are kept for this process itself: whoever takes descriptors for
 * others asks first how many. At first none are. */
void descriptor_limit_keep(uint64_t count);
uint64_t descriptor_limit_kept(void);

/* Sets the soft limit back; -1 changes nothing. Async-signal-safe. */
void descriptor_limit_restore(long soft_limit);

#endif
