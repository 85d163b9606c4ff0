/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's short form of a list of hosts: "node[001-003,7],login", "rack[1-2]-[0-3].ib". Only the
 * names that Slurm itself writes into variables are read; its other spellings (blanks, strides,
 * letters as digits) are not. Nothing is asked of Slurm, so this works where its programs are
 * missing, as in a container. */
#ifndef MUSTER_OPTIONS_SLURM_HOSTLIST_H
#define MUSTER_OPTIONS_SLURM_HOSTLIST_H

#include "base/text.h"

/* The longest list, name and number that are read, and the most brackets in one name. */
#define HOSTLIST_MAXIMUM_LENGTH (1 << 20)
#define HOSTLIST_MAXIMUM_HOSTS 65536
#define HOSTLIST_MAXIMUM_NAME 253
#define HOSTLIST_MAXIMUM_DIGITS 9
#define HOSTLIST_MAXIMUM_BRACKETS 8

/* Appends the names to `out_hosts`, in the list's order; the caller clears it. FAILURE_MALFORMED
 * for other text (an empty one, too), FAILURE_LIMIT beyond the sizes above; `out_hosts` is then
 * unchanged. */
__attribute__((warn_unused_result)) enum failure_code hostlist_expand(
    const char *text, struct text_list *out_hosts);

#endif
