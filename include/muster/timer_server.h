/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers for other processes, served in the loop of a program: FileTimerServer and
 * FileTimerRequest of torch/distributed/elastic/timer/file_based_local_timer.py. Processes ask
 * through a FIFO, with PyTorch's FileTimerClient, with muster/timer.h or with `muster timer run`. A
 * process whose timer expires gets the signal that it has asked for.
 *
 *     struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
 *     settings.path = "/run/user/1000/timers";
 *     struct muster_timer_server *server;
 *     if (muster_timer_server_new(&settings, &server, &failure) == MUSTER_OK) {
 *         muster_timer_server_start(server, NULL);
 *         … poll muster_timer_server_fd(server) for reading; then:
 *         muster_timer_server_process(server, NULL);
 *     }
 *     muster_timer_server_free(server);
 *
 * The differences from FileTimerServer: there is no thread, and the program's own loop is used. A
 * deadline is noticed when it is due, not at the end of an interval. A process that got the pid of
 * a dead one is not ended, timers end with their process, and their number has a limit. The timers
 * are shown to other processes of this user (muster_timer_server_list, `muster timer list`).
 *
 * Callbacks come from inside muster_timer_server_process, _start and _stop. From inside one the
 * server may be freed; it must not be processed. Times are seconds since 1970 (time(2)), by the
 * system's clock. What muster/error.h says holds here. */
#ifndef MUSTER_TIMER_SERVER_H
#define MUSTER_TIMER_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_timer_server;

enum muster_timer_event_kind {
    MUSTER_TIMER_SERVER_STARTED = 1,
    MUSTER_TIMER_SERVER_STOPPED = 2,
    MUSTER_TIMER_EXPIRED = 3,  /* timers have expired: those of one process */
    MUSTER_TIMER_SIGNALLED = 4 /* after EXPIRED: the process got its signal */
};

/* Borrowed for the callback. Fields may be added at the end. */
struct muster_timer_event {
    enum muster_timer_event_kind kind;
    long pid;                  /* EXPIRED, SIGNALLED: whose timers they were */
    int signal;                /* EXPIRED, SIGNALLED: 0: they ask for none */
    const char *const *scopes; /* EXPIRED, SIGNALLED: `count` of them, in the order of expiry */
    const double *expirations; /* of the scopes */
    size_t count;
};

/* Begin with MUSTER_TIMER_SERVER_SETTINGS. Each callback may be NULL. */
struct muster_timer_server_settings {
    size_t size;      /* of this struct */
    const char *path; /* of the FIFO, for this user alone. An older FIFO that nobody reads is
                         replaced. Has to be given */
    /* Whether this process may have timers: 1 or 0. NULL: the processes of this user may, except
     * for the one that serves. */
    int (*may_ask)(void *context, long pid);
    /* Ends a process: sends it `signal`. `start_time` is the kernel's (field 22 of /proc/PID/stat);
     * together with the pid it identifies the process. Returns 1 when that was done; else it is
     * tried again a second later, as long as the process runs. NULL: the signal is sent, and only
     * to that very process. */
    int (*kill)(void *context, long pid, unsigned long long start_time, int signal);
    void (*event)(void *context, const struct muster_timer_event *event);
    /* What is worth a line in a log. `level` is as in Python's logging: 10 debug, 20 info, 30
     * warning, 40 error. `origin` is a file and a line. */
    void (*log)(void *context, int level, const char *origin, const char *message);
    void *context;
};
#define MUSTER_TIMER_SERVER_SETTINGS                                                               \
    { sizeof(struct muster_timer_server_settings), 0, 0, 0, 0, 0, 0 }

/* Makes the FIFO. What is written into it is served from muster_timer_server_start on.
 * MUSTER_ERROR_INVALID when another program serves this FIFO, or something else is at the path;
 * MUSTER_ERROR_LIMIT for a path of more than 4000 bytes; MUSTER_ERROR_SYSTEM. */
