/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/timer/timer_command.h"

#include <errno.h>
#include <fcntl.h>
#include <muster/timer.h>
#include <muster/timer_server.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "core/workers/signal_name.h"
#include "main/command.h"
#include "options/argparse/option_parser.h"

/* The option that all sub-commands of `muster timer` share: the FIFO. */

#define TIMER_OPTION_FILE                                                                          \
    {                                                                                              \
        .destination = "file", .names = {"--file"},                                                \
        .help = "The FIFO through which timers are asked for. Default: $TORCHELASTIC_TIMER_FILE.", \
    }

/* Parses the command line and finds the FIFO's path, which is borrowed from the other arguments.
 * Returns true when there are values. */
static bool timer_options_read(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *result, const char **out_path) {
    option_parse(table, program, arguments, environment, result);
    if (result->outcome != OPTION_OUTCOME_VALUES) {
        return false;
    }
    const char *path = option_result_value(result, "file")->text;
    path = path != NULL ? path : text_list_variable(environment, "TORCHELASTIC_TIMER_FILE");
    if (path == NULL || *path == '\0') {
        option_result_reject(result, NULL, "give --file, or set TORCHELASTIC_TIMER_FILE");
        return false;
    }
    *out_path = path;
    return true;
}

/* List. */

static const char list_program[] = "muster timer list";

static const struct option_definition list_definitions[] = {
    OPTION_DEFINITION_HELP,
    {
        .destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print each timer as the line that would acquire it.",
    },
    TIMER_OPTION_FILE,
};

static const struct option_table list_table = {
    .description =
        "Show the countdown timers that are held: the process, the seconds it has left, the signal "
        "it gets then, the scope. The server is a job's agent or `muster timer serve`.",
    .definitions = list_definitions,
    .definition_count = sizeof list_definitions / sizeof list_definitions[0],
};

struct listing {
    bool as_json;
    bool has_header;
};

static void print_header(struct listing *listing) {
    if (!listing->as_json && !listing->has_header) {
        printf("%10s %12s %-9s %s\n", "PID", "SECONDS LEFT", "SIGNAL", "SCOPE");
    }
    listing->has_header = true;
}

static void print_row(const struct muster_timer_request *timer) {
    struct timespec now;
    struct text scope = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    double left = timer->expiration - (double)now.tv_sec - (double)now.tv_nsec / 1e9;
    const char *signal = timer->signal > 0 ? signal_name_from_number(timer->signal) : "-";
    python_repr_append(&scope, timer->scope);
    printf("%10ld %12.3f %-9s %s\n", timer->pid, left, signal, text_string(&scope));
    text_clear(&scope);
}

static void print_timer(void *context, const struct muster_timer_request *timer) {
    struct listing *listing = context;
    print_header(listing);
    if (listing->as_json) {
        printf("%s\n", timer->json);
    } else {
        print_row(timer);
    }
}

