/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster rendezvous`: looks at the rendezvous of a job. Finds the sub-command. */
#ifndef MUSTER_MAIN_RENDEZVOUS_RENDEZVOUS_COMMAND_H
#define MUSTER_MAIN_RENDEZVOUS_RENDEZVOUS_COMMAND_H

#include <muster/rendezvous_state.h>
#include <time.h>

#include "base/text.h"

/* `arguments` are those after "rendezvous", `environment` is the whole environment. Returns the
 * exit status: 0; 1 when there is no record or it cannot be read, or no store; 2 when the command
 * line is invalid, or does not say which of several records is meant. */
int rendezvous_command(const struct text_list *arguments, const struct text_list *environment);

#endif
