/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_watchdog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log_throttle.h"
#include "base/memory.h"
#include "core/signal_name.h"
#include "core/watchdog.h"
#include "host/process_table.h"
#include "host/random_seed.h"
#include "host/timer_fifo.h"
#include "options/python_repr.h"
#include "wire/timer_request_json.h"

struct agent_watchdog {
    struct agent_watchdog_settings settings;
    struct event_loop *loop;
    struct watchdog *registry;
    struct timer_fifo *fifo;
    struct event_timer *timer;
    bool is_armed;
    struct wall_time deadline; /* what the timer is armed for */
    bool is_serving;
    struct log_throttle throttle;
};

/* Complaints. A worker may repeat its mistake in a loop. */

static void complain(struct agent_watchdog *watchdog, const struct text *what) {
    uint64_t held_back;
    if (!log_throttle_admits(&watchdog->throttle, event_loop_now(watchdog->loop), &held_back)) {
        return;
    }
    if (held_back > 0) {
        log_warning(watchdog->settings.log,
            "watchdog: %s (%" PRIu64 " more such lines were left out)", text_string(what),
            held_back);
    } else {
        log_warning(watchdog->settings.log, "watchdog: %s", text_string(what));
    }
}

static void complain_about_line(struct agent_watchdog *watchdog, const char *reason) {
    struct text what = {0};
    text_append_format(&what, "a line is no timer request and is passed over: %s", reason);
    complain(watchdog, &what);
    text_clear(&what);
}

static void complain_about_request(struct agent_watchdog *watchdog,
    const struct watchdog_request *request, enum failure_code code) {
    struct text what = {0};
    text_append_format(&what, "process %" PRId64 " gets no timer ", request->pid);
    python_repr_append(&what, request->scope);
    text_append(&what,
        code == FAILURE_LIMIT ? ": there are too many" : ": it belongs to no worker of this job");
    complain(watchdog, &what);
    text_clear(&what);
}

/* Requests. */

/* The process of a worker's session, and that worker's rank; false when it is no such process. */
static bool find_process(const struct agent_watchdog *watchdog, int64_t pid,
    struct kernel_process_stat *out_stat, int *out_local_rank) {
    if (pid > INT32_MAX || !process_table_read((pid_t)pid, out_stat)) {
        return false;
    }
    *out_local_rank = agent_workers_find(watchdog->settings.workers, (pid_t)out_stat->session);
    return *out_local_rank >= 0;
}

static void arm(struct agent_watchdog *watchdog, struct wall_time deadline) {
    int64_t left = deadline.nanoseconds - event_loop_wall_time(watchdog->loop).nanoseconds;
    struct duration wait = {left > 0 ? left : 0};
    watchdog->is_armed = true;
    watchdog->deadline = deadline;
    event_timer_set(watchdog->timer, instant_after(event_loop_now(watchdog->loop), wait));
}

static void take_request(struct agent_watchdog *watchdog, const struct watchdog_request *request) {
    struct watchdog_process process = {0};
    if (request->kind == WATCHDOG_ACQUIRE) {
        struct kernel_process_stat stat;
        int local_rank;
        process.is_ours = find_process(watchdog, request->pid, &stat, &local_rank);
        process.start_time = process.is_ours ? stat.start_time : 0;
    }
    enum failure_code code = watchdog_take(watchdog->registry, request, &process);
    if (code != FAILURE_NONE) {
        complain_about_request(watchdog, request, code);
    } else if (request->kind == WATCHDOG_ACQUIRE &&
               (!watchdog->is_armed ||
                   request->expiration.nanoseconds < watchdog->deadline.nanoseconds)) {
        arm(watchdog, request->expiration);
    }
}

static void take_line(void *context, struct slice line) {
    struct agent_watchdog *watchdog = context;
    struct watchdog_request request;
    struct text reason = {0};
    if (!watchdog->is_serving) {
        return;
    }
    if (timer_request_json_read(line, &request, &reason) == FAILURE_NONE) {
        take_request(watchdog, &request);
        watchdog_request_clear(&request);
    } else {
        complain_about_line(watchdog, text_string(&reason));
    }
    text_clear(&reason);
}

/* Expiry. */

static void append_scopes(struct text *out, const struct text_list *scopes) {
    for (size_t i = 0; i < scopes->count; i++) {
        text_append(out, i == 0 ? "" : ", ");
        python_repr_append(out, scopes->items[i]);
    }
}

/* The worker's end will be explained by what ended it; a child of a worker is not reported on. */
static void note_end(
    struct agent_watchdog *watchdog, const struct watchdog_expiry *expiry, int local_rank) {
    struct agent_workers *workers = watchdog->settings.workers;
    if (agent_workers_pid(workers, local_rank) == (pid_t)expiry->pid) {
        struct text by_whom = {0};
        text_append(&by_whom, "by the watchdog: timer ");
        python_repr_append(&by_whom, expiry->scopes.items[expiry->scopes.count - 1]);
        text_append(&by_whom, " expired");
        agent_workers_note_signal(workers, local_rank, expiry->signal, text_string(&by_whom));
        text_clear(&by_whom);
    }
}

