/* SPDX-License-Identifier: BSD-3-Clause */
/* How many files this process may have open. */
#ifndef MUSTER_HOST_DESCRIPTOR_LIMIT_H
#define MUSTER_HOST_DESCRIPTOR_LIMIT_H

/* Raises the soft limit to the hard one, which needs no rights; programs started later inherit it.
 * Nothing happens where even that is refused. */
void descriptor_limit_raise(void);

#endif
