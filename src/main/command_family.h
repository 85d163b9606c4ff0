/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that share a first word: `muster store get`, `muster timer run`. */
#ifndef MUSTER_MAIN_COMMAND_FAMILY_H
#define MUSTER_MAIN_COMMAND_FAMILY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"
#include "options/argparse/option_table.h"

struct command_family {
    const char *name; /* "store" */
    void (*print_usage)(FILE *stream);
    /* Runs the command of that name; false when there is no such command. */
    bool (*run)(const char *name, const struct text_list *arguments,
        const struct text_list *environment, int *out_status);
};

/* Runs the command that the first argument names. Returns the exit status. */
int command_family_run(const struct command_family *family, const struct text_list *arguments,
    const struct text_list *environment);

/* For a command line without values: prints the help or the mistake, and returns the exit
 * status. */
int command_print(const struct option_result *result);

#endif