static int list(const char *path, bool as_json) {
    struct listing listing = {.as_json = as_json};
    struct muster_failure failure;
    if (muster_timer_server_list(path, print_timer, &listing, &failure) != MUSTER_OK) {
        fprintf(stderr, "%s: error: %s\n", list_program, failure.message);
        return EXIT_FAILURE;
    }
    print_header(&listing);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int timer_list(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    int status =
        timer_options_read(&list_table, list_program, arguments, environment, &result, &path)
            ? list(path, option_result_value(&result, "json")->flag)
            : command_print(&result);
    option_result_clear(&result);
    return status;
}

/* Run. */

/* The exit statuses of shells and env(1) when a command cannot be run. */
#define EXIT_NOT_FOUND 127
#define EXIT_NOT_RUN 126

static const char run_program[] = "muster timer run";

static const struct option_definition run_definitions[] = {
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

static const struct option_table run_table = {
    .description =
        "Run a command under a countdown timer: acquire it, run, release it. The exit status is "
        "the command's, 128 + N when signal N ended it.",
    .definitions = run_definitions,
    .definition_count = sizeof run_definitions / sizeof run_definitions[0],
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
    fprintf(stderr, "%s: error: cannot run %s: %s\n", run_program, words[0], strerror(error));
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
        fprintf(stderr, "%s: error: no timer: %s\n", run_program, strerror(errno));
        close(gate);
        collect(child);
        return EXIT_FAILURE;
    }
    if (write(gate, "", 1) != 1) {
        fprintf(stderr, "%s: error: the command is gone\n", run_program);
    }
    close(gate);
    wait_for_end(child);
    if (muster_timer_release_for(timer, child, scope) != 0) {
        fprintf(stderr, "%s: the timer could not be released: %s\n", run_program, strerror(errno));
    }
    return collect(child);
}

static int run_run(const char *path, const struct option_result *result) {
    struct muster_timer timer;
    int gate[2];
    if (muster_timer_open(&timer, path) != 0 || pipe2(gate, O_CLOEXEC) != 0) {
        fprintf(stderr, "%s: error: no timers at %s: %s\n", run_program, path, strerror(errno));
        return EXIT_FAILURE;
    }
    timer.signal = signal_number_from_name(option_result_text(result, "signal"));
    pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "%s: error: %s\n", run_program, strerror(errno));
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

static int timer_run(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    bool has_values =
        timer_options_read(&run_table, run_program, arguments, environment, &result, &path);
    if (has_values) {
        check(&result);
        has_values = result.outcome == OPTION_OUTCOME_VALUES;
    }
    int status = has_values ? run_run(path, &result) : command_print(&result);
    option_result_clear(&result);
    return status;
}

/* Serve. */

static const char serve_program[] = "muster timer serve";

static const struct option_definition serve_definitions[] = {
    OPTION_DEFINITION_HELP,
    TIMER_OPTION_FILE,
};

static const struct option_table serve_table = {
    .description =
        "Serve countdown timers without a job: a process whose timer expires gets the signal it "
        "asked for. Only processes of this user can hold timers. When the FIFO is there, one line "
        "is printed: FILE and its path. SIGTERM or SIGINT end it.",
    .definitions = serve_definitions,
    .definition_count = sizeof serve_definitions / sizeof serve_definitions[0],
};

struct service {
    const char *path; /* path of the FIFO */
    const struct log *log;
    struct muster_timer_server *server; /* NULL until it was created */
    struct event_descriptor *watch;
};

static void write_log(void *context, int level, const char *origin, const char *message) {
    const struct service *service = context;
    command_service_log(service->log, level, origin, message);
}

static void take_event(void *context, const struct muster_timer_event *event) {
    const struct service *service = context;
    if (event->kind == MUSTER_TIMER_SIGNALLED) {
        struct text scopes = {0};
        for (size_t i = 0; i < event->count; i++) {
            text_append(&scopes, i == 0 ? "" : ", ");
            python_repr_append(&scopes, event->scopes[i]);
        }
        log_warning(service->log, "ended process %ld with %s, its timers expired: %s", event->pid,
            signal_name_from_number(event->signal), text_string(&scopes));
        text_clear(&scopes);
    }
}

static void process(void *context) {
    const struct service *service = context;
    (void)muster_timer_server_process(service->server, NULL); /* cannot fail here */
}

/* The server has a loop of its own, which this one polls, as any program's does. */
static enum failure_code start(
    void *context, struct event_loop *loop, const struct log *log, struct failure *failure) {
    struct service *service = context;
    struct muster_failure reason;
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    settings.path = service->path;
    settings.event = take_event;
    settings.log = write_log;
    settings.context = service;
    service->log = log;
    if (muster_timer_server_new(&settings, &service->server, &reason) != MUSTER_OK ||
        muster_timer_server_start(service->server, &reason) != MUSTER_OK) {
        return failure_set(failure, FAILURE_SYSTEM, "%s", reason.message);
    }
    enum failure_code code = event_descriptor_new(
        loop, muster_timer_server_fd(service->server), process, service, &service->watch, failure);
    if (code == FAILURE_NONE && (printf("FILE %s\n", service->path) < 0 || fflush(stdout) != 0)) {
        return failure_set(failure, FAILURE_SYSTEM, "cannot print the path");
    }
    return code;
}

static void stop(void *context) {
    struct service *service = context;
    event_descriptor_free(service->watch);
    muster_timer_server_free(service->server);
}

static int serve(const char *path, const struct text_list *environment) {
    struct service service = {.path = path};
    const struct command_service command = {serve_program, start, stop, &service};
    return command_service_run(&command, environment);
}

/* The sub-commands, each in its own file. `arguments` are those after the sub-command's name. Serve
 * and list return 1 on failure; run returns the status of its command. */
static int timer_serve(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    int status =
        timer_options_read(&serve_table, serve_program, arguments, environment, &result, &path)
            ? serve(path, environment)
            : command_print(&result);
    option_result_clear(&result);
    return status;
}

/* Command. */

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
