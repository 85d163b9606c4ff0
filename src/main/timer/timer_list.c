/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/watchdog/timer_server.h"
#include "core/workers/signal_name.h"
#include "host/watchdog/snapshot_socket.h"
#include "main/command_family.h"
#include "main/timer/timer_command.h"
#include "main/timer/timer_options.h"
#include "base/python_repr.h"
#include "base/utf8.h"
#include "wire/watchdog/timer_request_json.h"

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

static void print_timer(void *context, const struct watchdog_request *timer) {
    const struct timespec *now = context;
    struct text scope = {0};
    double left =
        ((double)timer->expiration.nanoseconds - (double)now->tv_nsec) / 1e9 - (double)now->tv_sec;
    const char *signal = timer->signal > 0 ? signal_name_from_number(timer->signal) : "-";
    python_repr_append(&scope, timer->scope);
    printf("%10" PRId64 " %12.3f %-9s %s\n", timer->pid, left, signal, text_string(&scope));
    text_clear(&scope);
}

static void ignore(void *context, const char *reason) {
    (void)context;
    (void)reason;
}

static void print_table(const struct text *snapshot) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timer_request_visitor visitor = {print_timer, ignore, &now};
    printf("%10s %12s %-9s %s\n", "PID", "SECONDS LEFT", "SIGNAL", "SCOPE");
    const char *line = text_string(snapshot);
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        timer_request_json_each(
            (struct slice){(const uint8_t *)line, (size_t)(end - line)}, &visitor);
    }
}

static int list(const char *path, bool as_json) {
    struct text snapshot = {0};
    struct failure failure;
    int status = EXIT_SUCCESS;
    char *socket_path = text_format("%s" TIMER_SERVER_SOCKET_SUFFIX, path);
    if (snapshot_socket_read(socket_path, &snapshot, &failure) != FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        status = EXIT_FAILURE;
    } else if (as_json) {
        if (snapshot.length > 0) {
            utf8_make_string_printable(snapshot.data); /* changes nothing that an agent sends */
        }
        fputs(text_string(&snapshot), stdout);
    } else {
        print_table(&snapshot);
    }
    free(socket_path);
    text_clear(&snapshot);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
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
