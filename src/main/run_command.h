/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster run`, also called torchrun: reads the options, runs the job, returns its exit status. */
#ifndef MUSTER_MAIN_RUN_COMMAND_H
#define MUSTER_MAIN_RUN_COMMAND_H

#include "base/text.h"

/* `program` is how messages call the command. `arguments` are the arguments after it. `environment`
 * is the whole environment. */
int run_command(
    const char *program, const struct text_list *arguments, const struct text_list *environment);

#endif
