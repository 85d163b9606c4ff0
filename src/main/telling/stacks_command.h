/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster stacks`: what the workers of a job on this machine do now. Their agents look, which
 * neither stop nor end them. */
#ifndef MUSTER_MAIN_TELLING_STACKS_COMMAND_H
#define MUSTER_MAIN_TELLING_STACKS_COMMAND_H

#include "base/text.h"

/* Returns the exit status. */
int stacks_command(const struct text_list *arguments, const struct text_list *environment);

#endif
