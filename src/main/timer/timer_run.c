/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/timer.h>

#include "core/workers/signal_name.h"
#include "main/command_family.h"
#include "main/timer/timer_command.h"
#include "main/timer/timer_options.h"

/* The exit statuses of shells and env(1) when a command cannot be run. */
#define EXIT_NOT_FOUND 127
#define EXIT_NOT_RUN 126

static const char program[] = "muster timer run";

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {
        .destination = "after",
        .names = {"--after"},
        .kind = OPTION_FLOAT,
        .help = "Seconds the command may take; fractions are allowed. Has to be given.",
    },
    {
        .destination = "scope",
        .names = {"--scope"},
        .help = "The timer's name in lists and log lines. Default: the command's.",
    },
    {
        .destination = "signal",
        .names = {"--signal"},
        .default_text = "SIGKILL",
        .help = "The signal the command gets when its time is up. Default: SIGKILL.",
    },
    TIMER_OPTION_FILE,
    {
        .destination = "command",
        .help = "What to run; its options may need -- in front.",
    },
    {
        .destination = "arguments",
        .arity = OPTION_ARITY_REMAINDER,
        .help = "Its arguments.",
    },
};

static const struct option_table table = {
    .description =
        "Run a command under a countdown timer: acquire it, run, release it. The exit status is "
        "the command's, 128 + N when signal N ended it.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
};

static const char *scope_of(const struct option_result *result) {
    const char *scope = option_result_value(result, "scope")->text;
    return scope != NULL ? scope : option_result_text(result, "command");
}

static void check(struct option_result *result) {
    const struct option_value *after = option_result_value(result, "after");
    if (!after->is_set || !(after->number >= 0)) {
        option_result_reject(result, "after", "give the seconds, 0 or more");
    } else if (signal_number_from_name(option_result_text(result, "signal")) == 0) {
        option_result_reject(result, "signal", "there is no signal of this name");
    }
}

/* Runs in the child: waits until the timer is set, or until the parent gives up. */
static void become_command(const struct option_result *result, int gate) {
    char byte;
    const struct text_list *rest = &option_result_value(result, "arguments")->list;
    char **words = calloc(rest->count + 2, sizeof *words);
    if (words == NULL || read(gate, &byte, 1) != 1) {
        _exit(EXIT_FAILURE);
    }
    words[0] = option_result_value(result, "command")->text;
    for (size_t i = 0; i < rest->count; i++) {
        words[i + 1] = rest->items[i];
    }
    execvp(words[0], words);
    int error = errno;
    fprintf(stderr, "%s: error: cannot run %s: %s\n", program, words[0], strerror(error));
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

/* Waits until the command ends. It stays a zombie, so that its pid cannot be reused yet. */
static void wait_for_end(pid_t child) {
    siginfo_t info;
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

static int collect(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return EXIT_FAILURE;
        }
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_with(
    struct muster_timer *timer, const struct option_result *result, pid_t child, int gate) {
    const char *scope = scope_of(result);
    double after = option_result_value(result, "after")->number;
    if (muster_timer_acquire_for(timer, child, scope, after) != 0) {
        fprintf(stderr, "%s: error: no timer: %s\n", program, strerror(errno));
        close(gate);
        collect(child);
        return EXIT_FAILURE;
    }
    if (write(gate, "", 1) != 1) {
        fprintf(stderr, "%s: error: the command is gone\n", program);
    }
    close(gate);
    wait_for_end(child);
    if (muster_timer_release_for(timer, child, scope) != 0) {
        fprintf(stderr, "%s: the timer could not be released: %s\n", program, strerror(errno));
    }
    return collect(child);
}

static int run(const char *path, const struct option_result *result) {
    struct muster_timer timer;
    int gate[2];
    if (muster_timer_open(&timer, path) != 0 || pipe2(gate, O_CLOEXEC) != 0) {
        fprintf(stderr, "%s: error: no timers at %s: %s\n", program, path, strerror(errno));
        return EXIT_FAILURE;
    }
    timer.signal = signal_number_from_name(option_result_text(result, "signal"));
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "%s: error: %s\n", program, strerror(errno));
        return EXIT_FAILURE;
    }
    if (child == 0) {
        close(gate[1]);
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* ending this process is meant to end the command */
        become_command(result, gate[0]);
    }
    /* A terminal sends these signals to both processes; the command decides what happens. */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    close(gate[0]);
    int status = run_with(&timer, result, child, gate[1]);
    muster_timer_close(&timer);
    return status;
}

int timer_run(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    bool has_values = timer_options_read(&table, program, arguments, environment, &result, &path);
    if (has_values) {
        check(&result);
        has_values = result.outcome == OPTION_OUTCOME_VALUES;
    }
    int status = has_values ? run(path, &result) : command_print(&result);
    option_result_clear(&result);
    return status;
}
