/* SPDX-License-Identifier: BSD-3-Clause */
/* How many files this process may have open. */
#ifndef MUSTER_HOST_DESCRIPTOR_LIMIT_H
#define MUSTER_HOST_DESCRIPTOR_LIMIT_H

/* Raises the soft limit to the hard one, which needs no rights. Returns what the soft limit was,
 * for programs started later: many still use select(), which breaks beyond 1024. -1 where nothing
 * was changed. */
long descriptor_limit_raise(void);

/* Sets the soft limit again; -1 leaves it. Async-signal-safe. */
void descriptor_limit_restore(long soft_limit);

#endif
