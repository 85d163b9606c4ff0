/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster store get`, `set` and others: one operation on a running store, from a shell. Each
 * command is a line in a table: its options, and a function that asks the store and prints the
 * answer. */
#ifndef MUSTER_MAIN_STORE_STORE_INSPECT_H
#define MUSTER_MAIN_STORE_STORE_INSPECT_H

#include <muster/store.h>
#include <stddef.h>

#include "base/text.h"
#include "main/store/store_session.h"
#include "options/argparse/option_table.h"

struct store_session;

struct store_inspect_command {
    const char *name;
    const char *synopsis; /* name and arguments */
    const char *summary;
    struct option_table table;
    /* Returns the exit status. */
    int (*run)(struct store_session *session, const struct option_result *options);
};

extern const struct store_inspect_command store_inspect_commands[];
extern const size_t store_inspect_command_count;

int store_inspect(const struct store_inspect_command *command, const struct text_list *arguments,
    const struct text_list *environment);

#endif
