/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sub-commands of `muster timer` have in common: the FIFO, and how a command line that
 * gives no values ends. */
#ifndef MUSTER_MAIN_TIMER_OPTIONS_H
#define MUSTER_MAIN_TIMER_OPTIONS_H

#include "base/text.h"
#include "options/option_parser.h"

#define TIMER_OPTION_FILE                                                                          \
    {                                                                                              \
        .destination = "file", .names = {"--file"},                                                \
        .help = "The FIFO through which timers are asked for. Default: $TORCHELASTIC_TIMER_FILE.", \
    }

/* Parses; finds the FIFO's path, which is borrowed from the others. True when there are values. */
bool timer_options_read(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *result, const char **out_path);

/* Prints the help or the mistake that a result without values is; returns the exit status. */
int timer_options_print(const struct option_result *result);

#endif
