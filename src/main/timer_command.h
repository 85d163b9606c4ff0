/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster timer`: serves countdown timers, runs a command under one, lists those that are held.
 * Finds the sub-command. */
#ifndef MUSTER_MAIN_TIMER_COMMAND_H
#define MUSTER_MAIN_TIMER_COMMAND_H

#include "base/text.h"

/* `arguments` are those after "timer", `environment` is the whole environment. Returns the exit
 * status: 2 for a command line that is not understood, else the sub-command's. */
int timer_command(const struct text_list *arguments, const struct text_list *environment);

/* The sub-commands, each in a file of its own; `arguments` are those after its name. Serve and list
 * return 1 when it did not work, run the status of its command. */
int timer_serve(const struct text_list *arguments, const struct text_list *environment);
int timer_run(const struct text_list *arguments, const struct text_list *environment);
int timer_list(const struct text_list *arguments, const struct text_list *environment);

#endif
