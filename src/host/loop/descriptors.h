/* SPDX-License-Identifier: BSD-3-Clause */
/* Open files of this process: how many there may be, how they are handed to another process, and
 * how they end at an exec. */
#ifndef MUSTER_HOST_LOOP_DESCRIPTORS_H
#define MUSTER_HOST_LOOP_DESCRIPTORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

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

/* One packet over a local socket, with open descriptors for the process at the other end. It never
 * waits, and raises no SIGPIPE. */

/* How many descriptors a packet may have. */
#define DESCRIPTOR_PACKET_MOST ((size_t)8)

/* The descriptors stay the caller's. Returns 0, or the errno. */
int descriptor_packet_send(int fd, struct slice packet, const int *descriptors, size_t count);

/* Receives a packet, and the first of its descriptors, which is the caller's then, and is closed in
 * programs; -1: it had none. Of a longer packet the rest is lost, and so are further descriptors.
 * Returns the length; 0 at the end of the connection; -1 with errno. */
ssize_t descriptor_packet_receive(int fd, void *data, size_t size, int *out_descriptor);

/* Keeps descriptors from leaking into other programs, even those that were opened or inherited
 * without close-on-exec. For use between fork and exec: async-signal-safe. */

/* Sets close-on-exec on every descriptor from `first` on. */
void inherited_descriptors_end_at_exec(int first);

/* The same for kernels before 5.11: it looks up which descriptors exist. */
void inherited_descriptors_end_at_exec_one_by_one(int first);

/* Closes every descriptor from `first` on. */
void inherited_descriptors_close(int first);

#endif
