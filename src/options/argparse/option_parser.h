/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line reader. The input is a table, arguments and the environment; the output is typed
 * values. Follows the argparse of Python 3.14 exactly, because torchrun is an argparse program:
 * unambiguous prefixes, `--opt=value`, bundles of short options, "--", arguments that look like
 * negative numbers, the remainder after the script, and the wording of mistakes (Lib/argparse.py
 * ArgumentParser._parse_known_args). Environment defaults follow torch/distributed/argparse_util.py
 * env and check_env, with two differences. Choices also apply to values from the environment. A bad
 * value in the environment is a mistake in the command line, and only when the command line does
 * not override it. Rules between several values are in other modules. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_PARSER_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "options/argparse/option_result.h"
#include "options/argparse/option_table.h"

/* Whether `word` is more like `candidate` than *best says, and like enough to be a slip. Then *best
 * becomes their distance. It begins with 0, for none. Case does not count, nor do "-" and "_". */
bool option_suggestion_is_better(
    const char *word, size_t length, const char *candidate, size_t *best);

/* Reads `arguments` (without the command's name). `program` is how the command was called, for
 * messages. `environment` holds NAME=VALUE; COLUMNS in it sets the width of help texts (else 80).
 * The table must outlive the result. The caller clears the result in every case. */
void option_parse(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *out_result);

#endif
