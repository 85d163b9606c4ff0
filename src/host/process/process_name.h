/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a process that was forked from the agent and stays without exec. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_NAME_H
#define MUSTER_HOST_PROCESS_PROCESS_NAME_H

/* The calling process is called `name` from now on (15 characters at most), also in its command
 * line: a tool that looks for the agent by its command line must not find, count or kill it. Where
 * the command line cannot be written, the name in the process table changes alone. */
void process_name_take(const char *name);

#endif
