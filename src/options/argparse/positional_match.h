/* SPDX-License-Identifier: BSD-3-Clause */
/* How many arguments each waiting positional takes from a run of arguments. argparse writes one
 * regular expression for all of them and lets it backtrack; the few patterns it can produce are
 * matched here directly. Matches Lib/argparse.py ArgumentParser._match_arguments_partial and
 * _get_nargs_pattern (Python 3.14). */
#ifndef MUSTER_OPTIONS_ARGPARSE_POSITIONAL_MATCH_H
#define MUSTER_OPTIONS_ARGPARSE_POSITIONAL_MATCH_H

#include <stddef.h>

#include "options/argparse/option_table.h"

#define POSITIONAL_MAXIMUM_COUNT 8

/* `pattern` has a letter for each argument from here on: 'O' an option, 'A' another argument, '-'
 * the first "--". Matches as many of the positionals, in order, as can be, each taking all it can.
 * Writes the arguments each takes to `out_taken` and returns how many positionals matched; at most
 * POSITIONAL_MAXIMUM_COUNT are looked at. */
size_t positional_match(
    const enum option_arity *arities, size_t arity_count, const char *pattern, size_t *out_taken);

#endif
