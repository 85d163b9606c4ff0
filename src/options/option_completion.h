/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion scripts made from a table: option names, the words of a choice, then files for the
 * script and what follows it. torchrun asks the Python package shtab for them; here they are built
 * in. */
#ifndef MUSTER_OPTIONS_OPTION_COMPLETION_H
#define MUSTER_OPTIONS_OPTION_COMPLETION_H

#include "base/text.h"
#include "options/option_table.h"

/* The shells a script can be made for: "bash", "zsh", "tcsh"; NULL-terminated, for `choices`. */
extern const char *const option_completion_shells[];

/* Appends the script for `shell`, one of the above. `program` is a command, or a command and its
 * sub-command ("muster run"): then the script completes only after both. */
void option_completion_format(
    const struct option_table *table, const char *program, const char *shell, struct text *out);

#endif
