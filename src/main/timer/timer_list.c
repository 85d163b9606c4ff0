/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster timer list`, as a program of libmuster would do it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <muster/timer_server.h>

#include "base/python_repr.h"
#include "core/workers/signal_name.h"
#include "main/command_family.h"
#include "main/timer/timer_command.h"
#include "main/timer/timer_options.h"

static const char program[] = "muster timer list";

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {
        .destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print each timer as the line that would acquire it.",
    },
    TIMER_OPTION_FILE,
};

static const struct option_table table = {
    .description =
        "Show the countdown timers that are held: the process, the seconds it has left, the signal "
        "it gets then, the scope. The server is a job's agent or `muster timer serve`.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
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
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        return EXIT_FAILURE;
    }
    print_header(&listing);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int timer_list(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    int status = timer_options_read(&table, program, arguments, environment, &result, &path)
                     ? list(path, option_result_value(&result, "json")->flag)
                     : command_print(&result);
    option_result_clear(&result);
    return status;
}
