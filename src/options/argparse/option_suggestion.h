/* SPDX-License-Identifier: BSD-3-Clause */
/* The option that a user probably meant by one that does not exist. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_SUGGESTION_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_SUGGESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "options/argparse/option_table.h"

/* Whether `word` is more like `candidate` than *best says, and like enough to be a slip. Then *best
 * becomes their distance. It begins with 0, for none. Case does not count, nor do "-" and "_". */
bool option_suggestion_is_better(
    const char *word, size_t length, const char *candidate, size_t *best);

/* The long name that is most like the argument (whatever follows its "="), or NULL where none is
 * like it; of a word of another launcher's, what it is called here. The name belongs to the table.
 */
const char *option_suggest(const struct option_table *table, const char *argument);

#endif
