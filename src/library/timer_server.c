/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <muster/timer_server.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/watchdog/agent_watchdog.h"
#include "base/memory.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/clock.h"
#include "host/loop/event_loop.h"
#include "host/loop/files.h"
#include "host/loop/snapshot_socket.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_queue.h"
#include "library/library_settings.h"
#include "wire/watchdog/timer_request_json.h"

/* How long the server may take for its answer. */
#define ANSWER_SECONDS 10

struct listing {
    void (*visit)(void *context, const struct muster_timer_request *timer);
    void *context;
};

static void show(void *context, const struct watchdog_request *request) {
    const struct listing *listing = context;
    struct text json = {0};
    if (request->kind != WATCHDOG_ACQUIRE || request->pid > INT32_MAX) {
        return; /* not what a server says */
    }
    timer_request_json_write(request, &json);
    json.data[json.length - 1] = '\0'; /* in the place of the newline */
    const struct muster_timer_request timer = {
        .pid = (long)request->pid,
        .scope = request->scope,
        .expiration = (double)request->expiration.nanoseconds / NANOSECONDS_PER_SECOND,
        .signal = request->signal > 0 ? request->signal : 0,
        .json = json.data,
    };
    listing->visit(listing->context, &timer);
    text_clear(&json);
}

static void ignore(void *context, const char *reason) {
    (void)context;
    (void)reason;
}

static void take_line(void *context, struct slice line) {
    const struct timer_request_visitor visitor = {show, ignore, context};
    timer_request_json_each(line, &visitor);
}

