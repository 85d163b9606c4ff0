/* SPDX-License-Identifier: BSD-3-Clause */
/* Where temporary files go, in the order in which Python's tempfile looks: $TMPDIR, $TEMP, $TMP,
 * /tmp, /var/tmp, /usr/tmp and the working directory. Makes nothing. */
#ifndef MUSTER_HOST_LOOP_TEMPORARY_DIRECTORY_H
#define MUSTER_HOST_LOOP_TEMPORARY_DIRECTORY_H

#include <stddef.h>

#include "base/text.h"

/* The place with this index; NULL: there are no more. Variables that are not set are left out.
 * `environment` is an environment, or NULL for this process's own. Does not look at the disk. */
const char *temporary_directory_candidate(const struct text_list *environment, size_t index);

/* The first of these places in which this process may make a file; /tmp where there is none. It is
 * for paths that others are told, so the working directory does not count. Looks at the disk. */
const char *temporary_directory_usable(const struct text_list *environment);

#endif
