/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster timer`: serves countdown timers, runs a command under a timer, lists active timers. Finds
 * the sub-command. */
#ifndef MUSTER_MAIN_TIMER_TIMER_COMMAND_H
#define MUSTER_MAIN_TIMER_TIMER_COMMAND_H

#include "base/text.h"

/* `arguments` are those after "timer", `environment` is the whole environment. Returns the exit
 * status: 2 when the command line is invalid, else that of the sub-command. */
int timer_command(const struct text_list *arguments, const struct text_list *environment);

/* The sub-commands, each in its own file. `arguments` are those after the sub-command's name. Serve
 * and list return 1 on failure; run returns the status of its command. */
int timer_serve(const struct text_list *arguments, const struct text_list *environment);
int timer_run(const struct text_list *arguments, const struct text_list *environment);
int timer_list(const struct text_list *arguments, const struct text_list *environment);

#endif
