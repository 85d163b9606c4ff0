/* SPDX-License-Identifier: BSD-3-Clause */
/* What reading a command line gave: the typed values, or a text to print. Also the one place where
 * mistakes are worded, as argparse words them: usage, then "PROGRAM: error: argument NAMES: …". */
#ifndef MUSTER_OPTIONS_OPTION_RESULT_H
#define MUSTER_OPTIONS_OPTION_RESULT_H

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
    struct text_list list; /* OPTION_COMMA_LIST; a positional of any arity but ONE and OPTIONAL */
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
    struct option_value *values; /* one for each definition, complete only with
                                    OPTION_OUTCOME_VALUES */
};

/* An empty result without values; `environment` gives COLUMNS, else the width is 80. */
void option_result_init(struct option_result *result, const struct option_table *table,
    const char *program, const struct text_list *environment);
void option_result_clear(struct option_result *result);

/* The value of an entry by destination; it belongs to the result. A destination the table does not
 * have gives a value that is not set. */
const struct option_value *option_result_value(
    const struct option_result *result, const char *destination);

/* Its text as given or by default; "" when there is none. */
const char *option_result_text(const struct option_result *result, const char *destination);

/* Takes the text as what is to be printed on stdout. */
void option_result_print(struct option_result *result, char *text_taken);

/* Turns the result into a mistake about `destination`; when its value came from the environment,
 * the variable is named too. With a NULL destination the message stands alone. Only the first
 * mistake is kept. For rules that go beyond one value's type. */
__attribute__((format(printf, 3, 4))) void option_result_reject(
    struct option_result *result, const char *destination, const char *format, ...);

/* Passes `code` on; unless it is FAILURE_NONE the reason becomes a mistake about `destination`. The
 * reason is cleared. */
enum failure_code option_result_settle(struct option_result *result, const char *destination,
    enum failure_code code, struct text *reason);

#endif