enum muster_error muster_timer_server_new(const struct muster_timer_server_settings *settings,
    struct muster_timer_server **out_server, struct muster_failure *failure);

/* Removes the FIFO; timers are forgotten. From inside a callback it is done when the function that
 * has called back ends. Accepts NULL. */
void muster_timer_server_free(struct muster_timer_server *server);

/* Begins to serve; what was written before is dropped. MUSTER_ERROR_STATE when it serves. */
enum muster_error muster_timer_server_start(
    struct muster_timer_server *server, struct muster_failure *failure);
/* Forgets all timers, and serves no more until it is started again. MUSTER_ERROR_STATE when it does
 * not serve. */
enum muster_error muster_timer_server_stop(
    struct muster_timer_server *server, struct muster_failure *failure);

/* To be polled for reading. -1 for NULL, and in a child. */
int muster_timer_server_fd(const struct muster_timer_server *server);

/* Does what there is to do, and does not wait: FileTimerServer.run_once. */
enum muster_error muster_timer_server_process(
    struct muster_timer_server *server, struct muster_failure *failure);

/* Drops all timers of a process: clear_timers. */
enum muster_error muster_timer_server_clear(
    struct muster_timer_server *server, long pid, struct muster_failure *failure);

/* A timer that is held: FileTimerRequest. Borrowed for the callback. Fields may be added at the
 * end. */
struct muster_timer_request {
    long pid;
    const char *scope;
    double expiration;
    int signal;       /* 0: the process gets none */
    const char *json; /* the line that would acquire it, without its newline: to_json */
};

/* Since 0.3. Takes a timer as if its process had asked for it: register_timers. An expiration below
 * 0 releases it. `signal` 0: the process gets none. What the server would refuse to the process is
 * refused here, with a line in the log: no error. The server has to serve: else MUSTER_ERROR_STATE.
 * MUSTER_ERROR_INVALID for a process that cannot be, an expiration that is no number, and a signal
 * that is none; MUSTER_ERROR_LIMIT for a scope of more than 4096 bytes, and for an expiration after
 * the year 2262. */
enum muster_error muster_timer_server_register(struct muster_timer_server *server, long pid,
    const char *scope, double expiration, int signal, struct muster_failure *failure);

/* Since 0.3. Calls `visit` for each timer that the server holds and whose expiration is not after
 * `deadline`: get_expired_timers. Those that are due are ended by muster_timer_server_process and
 * not here. Those of a server that is freed by the callback are called no more. */
enum muster_error muster_timer_server_each_expired(struct muster_timer_server *server,
    double deadline, void (*visit)(void *context, const struct muster_timer_request *timer),
    void *context, struct muster_failure *failure);

/* Since 0.3. 1 when there is such a process, which may have ended without having been waited for,
 * else 0, and for what is no process: is_process_running. */
int muster_timer_is_process_running(long pid);

/* When nothing was overdue last: get_last_progress_time. It is now as long as the server is
 * processed in time; it stands still while a process cannot be ended. */
enum muster_error muster_timer_server_last_progress_time(
    const struct muster_timer_server *server, double *out_time, struct muster_failure *failure);

/* How many timers are held. */
enum muster_error muster_timer_server_count(
    const struct muster_timer_server *server, size_t *out_count, struct muster_failure *failure);

/* Calls `visit` for each timer that the server of the FIFO `path` holds: that of an agent, of
 * `muster timer serve`, or of another program of this user. Waits for the server, at most ten
 * seconds for each part of its answer; so the thread that processes a server must not ask it.
 * MUSTER_ERROR_SYSTEM when nobody serves, MUSTER_ERROR_LIMIT for a path of more than 4000 bytes,
 * and for an answer with a line of more than 1 MiB. */
enum muster_error muster_timer_server_list(const char *path,
    void (*visit)(void *context, const struct muster_timer_request *timer), void *context,
    struct muster_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
