/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/timer_server.h"
#include "core/signal_name.h"
#include "host/descriptor_limit.h"
#include "host/log_sink.h"
#include "host/number_directory.h"
#include "host/process_table.h"
#include "host/signal_watch.h"
#include "host/timer_fifo.h"
#include "main/timer_command.h"
#include "main/timer_options.h"
#include "options/python_repr.h"

static const char program[] = "muster timer serve";

static const struct option_definition definitions[] = {
    {
        .destination = "help",
        .names = {"-h", "--help"},
        .kind = OPTION_HELP,
        .help = "Show this page and exit.",
    },
    TIMER_OPTION_FILE,
};

static const struct option_table table = {
    .description =
        "Serve countdown timers without a job: a process whose timer expires gets the signal it "
        "asked for. Only processes of this user can hold timers. When the FIFO is there, one line "
        "is printed: FILE and its path. SIGTERM or SIGINT end it.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
};

/* Everything that serving needs; NULL is what is not there (yet). */
struct service {
    struct log_sink *sink;
    struct event_loop *loop;
    struct signal_watch *signals;
    struct timer_server *server;
};

static void stop_loop(void *context, int signal) {
    (void)signal;
    event_loop_stop(context);
}

static bool is_of_this_user(void *context, const struct kernel_process_stat *process) {
    char path[NUMBER_PATH_SIZE];
    struct stat status;
    (void)context;
    number_path_format(path, "/proc/", (int)process->pid, "");
    return process->pid > 1 && process->pid != getpid() && stat(path, &status) == 0 &&
           status.st_uid == geteuid();
}

static bool is_still_there(
    const struct watchdog_expiry *expiry, struct kernel_process_stat *out_stat) {
    return process_table_read((pid_t)expiry->pid, out_stat) &&
           out_stat->start_time == expiry->start_time;
}

static bool end_process(void *context, const struct watchdog_expiry *expiry) {
    const struct service *service = context;
    const struct log *log = log_sink_log(service->sink);
    struct kernel_process_stat stat;
    struct text scopes = {0};
    bool is_settled = true;
    for (size_t i = 0; i < expiry->scopes.count; i++) {
        text_append(&scopes, i == 0 ? "" : ", ");
        python_repr_append(&scopes, expiry->scopes.items[i]);
    }
    if (!is_still_there(expiry, &stat)) {
        log_info(log, "process %" PRId64 " has ended, its timers do not matter: %s", expiry->pid,
            text_string(&scopes));
    } else if (expiry->signal == 0) {
        log_warning(log, "process %" PRId64 " lives on, though its timers expired: %s", expiry->pid,
            text_string(&scopes));
    } else if (process_table_signal(&stat, expiry->signal)) {
        log_warning(log, "ended process %" PRId64 " with %s, its timers expired: %s", expiry->pid,
            signal_name_from_number(expiry->signal), text_string(&scopes));
    } else if (is_still_there(expiry, &stat)) {
        log_error(log, "cannot end process %" PRId64 ", whose timers expired: %s; trying again",
            expiry->pid, text_string(&scopes));
        is_settled = false;
    }
    text_clear(&scopes);
    return is_settled;
}

static enum failure_code start(struct service *service, const char *path, struct failure *failure) {
    static const int ending[] = {SIGTERM, SIGINT};
    const struct timer_server_settings settings = {
        .log = log_sink_log(service->sink),
        .admits = is_of_this_user,
        .refusal = "it is no process of this user",
        .expired = end_process,
        .context = service,
    };
    if (timer_fifo_is_served(path)) {
        return failure_set(failure, FAILURE_INVALID, "another program serves %s already", path);
    }
    enum failure_code code = event_loop_new(&service->loop, failure);
    if (code == FAILURE_NONE) {
        code = signal_watch_new(
            service->loop, ending, 2, stop_loop, service->loop, &service->signals, failure);
    }
    if (code == FAILURE_NONE) {
        code = timer_server_new(service->loop, path, &settings, &service->server, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    timer_server_begin(service->server);
    if (printf("FILE %s\n", path) < 0 || fflush(stdout) != 0) {
        return failure_set(failure, FAILURE_SYSTEM, "cannot print the path");
    }
    return FAILURE_NONE;
}

static int serve(const char *path, const struct text_list *environment) {
    struct service service = {0};
    struct failure failure = {0};
    int status = EXIT_SUCCESS;
    service.sink = log_sink_new(text_list_variable(environment, "LOGLEVEL"), STDERR_FILENO);
    signal_watch_ignore_broken_pipes();
    descriptor_limit_raise(); /* each holder of timers takes one */
    if (start(&service, path, &failure) == FAILURE_NONE) {
        event_loop_run(service.loop);
    } else {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        status = EXIT_FAILURE;
    }
    timer_server_free(service.server);
    signal_watch_free(service.signals);
    event_loop_free(service.loop);
    log_sink_free(service.sink);
    return status;
}

int timer_serve(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    int status = timer_options_read(&table, program, arguments, environment, &result, &path)
                     ? serve(path, environment)
                     : timer_options_print(&result);
    option_result_clear(&result);
    return status;
}
