/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/timer_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "main/exit_status.h"

static const char usage[] =
    "usage: muster timer serve [--file FILE]                         serve countdown timers\n"
    "       muster timer run --after SECONDS [OPTION]... COMMAND...  run a command under a timer\n"
    "       muster timer list [--file FILE]                          who holds what until when\n"
    "\n"
    "The timers are those of PyTorch's FileTimerClient and of libmuster-timer. FILE is the FIFO\n"
    "they ask through; without --file it is TORCHELASTIC_TIMER_FILE, as in a worker of a job.\n"
    "`muster timer COMMAND --help` tells more about each.\n";

static int dispatch(
    const char *name, const struct text_list *arguments, const struct text_list *environment) {
    if (text_equals(name, "serve")) {
        return timer_serve(arguments, environment);
    }
    if (text_equals(name, "run")) {
        return timer_run(arguments, environment);
    }
    if (text_equals(name, "list")) {
        return timer_list(arguments, environment);
    }
    fputs(usage, stderr);
    fprintf(stderr, "muster timer: error: unknown command '%s'\n", name);
    return EXIT_STATUS_USAGE;
}

int timer_command(const struct text_list *arguments, const struct text_list *environment) {
    if (arguments->count == 0) {
        fputs(usage, stderr);
        fputs("muster timer: error: a command is missing\n", stderr);
        return EXIT_STATUS_USAGE;
    }
    const char *name = arguments->items[0];
    if (text_equals(name, "--help") || text_equals(name, "-h") || text_equals(name, "help")) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    struct text_list rest = {0};
    for (size_t i = 1; i < arguments->count; i++) {
        text_list_add(&rest, arguments->items[i]);
    }
    int status = dispatch(name, &rest, environment);
    text_list_clear(&rest);
    return status;
}