enum muster_error muster_timer_server_list(const char *path,
    void (*visit)(void *context, const struct muster_timer_request *timer), void *context,
    struct muster_failure *out_failure) {
    struct listing listing = {visit, context};
    struct failure failure = {0};
    enum muster_error error =
        library_text_check("path", path, TIMER_SERVER_PATH_MAXIMUM, out_failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (visit == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no function to call");
    }
    error = library_memory_check(out_failure);
    if (error != MUSTER_OK) {
        return error;
    }
    char *socket_path = text_format("%s" TIMER_SERVER_SOCKET_SUFFIX, path);
    enum failure_code code = snapshot_socket_read(
        socket_path, NULL, duration_from_seconds(ANSWER_SECONDS), take_line, &listing, &failure);
    free(socket_path);
    return code == FAILURE_NONE ? MUSTER_OK : library_pass_on(out_failure, &failure);
}

/* Timer server. */

struct muster_timer_server {
    struct muster_timer_server_settings settings;
    struct embedded_loop *embedded;
    struct log log;
    struct timer_server *server;
    bool serves; /* started, and not stopped */
    int busy;    /* functions that call back */
    bool is_freed;
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
    const struct muster_timer_server *server = context;
    if (!is_asking_for_a_timer) {
        return 0;
    }
    bool may_ask = server->settings.may_ask != NULL
                       ? server->settings.may_ask(server->settings.context, process->pid) != 0
                       : is_of_this_user(process->pid);
    return may_ask ? 0 : -1;
}

static const char *refusal(void *context, int64_t pid) {
    const struct muster_timer_server *server = context;
    if (server->settings.may_ask != NULL) {
        return "the program that serves does not allow it";
    }
    if (pid == getpid()) {
        return "it is the process that serves the timers, which ends itself by none";
    }
    return pid == 1 ? "it is process 1, which is ended by none" : "it is no process of this user";
}

static bool send_signal(void *context, const struct kernel_process_stat *process, int signal) {
    const struct muster_timer_server *server = context;
    if (server->settings.kill == NULL) {
        return process_table_signal(process, signal);
    }
    return server->settings.kill(
               server->settings.context, process->pid, process->start_time, signal) != 0;
}

static void tell_of_expiry(const struct muster_timer_server *server,
    enum muster_timer_event_kind kind, const struct watchdog_expiry *expiry) {
    size_t count = expiry->scopes.count;
    double *expirations = memory_allocate(count * sizeof *expirations);
    for (size_t i = 0; i < count; i++) {
        expirations[i] = (double)expiry->expirations[i].nanoseconds / NANOSECONDS_PER_SECOND;
    }
    const struct muster_timer_event event = {
        .kind = kind,
        .pid = (long)expiry->pid,
        .signal = expiry->signal,
        .scopes = (const char *const *)expiry->scopes.items,
        .expirations = expirations,
        .count = count,
    };
    server->settings.event(server->settings.context, &event);
    free(expirations);
}

static void take_notice(void *context, const struct watchdog_notice *notice) {
    const struct muster_timer_server *server = context;
    if (server->settings.event == NULL) {
        return;
    }
    if (notice->kind == WATCHDOG_NOTICE_STARTED || notice->kind == WATCHDOG_NOTICE_STOPPED) {
        const struct muster_timer_event event = {.kind = notice->kind == WATCHDOG_NOTICE_STARTED
                                                             ? MUSTER_TIMER_SERVER_STARTED
                                                             : MUSTER_TIMER_SERVER_STOPPED};
        server->settings.event(server->settings.context, &event);
    } else if (notice->kind == WATCHDOG_NOTICE_EXPIRED) {
        tell_of_expiry(server, MUSTER_TIMER_EXPIRED, notice->expiry);
    } else if (notice->kind == WATCHDOG_NOTICE_SIGNALLED) {
        tell_of_expiry(server, MUSTER_TIMER_EXPIRED, notice->expiry);
        if (!server->is_freed) {
            tell_of_expiry(server, MUSTER_TIMER_SIGNALLED, notice->expiry);
        }
    }
}

static void write_log(
    void *context, enum log_level level, const char *origin, const char *message) {
    const struct muster_timer_server *server = context;
    if (server->settings.log != NULL) {
        server->settings.log(server->settings.context, 10 * ((int)level + 1), origin, message);
    }
}

static void destroy(struct muster_timer_server *server) {
    timer_server_free(server->server);
    embedded_loop_free(server->embedded);
    free(server);
}

static enum failure_code open_server(struct muster_timer_server *server, struct failure *failure) {
    const struct timer_server_settings settings = {
        .log = &server->log,
        .log_prefix = "",
        .find_owner = find_owner,
        .refusal = refusal,
        .send_signal = send_signal,
        .notified = take_notice,
        .context = server,
    };
    const char *path = server->settings.path;
    if (timer_fifo_is_served(path)) {
        return failure_set(failure, FAILURE_INVALID, "another program serves %s already", path);
    }
    enum failure_code code = embedded_loop_new(&server->embedded, failure);
    if (code == FAILURE_NONE) {
        code = timer_server_new(
            embedded_loop_inside(server->embedded), path, &settings, &server->server, failure);
    }
    return code;
}

enum muster_error muster_timer_server_new(const struct muster_timer_server_settings *settings,
    struct muster_timer_server **out_server, struct muster_failure *out_failure) {
    struct muster_timer_server_settings own;
    struct failure failure = {0};
    if (out_server == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the server");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = library_text_check("path", own.path, TIMER_SERVER_PATH_MAXIMUM, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_timer_server *server = memory_allocate(sizeof *server);
    server->settings = own;
    server->log = (struct log){LOG_LEVEL_DEBUG, write_log, server};
    enum failure_code code = open_server(server, &failure);
    server->settings.path = NULL; /* the program's */
    if (code != FAILURE_NONE) {
        destroy(server);
        return library_pass_on(out_failure, &failure);
    }
    embedded_loop_note(server->embedded);
    *out_server = server;
    return MUSTER_OK;
}

static enum muster_error check_server(
    const struct muster_timer_server *server, struct muster_failure *failure) {
    enum muster_error error =
        library_server_check(server == NULL ? NULL : server->embedded, failure);
    if (error == MUSTER_OK && server->is_freed) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the server is being freed");
    }
    return error;
}

/* What functions ask that do something. */
static enum muster_error check_able(
    const struct muster_timer_server *server, struct muster_failure *failure) {
    enum muster_error error = check_server(server, failure);
    return error == MUSTER_OK ? library_memory_check(failure) : error;
}

void muster_timer_server_free(struct muster_timer_server *server) {
    if (check_server(server, NULL) != MUSTER_OK) {
        return;
    }
    server->is_freed = true;
    if (server->busy == 0) {
        destroy(server);
    }
}

/* Ends a function that may have called back. */
static void leave(struct muster_timer_server *server) {
    server->busy--;
    if (server->busy == 0 && server->is_freed) {
        destroy(server);
    } else if (server->busy == 0) {
        embedded_loop_note(server->embedded);
    }
}

static enum muster_error set_serving(
    struct muster_timer_server *server, bool serves, struct muster_failure *failure) {
    enum muster_error error = check_able(server, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (server->serves == serves) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the server %s",
            serves ? "has been started already" : "has not been started");
    }
    server->serves = serves;
    server->busy++;
    if (serves) {
        timer_server_begin(server->server);
    } else {
        timer_server_end(server->server);
    }
    leave(server);
    return MUSTER_OK;
}

enum muster_error muster_timer_server_start(
    struct muster_timer_server *server, struct muster_failure *failure) {
    return set_serving(server, true, failure);
}

enum muster_error muster_timer_server_stop(
    struct muster_timer_server *server, struct muster_failure *failure) {
    return set_serving(server, false, failure);
}

int muster_timer_server_fd(const struct muster_timer_server *server) {
    return check_server(server, NULL) == MUSTER_OK ? embedded_loop_fd(server->embedded) : -1;
}

