/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of reading a command line: typed values, or a text to print. All mistakes are worded
 * here, as argparse words them: "PROGRAM: error: argument NAMES: …". Under the name of torchrun the
 * usage comes before that, as from argparse. Otherwise one line behind it says how to see every
 * option: many nodes may make the same mistake on one terminal. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_RESULT_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "options/argparse/option_table.h"

enum option_source {
    OPTION_SOURCE_DEFAULT,
    OPTION_SOURCE_ENVIRONMENT,
    OPTION_SOURCE_COMMAND_LINE,
    OPTION_SOURCE_SUPPLIED, /* found out elsewhere, see option_result_supply */
};

/* One converted value. The definition's kind says which member holds it. */
struct option_value {
    enum option_source source;
    bool is_set;     /* false: there is no value, not even a default */
    char *text;      /* the text of the last occurrence; not for flags and lists */
    int64_t integer; /* OPTION_INTEGER */
    double number;   /* OPTION_FLOAT */
    bool flag;       /* OPTION_FLAG */
    struct text_list
        list; /* OPTION_COMMA_LIST, and a positional of any arity but ONE and OPTIONAL */
};

enum option_outcome {
    OPTION_OUTCOME_VALUES,  /* `values` are valid */
    OPTION_OUTCOME_PRINT,   /* help, version or completion: print `text` on stdout, exit 0 */
    OPTION_OUTCOME_MISTAKE, /* print `text` (usage and one error line) on stderr, exit 2 */
};

struct option_result {
    const struct option_table *table;
    char *program;
    size_t columns; /* width of usage and help */
    enum option_outcome outcome;
    char *text;                  /* NULL with OPTION_OUTCOME_VALUES */
    struct option_value *values; /* one for each definition, complete only with
                                    OPTION_OUTCOME_VALUES */
};

/* Makes an empty result without values. COLUMNS in `environment` sets the width, else it is 80. */
void option_result_init(struct option_result *result, const struct option_table *table,
    const char *program, const struct text_list *environment);
void option_result_clear(struct option_result *result);

/* The value of an entry by its destination; it belongs to the result. An unknown destination gives
 * a value that is not set. */
const struct option_value *option_result_value(
    const struct option_result *result, const char *destination);

/* The entry's text, given or by default; "" when there is none. */
const char *option_result_text(const struct option_result *result, const char *destination);

/* Gives an entry of OPTION_TEXT another text, as if it had been given. An unknown destination is
 * ignored. */
void option_result_supply(struct option_result *result, const char *destination, const char *text);

/* Whether mistakes are worded to the letter as torchrun's are. */
bool option_result_is_torchrun(const struct option_result *result);

/* Takes the text and makes it the output for stdout. */
void option_result_print(struct option_result *result, char *text_taken);

/* Turns the result into a mistake about `destination`. When its value came from the environment,
 * the message also names the variable. With a NULL destination the message stands alone. Only the
 * first mistake is kept. Use it for rules that go beyond one value's type. */
__attribute__((format(printf, 3, 4))) void option_result_reject(
    struct option_result *result, const char *destination, const char *format, ...);

/* Returns `code`. Unless it is FAILURE_NONE, the reason becomes a mistake about `destination`. The
 * reason is cleared. */
enum failure_code option_result_settle(struct option_result *result, const char *destination,
    enum failure_code code, struct text *reason);

/* Converts the text of one argument to a typed value, and words errors as argparse does. Matches
 * Lib/argparse.py ArgumentParser._get_value and _check_value, and run.py's comma_separated_list. */

/* Replaces the content of `value`. FAILURE_INVALID with the reason appended to `out_reason`:
 * "invalid int value: 'x'"; `value` is then unchanged. The text of a flag is an integer; every
 * number but 0 means true. */
__attribute__((warn_unused_result)) enum failure_code option_convert(
    const struct option_definition *definition, const char *text, struct option_value *value,
    struct text *out_reason);

#endif
