/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog of this node's workers: takes timer requests from a FIFO and ends the process whose
 * timer expires, nobody else; it is looked at first, if evidence is wanted. What becomes of the job
 * is then decided as after any other death of a worker, unless the configuration wants the agent to
 * end with it, as FileTimerServer in torch/distributed/elastic/timer/file_based_local_timer.py
 * does. */
#ifndef MUSTER_AGENT_WATCHDOG_AGENT_WATCHDOG_H
#define MUSTER_AGENT_WATCHDOG_AGENT_WATCHDOG_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/failure/agent_evidence.h"
#include "agent/workers/agent_workers.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/telling/event_record.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/event_loop.h"
#include "wire/failure/kernel_text.h"

/* A server of countdown timers: carries out what core/watchdog decides. It takes requests
 * from a FIFO, signals processes, logs that, and shows who holds what to whoever connects to the
 * socket beside the FIFO. A process's timers end with it; where very many processes hold some, at
 * their deadlines. Whose a process is, and what follows from its end, is its user's business.
 *
 * Deadlines are wall-clock times, since clients give them so, and pass when that clock says so: one
 * that is set back postpones them, one that is set forward brings them nearer. */

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

/* What was decided so far. Borrowed. */
const struct watchdog_machine *timer_server_machine(const struct timer_server *server);

struct agent_watchdog;

/* Told what happens, as FileTimerServer tells its log_event; `timer` is NULL where it is about
 * none, else borrowed. */
struct agent_watchdog_observer {
    void (*happened)(
        void *context, enum event_watchdog what, const struct event_timer_record *timer);
    void *context;
};

struct agent_watchdog_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct text_list *environment;
    const struct log *log;
    struct agent_workers *workers;
    /* Called when a process was ended and the configuration wants the agent to end, too. */
    void (*end_agent)(void *context);
    /* Somebody whose timer expired is being looked at; that is over, and whoever was to be ended
     * with it has been. Needed with `evidence`. */
    void (*look_begun)(void *context);
    void (*look_over)(void *context);
    void *context;
    struct agent_watchdog_observer observer; /* `happened` may be NULL */
    struct agent_evidence *evidence; /* looks at who is to be ended first; NULL: nobody does */
    struct guardian *guardian; /* removes the FIFO of an agent that was killed; NULL: nobody does */
};

/* Makes the FIFO and tells the workers' environment about it; *out_watchdog is NULL when the job
 * wants no timers. The functions below accept that. */
__attribute__((warn_unused_result)) enum failure_code agent_watchdog_new(struct event_loop *loop,
    const struct agent_watchdog_settings *settings, struct agent_watchdog **out_watchdog,
    struct failure *failure);

/* Removes the FIFO. Free the evidence before. */
void agent_watchdog_free(struct agent_watchdog *watchdog);

/* Serves the workers that are started next; what earlier ones have asked for is forgotten. Drop the
 * evidence that is under way before. */
void agent_watchdog_begin(struct agent_watchdog *watchdog);

/* The workers are being stopped: their timers do not matter any more. */
void agent_watchdog_end(struct agent_watchdog *watchdog);

/* When it last had nothing overdue to do: now, or when the timer was due that it has not seen to,
 * or since when a process is being looked at, or cannot be ended. */
struct wall_time agent_watchdog_last_progress(
    const struct agent_watchdog *watchdog, struct wall_time now);

/* How many timers are held; how many requests have come, also those that were refused. */
size_t agent_watchdog_timer_count(const struct agent_watchdog *watchdog);
uint64_t agent_watchdog_request_count(const struct agent_watchdog *watchdog);

/* A worker has exited. */
void agent_watchdog_forget(struct agent_watchdog *watchdog, pid_t pid);

#endif
