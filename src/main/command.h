/* SPDX-License-Identifier: BSD-3-Clause */
/* What commands have in common: their statuses, how one is found by its words, and how one
 * serves. */
#ifndef MUSTER_MAIN_COMMAND_H
#define MUSTER_MAIN_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "host/loop/event_loop.h"
#include "options/argparse/option_result.h"

/* Exit statuses of the commands, beside EXIT_SUCCESS and EXIT_FAILURE. */

#define EXIT_STATUS_USAGE 2 /* the command line is invalid; the same status as argparse */

/* Commands that share a first word: `muster store get`, `muster timer run`. */

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

/* Runs a command that serves from an event loop until SIGTERM or SIGINT: creates its log, its loop
 * and its signal handling, and reports why it cannot start. */

struct command_service {
    const char *program; /* "muster store serve" */
    /* Starts to serve. On failure, too, `stop` is called and frees what was created. */
    enum failure_code (*start)(
        void *context, struct event_loop *loop, const struct log *log, struct failure *failure);
    void (*stop)(void *context);
    void *context;
};

/* What an object of libmuster says, whose levels are Python's, as a line of the service's log. */
void command_service_log(const struct log *log, int level, const char *origin, const char *message);

/* Runs the service. Returns the exit status. */
int command_service_run(const struct command_service *service, const struct text_list *environment);

#endif
