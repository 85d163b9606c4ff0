/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes completion scripts from a table: option names, the words of a choice, and file names for
 * the script and its arguments. torchrun needs the Python package shtab for them; here they are
 * built in. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_COMPLETION_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_COMPLETION_H

#include "base/text.h"
#include "options/argparse/option_table.h"

/* The shells with a completion script: "bash", "zsh", "tcsh"; NULL-terminated, for `choices`. */
extern const char *const option_completion_shells[];

/* Appends the script for `shell`, one of the above. `program` is a command, or a command and its
 * sub-command ("muster run"); the script then completes only after both. */
void option_completion_format(
    const struct option_table *table, const char *program, const char *shell, struct text *out);

#endif
