/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands below one word: `muster store get`, `muster timer run`. */
#ifndef MUSTER_MAIN_COMMAND_FAMILY_H
#define MUSTER_MAIN_COMMAND_FAMILY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"

struct command_family {
    const char *name; /* "store" */
    void (*print_usage)(FILE *stream);
    /* Runs the command of that name; false when there is none. */
    bool (*run)(const char *name, const struct text_list *arguments,
        const struct text_list *environment, int *out_status);
};

/* The first of the arguments names the command. Returns the exit status. */
int command_family_run(const struct command_family *family, const struct text_list *arguments,
    const struct text_list *environment);

#endif
