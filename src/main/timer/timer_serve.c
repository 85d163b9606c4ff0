/* SPDX-License-Identifier: BSD-3-Clause */
/* `muster timer serve`, as a program of libmuster would do it. */
#include <stdio.h>

#include <muster/timer_server.h>

#include "base/python_repr.h"
#include "core/workers/signal_name.h"
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
