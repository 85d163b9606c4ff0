/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether an argument is an option, and which one: by whole name, by prefix, as a short
 * option with its value attached. Numbers below zero are no options. Looks at one argument alone.
 * Matches Lib/argparse.py ArgumentParser._parse_optional and _get_option_tuples (Python 3.14). */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_MATCH_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "options/argparse/option_table.h"

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

#endif
