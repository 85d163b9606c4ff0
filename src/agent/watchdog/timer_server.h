/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of countdown timers: carries out what core/watchdog decides. It takes requests
 * from a FIFO, signals processes, logs that, and shows who holds what to whoever connects to the
 * socket beside the FIFO. A process's timers end with it; where very many processes hold some, at
 * their deadlines. Whose a process is, and what follows from its end, is its user's business.
 *
 * Deadlines are wall-clock times, since clients give them so, and pass when that clock says so: one
 * that is set back postpones them, one that is set forward brings them nearer. */
#ifndef MUSTER_AGENT_WATCHDOG_TIMER_SERVER_H
#define MUSTER_AGENT_WATCHDOG_TIMER_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/log.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/event_loop.h"
#include "wire/failure/kernel_text.h"

/* The socket is at the FIFO's path with this behind it. */
#define TIMER_SERVER_SOCKET_SUFFIX ".list"
/* The kernel knows no longer paths, and the socket's name is longer than the FIFO's. */
#define TIMER_SERVER_PATH_MAXIMUM 4000

struct timer_server;

struct timer_server_settings {
    const struct log *log;  /* borrowed */
    const char *log_prefix; /* of what is told of processes whose timers have expired; borrowed */
    struct watchdog_settings rules;
    /* Whose a process that runs is, as in watchdog_sight, and why one that is nobody's gets no
     * timer. */
    int (*find_owner)(
        void *context, const struct kernel_process_stat *process, bool is_asking_for_a_timer);
    const char *(*refusal)(void *context, int64_t pid);
    /* As process_table_signal does it. */
    bool (*send_signal)(void *context, const struct kernel_process_stat *process, int signal);
    void (*notified)(void *context, const struct watchdog_notice *notice);
    void *context;
};

/* Makes the FIFO at `path`; requests are not served before timer_server_begin. Fails as
 * timer_fifo_new does. */
__attribute__((warn_unused_result)) enum failure_code timer_server_new(struct event_loop *loop,
    const char *path, const struct timer_server_settings *settings,
    struct timer_server **out_server, struct failure *failure);

/* Makes what is at `path` anew: somebody has removed it. Fails as timer_fifo_renew does. */
__attribute__((warn_unused_result)) enum failure_code timer_server_renew(
    struct timer_server *server, const char *path, struct failure *failure);

/* Removes the FIFO. Accepts NULL; not from inside a callback. */
void timer_server_free(struct timer_server *server);

/* From now on requests are served; what was written before is dropped. */
void timer_server_begin(struct timer_server *server);

/* All timers are forgotten, and no requests are served. */
void timer_server_end(struct timer_server *server);

/* Takes a request as if it had been read. Not from inside a callback. */
void timer_server_take(struct timer_server *server, const struct watchdog_request *request);

/* A process has ended and was reaped, which may come to be known here first. */
void timer_server_forget(struct timer_server *server, pid_t pid);

/* A process has been looked at: the answer to a notice of the kind LOOK. */
void timer_server_looked_at(struct timer_server *server);

/* What was decided so far. Borrowed. */
const struct watchdog_machine *timer_server_machine(const struct timer_server *server);

/* The scopes as Python's repr shows them, with commas between them. The caller frees the text. */
char *timer_server_format_scopes(const struct text_list *scopes);

#endif
