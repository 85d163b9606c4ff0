/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster timer`: serves countdown timers, runs a command under a timer, lists active timers. Finds
 * the sub-command. */
#ifndef MUSTER_MAIN_TIMER_TIMER_COMMAND_H
#define MUSTER_MAIN_TIMER_TIMER_COMMAND_H

#include "base/text.h"

/* `arguments` are those after "timer", `environment` is the whole environment. Returns the exit
 * status: 2 when the command line is invalid, else that of the sub-command. */
int timer_command(const struct text_list *arguments, const struct text_list *environment);

#endif
