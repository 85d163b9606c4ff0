/* SPDX-License-Identifier: BSD-3-Clause */
/* The usage lines and the help page of a table, in the layout of argparse, so that programs that
 * read torchrun's help can read ours. Lines break between words only. Matches Lib/argparse.py
 * HelpFormatter (Python 3.14), without colours. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_HELP_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_HELP_H

#include <stddef.h>

#include "base/text.h"
#include "options/argparse/option_table.h"

/* Appends "usage: PROGRAM [-h] …" and a newline, wrapped to `columns`. */
void option_help_usage(
    const struct option_table *table, const char *program, size_t columns, struct text *out);

/* Appends "usage: PROGRAM [OPTION]… script ...; PROGRAM --help shows every option" and a newline.
 */
void option_help_hint(const struct option_table *table, const char *program, struct text *out);

/* Appends usage, description, positional arguments and options. */
void option_help_format(
    const struct option_table *table, const char *program, size_t columns, struct text *out);

/* Makes completion scripts from a table: option names, the words of a choice, and file names for
 * the script and its arguments. torchrun needs the Python package shtab for them; here they are
 * built in. */

/* The shells with a completion script: "bash", "zsh", "tcsh"; NULL-terminated, for `choices`. */
extern const char *const option_completion_shells[];

/* Appends the script for `shell`, one of the above. `program` is a command, or a command and its
 * sub-command ("muster run"); the script then completes only after both. */
void option_completion_format(
    const struct option_table *table, const char *program, const char *shell, struct text *out);

#endif
