/* SPDX-License-Identifier: BSD-3-Clause */
/* Which argument is an option, and which option it means: whole names, prefixes, short options with
 * their value attached, numbers below zero. Looks at one argument alone. Matches Lib/argparse.py
 * ArgumentParser._parse_optional and _get_option_tuples (Python 3.14). */
#ifndef MUSTER_OPTIONS_OPTION_MATCH_H
#define MUSTER_OPTIONS_OPTION_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "options/option_table.h"

/* Strings belong to the table and to the argument. */
struct option_match {
    size_t index;         /* of the definition; definition_count: an option nobody knows */
    const char *name;     /* as the table spells it */
    bool has_equals_sign; /* the value was set off by "=" */
    const char *attached; /* value or further short options in the same argument; NULL: none */
};

/* Whether the argument is an option, known or not. */
bool option_match_is_option(const struct option_table *table, const char *argument);

/* How many options an argument that is an option may mean; `out_first` gets the first, and
 * `out_names`, unless NULL, all their names with ", " between. */
size_t option_match_find(const struct option_table *table, const char *argument,
    struct option_match *out_first, struct text *out_names);

/* The definition of the one-letter option "-`letter`"; definition_count when there is none. */
size_t option_match_letter(const struct option_table *table, char letter, const char **out_name);

#endif
