/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command that serves from an event loop until SIGTERM or SIGINT: creates its log, its loop
 * and its signal handling, and reports why it cannot start. */
#ifndef MUSTER_MAIN_COMMAND_SERVICE_H
#define MUSTER_MAIN_COMMAND_SERVICE_H

#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

struct command_service {
    const char *program; /* "muster store serve" */
    /* Starts to serve. On failure, too, `stop` is called and frees what was created. */
    enum failure_code (*start)(
        void *context, struct event_loop *loop, const struct log *log, struct failure *failure);
    void (*stop)(void *context);
    void *context;
};

/* What an object of libmuster says, whose levels are Python's, as a line of the service's log. */
void command_service_log(const struct log *log, int level, const char *origin, const char *message);

/* Runs the service. Returns the exit status. */
int command_service_run(const struct command_service *service, const struct text_list *environment);

#endif
