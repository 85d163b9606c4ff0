/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps descriptors from leaking into other programs, including those that somebody else opened or
 * handed down without close-on-exec. For use between fork and exec: async-signal-safe. */
#ifndef MUSTER_HOST_INHERITED_DESCRIPTORS_H
#define MUSTER_HOST_INHERITED_DESCRIPTORS_H

/* Marks every descriptor from `first` on close-on-exec. */
void inherited_descriptors_end_at_exec(int first);

/* The same for kernels before 5.11, by looking which there are. */
void inherited_descriptors_end_at_exec_one_by_one(int first);

/* Closes every descriptor from `first` on. */
void inherited_descriptors_close(int first);

#endif
