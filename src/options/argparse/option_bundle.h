/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads one argument that is an option completely before any of it takes effect: a long option, or
 * a bundle of one-letter flags that may end in an option with a value ("-mt3", "-m -t 3"). Matches
 * consume_optional of Lib/argparse.py ArgumentParser._parse_known_args (Python 3.14). */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_BUNDLE_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "options/argparse/option_table.h"

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

#endif