static void end_process(struct agent_watchdog *watchdog, const struct watchdog_expiry *expiry) {
    const struct log *log = watchdog->settings.log;
    struct text scopes = {0};
    struct kernel_process_stat stat;
    int local_rank;
    append_scopes(&scopes, &expiry->scopes);
    bool is_there = find_process(watchdog, expiry->pid, &stat, &local_rank) &&
                    stat.start_time == expiry->start_time;
    if (!is_there) {
        log_info(log, "watchdog: process %" PRId64 " has ended, its timers do not matter: %s",
            expiry->pid, text_string(&scopes));
    } else if (expiry->signal == 0) {
        log_warning(log, "watchdog: process %" PRId64 " lives on, though its timers expired: %s",
            expiry->pid, text_string(&scopes));
    } else if (process_table_signal(&stat, expiry->signal)) {
        log_error(log,
            "watchdog: ending process %" PRId64 " (local_rank %d) with %s, its timers expired: %s",
            expiry->pid, local_rank, signal_name_from_number(expiry->signal), text_string(&scopes));
        note_end(watchdog, expiry, local_rank);
    } else {
        log_error(log, "watchdog: cannot end process %" PRId64 ", whose timers expired: %s",
            expiry->pid, text_string(&scopes));
    }
    text_clear(&scopes);
}

static void deadline_passed(void *context) {
    struct agent_watchdog *watchdog = context;
    struct wall_time now = event_loop_wall_time(watchdog->loop);
    struct watchdog_expiry expiry;
    struct wall_time next;
    while (watchdog_take_expired(watchdog->registry, now, &expiry)) {
        end_process(watchdog, &expiry);
        watchdog_expiry_clear(&expiry);
    }
    watchdog->is_armed = false;
    if (watchdog_next_deadline(watchdog->registry, &next)) {
        arm(watchdog, next);
    }
}

/* Setting up and taking down. */

/* Where Python's tempfile would look first. */
static const char *temporary_directory(const struct text_list *environment) {
    static const char *const names[] = {"TMPDIR", "TEMP", "TMP"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = text_list_variable(environment, names[i]);
        if (path != NULL && *path != '\0' && access(path, W_OK | X_OK) == 0) {
            return path;
        }
    }
    return "/tmp";
}

/* The FIFO of another agent is not taken away from it: a worker that is a launcher itself inherits
 * its own agent's variables. The caller frees the path. */
static char *choose_path(const struct agent_watchdog_settings *settings) {
    const char *wanted = settings->config->timer_file;
    if (wanted != NULL && !timer_fifo_is_served(wanted)) {
        return memory_duplicate_string(wanted);
    }
    char *uuid = random_seed_uuid();
    char *path =
        text_format("%s/watchdog_timer_%s", temporary_directory(settings->environment), uuid);
    free(uuid);
    if (wanted != NULL) {
        log_warning(settings->log,
            "TORCHELASTIC_TIMER_FILE: another program reads %s; these workers get %s", wanted,
            path);
    }
    return path;
}

enum failure_code agent_watchdog_new(struct event_loop *loop,
    const struct agent_watchdog_settings *settings, struct agent_watchdog **out_watchdog,
    struct failure *failure) {
    if (!settings->config->serves_timers) {
        *out_watchdog = NULL;
        return FAILURE_NONE;
    }
    struct agent_watchdog *watchdog = memory_allocate(sizeof *watchdog);
    watchdog->settings = *settings;
    watchdog->loop = loop;
    watchdog->registry = watchdog_new();
    watchdog->timer = event_timer_new(loop, deadline_passed, watchdog);
    char *path = choose_path(settings);
    enum failure_code code =
        timer_fifo_new(loop, path, take_line, watchdog, &watchdog->fifo, failure);
    if (code == FAILURE_NONE) {
        log_info(settings->log, "watchdog: serving timers at %s", path);
        agent_workers_set_timer_file(settings->workers, path);
        *out_watchdog = watchdog;
    } else {
        failure_wrap(failure, "TORCHELASTIC_ENABLE_FILE_TIMER");
        agent_watchdog_free(watchdog);
    }
    free(path);
    return code;
}

void agent_watchdog_free(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        timer_fifo_free(watchdog->fifo);
        event_timer_free(watchdog->timer);
        watchdog_free(watchdog->registry);
        free(watchdog);
    }
}

void agent_watchdog_begin(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        timer_fifo_drop_input(watchdog->fifo);
        watchdog->is_serving = true;
    }
}

void agent_watchdog_end(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        watchdog->is_serving = false;
        watchdog->is_armed = false;
        event_timer_stop(watchdog->timer);
        watchdog_forget_all(watchdog->registry);
    }
}

void agent_watchdog_forget(struct agent_watchdog *watchdog, pid_t pid) {
    if (watchdog != NULL) {
        watchdog_forget(watchdog->registry, pid);
    }
}