enum muster_error muster_timer_server_process(
    struct muster_timer_server *server, struct muster_failure *failure) {
    enum muster_error error = check_able(server, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (server->busy > 0) {
        return library_fail(failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    server->busy++;
    embedded_loop_process(server->embedded);
    leave(server);
    return MUSTER_OK;
}

enum muster_error muster_timer_server_clear(
    struct muster_timer_server *server, long pid, struct muster_failure *failure) {
    enum muster_error error = check_able(server, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (pid < 1 || pid > INT32_MAX) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "%ld is no process", pid);
    }
    server->busy++;
    timer_server_forget(server->server, (pid_t)pid);
    leave(server);
    return MUSTER_OK;
}

/* Timers of the program. */

/* The longest that a line of a client may have. */
#define SCOPE_MAXIMUM 4096
/* About the year 2262; struct wall_time cannot hold later times. */
#define NEVER_SECONDS 9.2e9

static enum muster_error check_timer(
    long pid, const char *scope, double expiration, int signal, struct muster_failure *failure) {
    if (pid < 1 || pid > INT32_MAX) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "%ld is no process", pid);
    }
    if (scope == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no scope");
    }
    if (isnan(expiration)) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the expiration is no number");
    }
    if (expiration > NEVER_SECONDS) {
        return library_fail(failure, MUSTER_ERROR_LIMIT,
            "the expiration %g is later than %g, which is as late as there can be one", expiration,
            NEVER_SECONDS);
    }
    if (signal < 0 || signal > SIGRTMAX) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "%d is no signal; 1 to %d are, and 0 stands for none", signal, SIGRTMAX);
    }
    return *scope == '\0' ? MUSTER_OK : library_utf8_check("scope", scope, SCOPE_MAXIMUM, failure);
}

enum muster_error muster_timer_server_register(struct muster_timer_server *server, long pid,
    const char *scope, double expiration, int signal, struct muster_failure *failure) {
    enum muster_error error = check_able(server, failure);
    if (error == MUSTER_OK) {
        error = check_timer(pid, scope, expiration, signal, failure);
    }
    if (error == MUSTER_OK && (server->busy > 0 || !server->serves)) {
        error = library_fail(failure, MUSTER_ERROR_STATE,
            server->busy > 0 ? "not from inside a callback" : "the server has not been started");
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct watchdog_request request = {
        .kind = expiration < 0 ? WATCHDOG_RELEASE : WATCHDOG_ACQUIRE,
        .pid = pid,
        .scope = memory_duplicate_string(scope),
        .signal = signal,
    };
    if (expiration >= 0) {
        request.expiration.nanoseconds = (int64_t)(expiration * NANOSECONDS_PER_SECOND);
    }
    server->busy++;
    timer_server_take(server->server, &request);
    watchdog_request_clear(&request);
    leave(server);
    return MUSTER_OK;
}

struct expired {
    struct wall_time deadline;
    struct watchdog_request *requests; /* copies: who is told may change what is held */
    size_t capacity;
    size_t count;
};

static void note_expired(void *context, const struct watchdog_request *timer) {
    struct expired *expired = context;
    if (timer->expiration.nanoseconds > expired->deadline.nanoseconds) {
        return;
    }
    expired->requests = memory_reserve(
        expired->requests, &expired->capacity, expired->count + 1, sizeof *expired->requests);
    expired->requests[expired->count] = *timer;
    expired->requests[expired->count++].scope = memory_duplicate_string(timer->scope);
}

enum muster_error muster_timer_server_each_expired(struct muster_timer_server *server,
    double deadline, void (*visit)(void *context, const struct muster_timer_request *timer),
    void *context, struct muster_failure *failure) {
    const double last = deadline > NEVER_SECONDS ? NEVER_SECONDS : deadline;
    struct listing listing = {visit, context};
    struct expired expired = {.requests = NULL};
    enum muster_error error = check_able(server, failure);
    if (error == MUSTER_OK && visit == NULL) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "there is no function to call");
    }
    if (error == MUSTER_OK && isnan(deadline)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "the deadline is no number");
    }
    if (error != MUSTER_OK || deadline < 0) {
        return error;
    }
    expired.deadline.nanoseconds = (int64_t)(last * NANOSECONDS_PER_SECOND);
    watchdog_each(
        watchdog_machine_timers(timer_server_machine(server->server)), note_expired, &expired);
    server->busy++;
    for (size_t i = 0; i < expired.count; i++) {
        if (!server->is_freed) {
            show(&listing, &expired.requests[i]);
        }
        watchdog_request_clear(&expired.requests[i]);
    }
    free(expired.requests);
    leave(server);
    return MUSTER_OK;
}

int muster_timer_is_process_running(long pid) {
    return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

enum muster_error muster_timer_server_last_progress_time(
    const struct muster_timer_server *server, double *out_time, struct muster_failure *failure) {
    enum muster_error error = check_server(server, failure);
    if (error == MUSTER_OK && out_time == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the time");
    }
    if (error == MUSTER_OK) {
        struct wall_time time =
            watchdog_machine_last_progress(timer_server_machine(server->server), clock_wall_time());
        *out_time = (double)time.nanoseconds / NANOSECONDS_PER_SECOND;
    }
    return error;
}

enum muster_error muster_timer_server_count(
    const struct muster_timer_server *server, size_t *out_count, struct muster_failure *failure) {
    enum muster_error error = check_server(server, failure);
    if (error == MUSTER_OK && out_count == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the number");
    }
    if (error == MUSTER_OK) {
        *out_count =
            watchdog_timer_count(watchdog_machine_timers(timer_server_machine(server->server)));
    }
    return error;
}
