/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line reader: a table, arguments and environment in, typed values out. Follows the
 * argparse of Python 3.14 to the letter, torchrun being an argparse program: unambiguous prefixes,
 * `--opt=value`, bundles of short options, "--", arguments that look like negative numbers, the
 * remainder after the script, and the wording of mistakes (Lib/argparse.py
 * ArgumentParser._parse_known_args). Environment defaults follow torch/distributed/argparse_util.py
 * env and check_env, with two differences: choices hold for them too, and a bad value is a mistake
 * like any other, and only when the command line does not override it. What the values mean
 * together is decided elsewhere. */
#ifndef MUSTER_OPTIONS_OPTION_PARSER_H
#define MUSTER_OPTIONS_OPTION_PARSER_H

#include "base/text.h"
#include "options/option_result.h"
#include "options/option_table.h"

/* Reads `arguments` (those after the command's name). `program` is how the command was called, for
 * messages. `environment` holds NAME=VALUE; COLUMNS in it sets the width of help texts (else 80).
 * The table must outlive the result, which is the caller's to clear in every case. */
void option_parse(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *out_result);

#endif
