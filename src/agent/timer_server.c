/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/timer_server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log_throttle.h"
#include "base/memory.h"
#include "host/death_watch.h"
#include "host/process_table.h"
#include "host/snapshot_socket.h"
#include "host/timer_fifo.h"
#include "host/wall_timer.h"
#include "options/python_repr.h"
#include "wire/timer_request_json.h"

/* After how long a process that could not be signalled is signalled again. */
#define RETRY_NANOSECONDS 1000000000

/* A process that asks again within this time is not looked at again: no pid comes round so fast. A
 * wrong process is ended in no case, that is checked when the time has come. */
#define TRUST_NANOSECONDS 10000000
#define KNOWN_PROCESSES 256

/* So many holders of timers, of which each takes a descriptor, are seen to end at once; the others'
 * timers are dropped when they expire. */
#define WATCHED_PROCESSES 512

struct known_process {
    int64_t pid;
    uint64_t start_time;
    struct instant trusted_until;
};

struct timer_server {
    struct timer_server_settings settings;
    struct event_loop *loop;
    struct watchdog *registry;
    struct timer_fifo *fifo;
    struct death_watch *deaths;        /* of those who have asked for timers */
    struct snapshot_socket *snapshots; /* NULL where it could not be made */
    struct wall_timer *timer;
    bool is_armed;
    struct wall_time deadline; /* what the timer is armed for */
    bool is_serving;
    uint64_t request_count;
    int64_t refused_pid; /* a process that has run out of time and cannot be ended; 0: none … */
    struct wall_time refused_since; /* … since then */
    struct log_throttle throttle;
    struct known_process known[KNOWN_PROCESSES]; /* by pid, as many as there is room for */
};

/* Complaints. A client may repeat its mistake in a loop. */

static void complain(struct timer_server *server, const struct text *what) {
    uint64_t held_back;
    if (!log_throttle_admits(&server->throttle, event_loop_now(server->loop), &held_back)) {
        return;
    }
    if (held_back > 0) {
        log_warning(server->settings.log,
            "watchdog: %s (%" PRIu64 " more such lines were left out)", text_string(what),
            held_back);
    } else {
        log_warning(server->settings.log, "watchdog: %s", text_string(what));
    }
}

static void complain_about_line(void *context, const char *reason) {
    struct timer_server *server = context;
    struct text what = {0};
    text_append_format(&what, "a line is no timer request and is passed over: %s", reason);
    complain(server, &what);
    text_clear(&what);
}

static void complain_about_request(
    struct timer_server *server, const struct watchdog_request *request, enum failure_code code) {
    struct text what = {0};
    text_append_format(&what, "process %" PRId64 " gets no timer ", request->pid);
    python_repr_append(&what, request->scope);
    text_append_format(
        &what, ": %s", code == FAILURE_LIMIT ? "there are too many" : server->settings.refusal);
    complain(server, &what);
    text_clear(&what);
}

/* Requests. */

static void arm(struct timer_server *server, struct wall_time deadline) {
    server->is_armed = true;
    server->deadline = deadline;
    wall_timer_set(server->timer, deadline);
}

static bool find_process(int64_t pid, struct kernel_process_stat *out_stat) {
    return pid <= INT32_MAX && process_table_read((pid_t)pid, out_stat);
}

/* What is known of a process; false when it has ended. */
static bool look_at(
    struct timer_server *server, int64_t pid, struct watchdog_process *out_process) {
    struct known_process *known = &server->known[pid % KNOWN_PROCESSES];
    struct instant now = event_loop_now(server->loop);
    struct kernel_process_stat stat;
    if (known->pid == pid && instant_is_before(now, known->trusted_until)) {
        *out_process = (struct watchdog_process){true, known->start_time};
        return true;
    }
    known->pid = 0;
    if (!find_process(pid, &stat)) {
        return false;
    }
    *out_process = (struct watchdog_process){
        .is_ours = server->settings.admits(server->settings.context, &stat),
        .start_time = stat.start_time,
    };
    if (out_process->is_ours) {
        if (!death_watch_add(server->deaths, (pid_t)pid)) {
            return false;
        }
        struct duration trust = {TRUST_NANOSECONDS};
        *known = (struct known_process){pid, stat.start_time, instant_after(now, trust)};
    }
    return true;
}

static void process_ended(void *context, pid_t pid) {
    struct timer_server *server = context;
    uint64_t start_time;
    if (watchdog_find(server->registry, pid, &start_time)) {
        log_info(server->settings.log, "watchdog: process %d has ended, its timers do not matter",
            (int)pid);
    }
    timer_server_forget(server, pid);
}

/* Of several such processes one is remembered: any of them says that something is overdue. */
static void note_refusal(struct timer_server *server, int64_t pid, struct wall_time now) {
    if (server->refused_pid == 0) {
        server->refused_pid = pid;
        server->refused_since = now;
    }
}

static void settle_refusal(struct timer_server *server, int64_t pid) {
    if (server->refused_pid == pid) {
        server->refused_pid = 0;
    }
}

static void take_acquire(struct timer_server *server, const struct watchdog_request *request) {
    struct watchdog_process process;
    if (!look_at(server, request->pid, &process)) {
        log_info(server->settings.log, "watchdog: process %" PRId64 " has ended and needs no timer",
            request->pid);
        return;
    }
    enum failure_code code = watchdog_take(server->registry, request, &process);
    if (code != FAILURE_NONE) {
        complain_about_request(server, request, code);
        return;
    }
    settle_refusal(server, request->pid); /* it goes on: what it had asked for is no more */
    if (!server->is_armed || request->expiration.nanoseconds < server->deadline.nanoseconds) {
        arm(server, request->expiration);
    }
}

