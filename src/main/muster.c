/* SPDX-License-Identifier: BSD-3-Clause */
/* The `muster` command: finds the sub-command and calls it. When it is called under the name
 * torchrun, it is `muster run`. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/event_loop.h"
#include "main/exit_status.h"
#include "main/install_torchrun.h"
#include "main/rendezvous/rendezvous_command.h"
#include "main/run_command.h"
#include "main/store/store_command.h"
#include "main/telling/report_command.h"
#include "main/telling/status_command.h"
#include "main/timer/timer_command.h"

static const char usage[] =
    "usage: muster run [OPTION]… SCRIPT [ARG]…    run a job on this node, as torchrun does\n"
    "       muster status [JOB] [OPTION]…         show how a job of this machine stands\n"
    "       muster events [JOB] [OPTION]…         show what has happened to it\n"
    "       muster report [JOB|FILE…] [OPTION]…   report what has become of it, as a page or data\n"
    "       muster dashboard [JOB] [OPTION]…      serve a page that shows it while it runs\n"
    "       muster stacks [JOB] RANK…|--all       show what its workers do now\n"
    "       muster store COMMAND [OPTION]…        serve or inspect a TCPStore\n"
    "       muster rendezvous show [OPTION]…      show how the nodes of a job found each other\n"
    "       muster timer COMMAND [OPTION]…        serve, hold or list countdown timers\n"
    "       muster install-torchrun DIRECTORY     link torchrun in a directory to this program\n"
    "       muster --version | --help\n"
    "\n"
    "`muster run --help`, `muster store --help` and `muster timer --help` tell more.\n";

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static int dispatch(
    const char *command, const struct text_list *arguments, const struct text_list *environment) {
    if (text_equals(command, "run")) {
        return run_command("muster run", arguments, environment);
    }
    if (text_equals(command, "store")) {
        return store_command(arguments, environment);
    }
    if (text_equals(command, "rendezvous")) {
        return rendezvous_command(arguments, environment);
    }
    if (text_equals(command, "timer")) {
        return timer_command(arguments, environment);
    }
    if (text_equals(command, "status")) {
        return status_command(arguments, environment);
    }
    if (text_equals(command, "events")) {
        return events_command(arguments, environment);
    }
    if (text_equals(command, "report")) {
        return report_command(arguments, environment);
    }
    if (text_equals(command, "dashboard")) {
        return dashboard_command(arguments, environment);
    }
    if (text_equals(command, "stacks")) {
        return stacks_command(arguments, environment);
    }
    if (text_equals(command, "install-torchrun")) {
        return install_torchrun_command(arguments, environment);
    }
    if (text_equals(command, "--version") || text_equals(command, "version")) {
        puts("muster " MUSTER_VERSION);
        return EXIT_SUCCESS;
    }
    if (text_equals(command, "help") && arguments->count > 0) {
        fprintf(stderr,
            "muster: error: 'muster help' takes no topic; write muster %s --help\n"
            "usage: muster COMMAND [OPTION]…; muster --help shows every command\n",
            arguments->items[0]);
        return EXIT_STATUS_USAGE;
    }
    if (text_equals(command, "--help") || text_equals(command, "-h") ||
        text_equals(command, "help")) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    fprintf(stderr,
        "muster: error: unknown command '%s' (expected run, status, events, stacks, report, "
        "dashboard, store, rendezvous, timer or install-torchrun)\n"
        "usage: muster COMMAND [OPTION]…; muster --help shows every command\n",
        command);
    return EXIT_STATUS_USAGE;
}

/* If the program is started with a standard stream closed (cron, some init systems), the next file
 * that is opened would get its descriptor. So /dev/null takes that place. */
static void keep_standard_descriptors_taken(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        close(fd);
    }
}

int main(int argument_count, char **argument_values) {
    struct text_list arguments = {0};
    struct text_list environment = {0};
    keep_standard_descriptors_taken();
    abort_notice_install();
    for (char **variable = environ; *variable != NULL; variable++) {
        text_list_add(&environment, *variable);
    }
    bool is_torchrun = argument_count > 0 && text_equals(base_name(argument_values[0]), "torchrun");
    int skipped = is_torchrun ? 1 : 2;
    for (int i = skipped; i < argument_count; i++) {
        text_list_add(&arguments, argument_values[i]);
    }
    int status;
    if (is_torchrun) {
        status = run_command("torchrun", &arguments, &environment);
    } else if (argument_count < 2) {
        fputs(usage, stderr);
        status = EXIT_STATUS_USAGE;
    } else {
        status = dispatch(argument_values[1], &arguments, &environment);
    }
    text_list_clear(&arguments);
    text_list_clear(&environment);
    return status;
}
