/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps descriptors from leaking into other programs, even those that were opened or inherited
 * without close-on-exec. For use between fork and exec: async-signal-safe. */
#ifndef MUSTER_HOST_PROCESS_INHERITED_DESCRIPTORS_H
#define MUSTER_HOST_PROCESS_INHERITED_DESCRIPTORS_H

/* Sets close-on-exec on every descriptor from `first` on. */
void inherited_descriptors_end_at_exec(int first);

/* The same for kernels before 5.11: it looks up which descriptors exist. */
void inherited_descriptors_end_at_exec_one_by_one(int first);

/* Closes every descriptor from `first` on. */
void inherited_descriptors_close(int first);

#endif
