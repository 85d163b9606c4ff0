/* SPDX-License-Identifier: BSD-3-Clause */
/* The option that all sub-commands of `muster timer` share: the FIFO. */
#ifndef MUSTER_MAIN_TIMER_TIMER_OPTIONS_H
#define MUSTER_MAIN_TIMER_TIMER_OPTIONS_H

#include "base/text.h"
#include "options/argparse/option_parser.h"

#define TIMER_OPTION_FILE                                                                          \
    {                                                                                              \
        .destination = "file", .names = {"--file"},                                                \
        .help = "The FIFO through which timers are asked for. Default: $TORCHELASTIC_TIMER_FILE.", \
    }

/* Parses the command line and finds the FIFO's path, which is borrowed from the other arguments.
 * Returns true when there are values. */
bool timer_options_read(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *result, const char **out_path);

#endif
