/* SPDX-License-Identifier: BSD-3-Clause */
/* The option that a user probably meant by one that does not exist. */
#ifndef MUSTER_OPTIONS_ARGPARSE_OPTION_SUGGESTION_H
#define MUSTER_OPTIONS_ARGPARSE_OPTION_SUGGESTION_H

#include "options/argparse/option_table.h"

/* The long name that is most like the argument (whatever follows its "="), or NULL where none is
 * like it. The name belongs to the table. */
const char *option_suggest(const struct option_table *table, const char *argument);

#endif