static void take_request(void *context, const struct watchdog_request *request) {
    static const struct watchdog_process nobody = {0};
    struct timer_server *server = context;
    server->request_count++;
    if (request->kind == WATCHDOG_ACQUIRE) {
        take_acquire(server, request);
    } else if (watchdog_take(server->registry, request, &nobody) != FAILURE_NONE) {
        complain_about_line(server, "it asks for nothing");
    }
}

static void take_line(void *context, struct slice line) {
    struct timer_server *server = context;
    const struct timer_request_visitor visitor = {take_request, complain_about_line, server};
    if (server->is_serving) {
        timer_request_json_each(line, &visitor);
    }
}

static bool take_unfinished_line(void *context, struct slice line) {
    struct timer_server *server = context;
    struct watchdog_request request;
    if (timer_request_json_read(line, &request, NULL) != FAILURE_NONE) {
        return false;
    }
    if (server->is_serving) {
        take_request(server, &request);
    }
    watchdog_request_clear(&request);
    return true;
}

static void show_timer(void *context, const struct watchdog_request *timer) {
    timer_request_json_write(timer, context);
}

static void show_timers(void *context, struct text *out) {
    const struct timer_server *server = context;
    watchdog_each(server->registry, show_timer, out);
}

/* Expiry. */

static void deadline_passed(void *context) {
    struct timer_server *server = context;
    struct wall_time now = event_loop_wall_time(server->loop);
    struct watchdog_expiry expiry;
    struct wall_time next;
    timer_fifo_take_input(server->fifo); /* a release written in time may not have been read yet */
    while (server->is_serving && watchdog_take_expired(server->registry, now, &expiry)) {
        if (!server->settings.expired(server->settings.context, &expiry)) {
            struct wall_time later = {now.nanoseconds + RETRY_NANOSECONDS};
            watchdog_retry(server->registry, &expiry, later);
            note_refusal(server, expiry.pid, now);
        } else {
            settle_refusal(server, expiry.pid);
        }
        watchdog_expiry_clear(&expiry);
    }
    server->is_armed = false;
    if (server->is_serving && watchdog_next_deadline(server->registry, &next)) {
        arm(server, next);
    }
}

/* Setting up and taking down. */

/* Timers are served without it, too. */
static void open_snapshots(struct timer_server *server, const char *path) {
    struct failure failure;
    char *socket_path = text_format("%s" TIMER_SERVER_SOCKET_SUFFIX, path);
    if (snapshot_socket_new(server->loop, socket_path, show_timers, server, &server->snapshots,
            &failure) != FAILURE_NONE) {
        log_warning(server->settings.log, "watchdog: timers cannot be listed: %s", failure.message);
    }
    free(socket_path);
}

enum failure_code timer_server_new(struct event_loop *loop, const char *path,
    const struct timer_server_settings *settings, struct timer_server **out_server,
    struct failure *failure) {
    struct timer_server *server = memory_allocate(sizeof *server);
    const struct timer_fifo_reader reader = {take_line, take_unfinished_line, server};
    server->settings = *settings;
    server->loop = loop;
    server->registry = watchdog_new(&WATCHDOG_LIMITS_DEFAULT);
    server->deaths = death_watch_new(loop, WATCHED_PROCESSES, process_ended, server);
    enum failure_code code = wall_timer_new(loop, deadline_passed, server, &server->timer, failure);
    if (code == FAILURE_NONE) {
        code = timer_fifo_new(loop, path, &reader, &server->fifo, failure);
    }
    if (code != FAILURE_NONE) {
        timer_server_free(server);
        return code;
    }
    open_snapshots(server, path);
    *out_server = server;
    return FAILURE_NONE;
}

void timer_server_free(struct timer_server *server) {
    if (server != NULL) {
        snapshot_socket_free(server->snapshots);
        timer_fifo_free(server->fifo);
        wall_timer_free(server->timer);
        death_watch_free(server->deaths);
        watchdog_free(server->registry);
        free(server);
    }
}

void timer_server_begin(struct timer_server *server) {
    timer_fifo_drop_input(server->fifo);
    server->is_serving = true;
}

void timer_server_end(struct timer_server *server) {
    server->is_serving = false;
    server->refused_pid = 0;
    server->is_armed = false;
    wall_timer_stop(server->timer);
    memset(server->known, 0, sizeof server->known); /* nobody is watched any more */
    death_watch_remove_all(server->deaths);
    watchdog_forget_all(server->registry);
}

void timer_server_forget(struct timer_server *server, pid_t pid) {
    server->known[pid % KNOWN_PROCESSES].pid = 0;
    death_watch_remove(server->deaths, pid);
    settle_refusal(server, pid);
    watchdog_forget(server->registry, pid);
}

struct wall_time timer_server_last_progress(
    const struct timer_server *server, struct wall_time now) {
    struct wall_time due;
    if (server->refused_pid != 0) {
        return server->refused_since;
    }
    bool is_late =
        watchdog_next_deadline(server->registry, &due) && due.nanoseconds < now.nanoseconds;
    return is_late ? due : now;
}

bool timer_server_next_expiry(const struct timer_server *server, struct instant *out_when) {
    struct wall_time due;
    if (!watchdog_next_deadline(server->registry, &due)) {
        return false;
    }
    int64_t left = due.nanoseconds - event_loop_wall_time(server->loop).nanoseconds;
    struct duration wait = {left > 0 ? left : 0};
    *out_when = instant_after(event_loop_now(server->loop), wait);
    return true;
}

size_t timer_server_timer_count(const struct timer_server *server) {
    return watchdog_timer_count(server->registry);
}

uint64_t timer_server_request_count(const struct timer_server *server) {
    return server->request_count;
}
