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

/* Decides whether an argument is an option, and which one: by whole name, by prefix, as a short
 * option with its value attached. Numbers below zero are no options. Looks at one argument alone.
 * Matches Lib/argparse.py ArgumentParser._parse_optional and _get_option_tuples (Python 3.14). */

/* Strings belong to the table and to the argument. */
struct option_match {
    size_t index;         /* of the definition; definition_count: the option is unknown */
    const char *name;     /* in the table's spelling */
    bool has_equals_sign; /* "=" stands before the attached value */
    const char *attached; /* the value or further short options in the same argument; NULL: none */
    bool is_one_option;   /* all names that the argument may mean are of this option */
};

/* Whether the argument looks like an option, known or unknown. */
bool option_match_is_option(const struct option_table *table, const char *argument);

/* The number of names of options that the argument may mean. `out_first` gets the first of them.
 * `out_names`, unless NULL, gets all their names, separated by ", ". */
size_t option_match_find(const struct option_table *table, const char *argument,
    struct option_match *out_first, struct text *out_names);

/* The definition of the one-letter option "-`letter`"; definition_count when there is none. */
size_t option_match_letter(const struct option_table *table, char letter, const char **out_name);

/* Reads one argument that is an option completely before any of it takes effect: a long option, or
 * a bundle of one-letter flags that may end in an option with a value ("-mt3", "-m -t 3"). Matches
 * consume_optional of Lib/argparse.py ArgumentParser._parse_known_args (Python 3.14). */

/* Definitions are given by index; definition_count means none. */
struct option_bundle {
    size_t *flags; /* options without value, in order */
    size_t flag_count;
    size_t flag_capacity;
    size_t valued;       /* the option with a value at the end of the bundle */
    const char *value;   /* belongs to the arguments */
    char *unknown;       /* the part that no option matches, "-x"; NULL: none */
    struct text mistake; /* why the argument is invalid; empty: it is valid */
    size_t mistaken;     /* the option that the mistake is about */
    size_t end;          /* position of the first argument behind the option and its value */
};

/* Reads the option at `position`. `pattern` has a letter for each argument: 'O' an option, '-' the
 * first "--", 'A' any other. To the letter, as argparse does, a prefix of two spellings of one
 * option is ambiguous; otherwise it means the option. The caller clears the bundle. */
void option_bundle_read(const struct option_table *table, const struct text_list *arguments,
    const char *pattern, size_t position, bool is_to_the_letter, struct option_bundle *out_bundle);
void option_bundle_clear(struct option_bundle *bundle);

/* How many arguments each waiting positional takes from a run of arguments. argparse writes one
 * regular expression for all of them and lets it backtrack; the few patterns it can produce are
 * matched here directly. Matches Lib/argparse.py ArgumentParser._match_arguments_partial and
 * _get_nargs_pattern (Python 3.14). */

#define POSITIONAL_MAXIMUM_COUNT 8

/* `pattern` has a letter for each argument from here on: 'O' an option, 'A' another argument, '-'
 * the first "--". Matches as many of the positionals, in order, as can be, each taking all it can.
 * Writes the arguments each takes to `out_taken` and returns how many positionals matched; at most
 * POSITIONAL_MAXIMUM_COUNT are looked at. */
size_t positional_match(
    const enum option_arity *arities, size_t arity_count, const char *pattern, size_t *out_taken);

/* The option that a user probably meant by one that does not exist. */

/* Whether `word` is more like `candidate` than *best says, and like enough to be a slip. Then *best
 * becomes their distance. It begins with 0, for none. Case does not count, nor do "-" and "_". */
bool option_suggestion_is_better(
    const char *word, size_t length, const char *candidate, size_t *best);

/* The long name that is most like the argument (whatever follows its "="), or NULL where none is
 * like it; of a word of another launcher's, what it is called here. The name belongs to the table.
 */
const char *option_suggest(const struct option_table *table, const char *argument);

/* Reads `arguments` (without the command's name). `program` is how the command was called, for
 * messages. `environment` holds NAME=VALUE; COLUMNS in it sets the width of help texts (else 80).
 * The table must outlive the result. The caller clears the result in every case. */
void option_parse(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *out_result);

#endif
