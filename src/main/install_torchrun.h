/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster install-torchrun DIRECTORY`: puts a link named torchrun into a directory, for those whose
 * scripts call torchrun, and says which torchrun a shell finds. It replaces nothing. */
#ifndef MUSTER_MAIN_INSTALL_TORCHRUN_H
#define MUSTER_MAIN_INSTALL_TORCHRUN_H

#include "base/text.h"

/* Returns the exit status. */
int install_torchrun_command(
    const struct text_list *arguments, const struct text_list *environment);

#endif
