/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/text.h"
#include "base/utf8.h"
#include "host/loop/event_loop.h"
#include "main/command.h"
#include "main/rendezvous/rendezvous_command.h"
#include "main/store/store_command.h"
#include "main/telling/report_command.h"
#include "main/telling/status_command.h"
#include "main/timer/timer_command.h"
#include "options/launch/launch_options.h"

/* `muster run`, also called torchrun: reads the options, runs the job, returns its exit status. */

/* `program` is how messages call the command. `arguments` are the arguments after it. `environment`
 * is the whole environment. */
static int run_command(
    const char *program, const struct text_list *arguments, const struct text_list *environment) {
    struct launch_options options;
    struct text_list inherited;
    int status = EXIT_STATUS_USAGE;
    launch_options_parse(program, arguments, environment, &options);
    switch (options.outcome) {
    case OPTION_OUTCOME_VALUES:
        agent_job_hide_token();
        (void)unsetenv(AGENT_JOB_TOKEN_VARIABLE);
        inherited = agent_job_environment(environment);
        status = agent_job_run(NULL, &options.config, &inherited);
        text_list_clear(&inherited);
        break;
    case OPTION_OUTCOME_PRINT:
        fputs(options.text, stdout);
        status = EXIT_SUCCESS;
        break;
    case OPTION_OUTCOME_MISTAKE:
        utf8_make_string_printable(options.text);
        fputs(options.text, stderr);
        break;
    }
    launch_options_clear(&options);
    return status;
}

/* `muster install-torchrun DIRECTORY`: puts a link named torchrun into a directory, for those whose
 * scripts call torchrun, and says which torchrun a shell finds. It replaces nothing. */

static const char install_torchrun_usage[] =
    "usage: muster install-torchrun DIRECTORY\n"
    "\n"
    "Links DIRECTORY/torchrun to this program, which is `muster run` under that name, and says\n"
    "which torchrun comes first in PATH. A torchrun that is there already is left as it is.\n";

static bool is_same_file(const char *left, const char *right) {
    struct stat left_status, right_status;
    return stat(left, &left_status) == 0 && stat(right, &right_status) == 0 &&
           left_status.st_dev == right_status.st_dev && left_status.st_ino == right_status.st_ino;
}

/* The first torchrun that a shell finds, for the caller to free; NULL when there is none. */
static char *first_in_path(const char *path) {
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        char *file = text_format("%.*s/torchrun", (int)length, length > 0 ? path : ".");
        if (access(file, X_OK) == 0) {
            return file;
        }
        free(file);
        path += length + (path[length] == ':');
    }
    return NULL;
}

static void say_what_a_shell_finds(const char *link, const char *directory, const char *path) {
    char *first = first_in_path(path);
    if (first == NULL) {
        printf("%s is not in PATH: add it, or call %s\n", directory, link);
    } else if (is_same_file(first, link)) {
        printf("torchrun is now Muster: %s is the first in PATH\n", first);
    } else {
        printf(
            "%s still comes first in PATH: put %s before it, or call %s\n", first, directory, link);
    }
    free(first);
}

/* Whether the link is there now. */
static bool make_link(const char *program, const char *link) {
    if (symlink(program, link) == 0) {
        printf("%s -> %s\n", link, program);
        return true;
    }
    if (errno == EEXIST && is_same_file(link, program)) {
        printf("%s is this program already\n", link);
        return true;
    }
    if (errno == EEXIST) {
        fprintf(stderr,
            "muster install-torchrun: error: %s is there already, and is another program: remove "
            "it, or name another directory\n",
            link);
    } else {
        fprintf(stderr, "muster install-torchrun: error: cannot make the link %s: %s\n", link,
            strerror(errno));
    }
    return false;
}

static int install_into(const char *directory, const char *path) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) {
        fprintf(stderr,
            "muster install-torchrun: error: cannot find out where this program is "
            "(/proc/self/exe: "
            "%s): link it yourself, with ln -s\n",
            strerror(errno));
        return EXIT_FAILURE;
    }
    program[length] = '\0';
    char *link = text_format("%s/torchrun", directory);
    bool is_linked = make_link(program, link);
    if (is_linked) {
        say_what_a_shell_finds(link, directory, path);
    }
    free(link);
    return is_linked ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Returns the exit status. */
static int install_torchrun_command(
    const struct text_list *arguments, const struct text_list *environment) {
    const char *directory = arguments->count == 1 ? arguments->items[0] : NULL;
    if (directory != NULL && (text_equals(directory, "--help") || text_equals(directory, "-h"))) {
        fputs(install_torchrun_usage, stdout);
        return EXIT_SUCCESS;
    }
    if (directory == NULL || directory[0] == '\0' || directory[0] == '-') {
        fprintf(stderr,
            "muster install-torchrun: error: expected one directory (for example ~/bin)\n%s",
            install_torchrun_usage);
        return EXIT_STATUS_USAGE;
    }
    return install_into(directory, text_list_variable(environment, "PATH"));
}

/* Muster. */

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
