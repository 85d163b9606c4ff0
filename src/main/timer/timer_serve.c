/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/watchdog/timer_server.h"
#include "core/workers/signal_name.h"
#include "host/loop/number_directory.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_fifo.h"
#include "main/command_family.h"
#include "main/command_service.h"
#include "main/timer/timer_command.h"
#include "main/timer/timer_options.h"

static const char program[] = "muster timer serve";

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
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

struct service {
    const char *path; /* path of the FIFO */
    const struct log *log;
    struct timer_server *server; /* NULL until it was created */
};

static bool is_of_this_user(int64_t pid) {
    char path[NUMBER_PATH_SIZE];
    struct stat status;
    number_path_format(path, "/proc/", (int)pid, "");
    return pid > 1 && pid != getpid() && stat(path, &status) == 0 && status.st_uid == geteuid();
}

/* A process that has timers may keep them, even if its user has changed meanwhile. */
static int find_owner(
    void *context, const struct kernel_process_stat *process, bool is_asking_for_a_timer) {
    (void)context;
    return !is_asking_for_a_timer || is_of_this_user(process->pid) ? 0 : -1;
}

static void take_notice(void *context, const struct watchdog_notice *notice) {
    const struct service *service = context;
    if (notice->kind == WATCHDOG_NOTICE_SIGNALLED) {
        const struct watchdog_expiry *expiry = notice->expiry;
        char *scopes = timer_server_format_scopes(&expiry->scopes);
        log_warning(service->log, "ended process %" PRId64 " with %s, its timers expired: %s",
            expiry->pid, signal_name_from_number(expiry->signal), scopes);
        free(scopes);
    }
}

static enum failure_code start(
    void *context, struct event_loop *loop, const struct log *log, struct failure *failure) {
    struct service *service = context;
    const struct timer_server_settings settings = {
        .log = log,
        .log_prefix = "",
        .find_owner = find_owner,
        .refusal = "it is no process of this user",
        .send_signal = process_table_signal,
        .notified = take_notice,
        .context = service,
    };
    service->log = log;
    if (timer_fifo_is_served(service->path)) {
        return failure_set(
            failure, FAILURE_INVALID, "another program serves %s already", service->path);
    }
    enum failure_code code =
        timer_server_new(loop, service->path, &settings, &service->server, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    timer_server_begin(service->server);
    if (printf("FILE %s\n", service->path) < 0 || fflush(stdout) != 0) {
        return failure_set(failure, FAILURE_SYSTEM, "cannot print the path");
    }
    return FAILURE_NONE;
}

static void stop(void *context) {
    struct service *service = context;
    timer_server_free(service->server);
}

static int serve(const char *path, const struct text_list *environment) {
    struct service service = {.path = path};
    const struct command_service command = {program, start, stop, &service};
    return command_service_run(&command, environment);
}

int timer_serve(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    const char *path;
    int status = timer_options_read(&table, program, arguments, environment, &result, &path)
                     ? serve(path, environment)
                     : command_print(&result);
    option_result_clear(&result);
    return status;
}
