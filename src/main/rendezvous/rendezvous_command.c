/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/rendezvous/rendezvous_command.h"

#include "main/command_family.h"

static const char usage[] =
    "usage: muster rendezvous show --rdzv-endpoint HOST[:PORT] [--rdzv-id ID] [OPTION]...\n"
    "\n"
    "`show` prints the record by which the nodes of a job find each other (torchrun's, too): the\n"
    "round, who takes part with which rank, who waits. `muster rendezvous show --help` tells "
    "more.\n";

static void print_usage(FILE *stream) {
    fputs(usage, stream);
}

static bool run(const char *name, const struct text_list *arguments,
    const struct text_list *environment, int *out_status) {
    if (!text_equals(name, "show")) {
        return false;
    }
    *out_status = rendezvous_show(arguments, environment);
    return true;
}

int rendezvous_command(const struct text_list *arguments, const struct text_list *environment) {
    static const struct command_family family = {"rendezvous", print_usage, run};
    return command_family_run(&family, arguments, environment);
}
