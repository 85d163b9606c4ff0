/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster store`: serves a TCPStore, or reads and changes a running one. Finds the sub-command. */
#ifndef MUSTER_MAIN_STORE_STORE_COMMAND_H
#define MUSTER_MAIN_STORE_STORE_COMMAND_H

#include "base/text.h"

/* `arguments` are those after "store", `environment` is the whole environment. Returns the exit
 * status: 0; 1 when the operation failed (no store, a missing key, time is up); 2 when the command
 * line is invalid. */
int store_command(const struct text_list *arguments, const struct text_list *environment);

#endif
