/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster store`: serves a TCPStore, or looks into one that runs. Finds the sub-command. */
#ifndef MUSTER_MAIN_STORE_COMMAND_H
#define MUSTER_MAIN_STORE_COMMAND_H

#include "base/text.h"

/* `arguments` are those after "store", `environment` is the whole environment. Returns the exit
 * status: 0, 1 when it did not work (no store, a missing key, time is up), 2 for a command line
 * that is not understood. */
int store_command(const struct text_list *arguments, const struct text_list *environment);

#endif
