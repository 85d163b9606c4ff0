/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/timer/timer_command.h"

#include "main/command_family.h"

static const char usage[] =
    "usage: muster timer serve [--file FILE]                         serve countdown timers\n"
    "       muster timer run --after SECONDS [OPTION]... COMMAND...  run a command under a timer\n"
    "       muster timer list [--file FILE]                          lists timers\n"
    "\n"
    "The timers are those of PyTorch's FileTimerClient and of libmuster-timer. FILE is the FIFO\n"
    "they ask through; without --file it is TORCHELASTIC_TIMER_FILE, as in a worker of a job.\n"
    "`muster timer COMMAND --help` tells more about each.\n";

static void print_usage(FILE *stream) {
    fputs(usage, stream);
}

static bool run(const char *name, const struct text_list *arguments,
    const struct text_list *environment, int *out_status) {
    if (text_equals(name, "serve")) {
        *out_status = timer_serve(arguments, environment);
    } else if (text_equals(name, "run")) {
        *out_status = timer_run(arguments, environment);
    } else if (text_equals(name, "list")) {
        *out_status = timer_list(arguments, environment);
    } else {
        return false;
    }
    return true;
}

int timer_command(const struct text_list *arguments, const struct text_list *environment) {
    static const struct command_family family = {"timer", print_usage, run};
    return command_family_run(&family, arguments, environment);
}
