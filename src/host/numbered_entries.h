/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what a directory numbers: entries named <prefix><number>, such as /dev/nvidia0. */
#ifndef MUSTER_HOST_NUMBERED_ENTRIES_H
#define MUSTER_HOST_NUMBERED_ENTRIES_H

#include <stddef.h>

/* More than this many are not looked at. */
#define NUMBERED_ENTRIES_CEILING 4096

/* Zeroed is empty. */
struct numbered_entries {
    int *numbers; /* ascending */
    size_t count;
};

/* The entries of `path`; none when it cannot be read. `prefix` may be empty. Only plain decimal
 * numbers count, so "nvidia0" does with the prefix "nvidia", and "nvidiactl" does not. The caller
 * clears the result. */
struct numbered_entries numbered_entries_list(const char *path, const char *prefix);
void numbered_entries_clear(struct numbered_entries *entries);

#endif
