/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line reader: a table, arguments and environment in, typed values out. Follows the
 * argparse of Python 3.14 to the letter, torchrun being an argparse program: unambiguous prefixes,
 * `--opt=value`, bundles of short options, "--", arguments that look like negative numbers, the
 * remainder after the script, and the wording of mistakes (Lib/argparse.py
 * ArgumentParser._parse_known_args). Environment defaults follow torch/distributed/argparse_util.py
 * env and check_env, but choices hold for them too and a bad value is a mistake like any other.
 * What the values mean together is decided elsewhere. */
#ifndef MUSTER_OPTIONS_OPTION_PARSER_H
#define MUSTER_OPTIONS_OPTION_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "options/option_table.h"

enum option_source {
    OPTION_SOURCE_DEFAULT,
    OPTION_SOURCE_ENVIRONMENT,
    OPTION_SOURCE_COMMAND_LINE,
};

/* One value, converted; which member holds it follows from the definition. */
struct option_value {
    enum option_source source;
    bool is_set;           /* false: no value, also not by default */
    char *text;            /* as given (the last time), for every kind but flags and lists */
    int64_t integer;       /* OPTION_INTEGER */
    double number;         /* OPTION_FLOAT */
    bool flag;             /* OPTION_FLAG */
    struct text_list list; /* OPTION_COMMA_LIST; arguments of a positional of any arity but ONE */
};

enum option_outcome {
    OPTION_OUTCOME_VALUES,  /* `values` hold */
    OPTION_OUTCOME_PRINT,   /* help, version or completion: print `text` on stdout, exit 0 */
    OPTION_OUTCOME_MISTAKE, /* print `text` (usage and one error line) on stderr, exit 2 */
};

struct option_result {
    const struct option_table *table;
    char *program;
    size_t columns; /* width of usage and help */
    enum option_outcome outcome;
    char *text;                  /* NULL with OPTION_OUTCOME_VALUES */
    struct option_value *values; /* one for each definition; meaningful only with
                                    OPTION_OUTCOME_VALUES */
};

/* Reads `arguments` (those after the command's name). `program` is how the command was called, for
 * messages. `environment` holds NAME=VALUE; COLUMNS in it sets the width of help texts (else 80).
 * The result is the caller's to clear in every case. */
void option_parse(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *out_result);

void option_result_clear(struct option_result *result);

/* The value of an entry by destination; it belongs to the result. A destination the table does not
 * have gives a value that is not set. */
const struct option_value *option_result_value(
    const struct option_result *result, const char *destination);

/* Turns the result into a mistake about `destination`: usage, then "PROGRAM: error: argument
 * NAMES: MESSAGE", and the variable's name when the value came from the environment. With a NULL
 * destination the message stands alone. For rules that go beyond one value's type. */
__attribute__((format(printf, 3, 4))) void option_result_reject(
    struct option_result *result, const char *destination, const char *format, ...);

#endif
