/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/watchdog/timer_server.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/event_loop.h"
#include "host/loop/snapshot_socket.h"
#include "host/process/death_notice.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_fifo.h"
#include "wire/watchdog/timer_request_json.h"

/* So many holders of timers, of which each takes a descriptor, are seen to end at once; the others'
 * timers are dropped when they expire. */
#define WATCHED_PROCESSES 512

struct timer_server {
    struct timer_server_settings settings;
    struct event_loop *loop;
    struct watchdog_machine *machine;
    struct watchdog_event *queue; /* what has come from inside a callback, too, in order */
    size_t queue_length;
    size_t queue_capacity;
    bool is_stepping;
    struct timer_fifo *fifo;
    struct death_watch *deaths;        /* of those who have asked for timers */
    struct snapshot_socket *snapshots; /* NULL where it could not be made */
    struct wall_timer *deadline;
    struct event_timer *timer;
};

static void take_event(struct timer_server *server, struct watchdog_event event);

/* Telling. */

char *timer_server_format_scopes(const struct text_list *scopes) {
    struct text out = {0};
    for (size_t i = 0; i < scopes->count; i++) {
        text_append(&out, i == 0 ? "" : ", ");
        python_repr_append(&out, scopes->items[i]);
    }
    return text_take(&out);
}

static void complain(const struct timer_server *server, const char *what, uint64_t held_back) {
    if (held_back > 0) {
        log_warning(server->settings.log,
            "watchdog: %s (%" PRIu64 " more such lines were left out)", what, held_back);
    } else {
        log_warning(server->settings.log, "watchdog: %s", what);
    }
}

static void complain_about_line(
    const struct timer_server *server, const char *reason, uint64_t held_back) {
    struct text what = {0};
    text_append_format(&what, "a line is no timer request and is passed over: %s", reason);
    complain(server, text_string(&what), held_back);
    text_clear(&what);
}

static void complain_about_request(
    const struct timer_server *server, const struct watchdog_effect *effect) {
    const struct watchdog_request *request = effect->complaint.request;
    const struct timer_server_settings *settings = &server->settings;
    struct text what = {0};
    text_append_format(&what, "process %" PRId64 " gets no timer ", request->pid);
    python_repr_append(&what, request->scope);
    text_append_format(&what, ": %s",
        effect->complaint.is_limit ? "there are too many"
                                   : settings->refusal(settings->context, request->pid));
    complain(server, text_string(&what), effect->complaint.held_back);
    text_clear(&what);
}

static void tell_of_expiry(
    const struct timer_server *server, const struct watchdog_effect *effect) {
    const struct watchdog_expiry *expiry = effect->expiry;
    const char *prefix = server->settings.log_prefix;
    char *scopes = timer_server_format_scopes(&expiry->scopes);
    if (effect->kind == WATCHDOG_EFFECT_TELL_GONE) {
        log_info(server->settings.log,
            "%sprocess %" PRId64 " has ended, its timers do not matter: %s", prefix, expiry->pid,
            scopes);
    } else if (effect->kind == WATCHDOG_EFFECT_TELL_LIVES_ON) {
        log_warning(server->settings.log,
            "%sprocess %" PRId64 " lives on, though its timers expired: %s", prefix, expiry->pid,
            scopes);
    } else {
        log_error(server->settings.log,
            "%scannot end process %" PRId64 ", whose timers expired: %s; trying again", prefix,
            expiry->pid, scopes);
    }
    free(scopes);
}

/* Questions, each answered before anything else happens. */

static void look_up(struct timer_server *server, const struct watchdog_effect *effect) {
    const struct timer_server_settings *settings = &server->settings;
    struct watchdog_event event = {.kind = WATCHDOG_EVENT_SEEN};
    struct kernel_process_stat stat;
    int64_t pid = effect->look_up.pid;
    if (pid <= INT32_MAX && process_table_read((pid_t)pid, &stat)) {
        int owner = settings->find_owner(settings->context, &stat, effect->look_up.is_asking);
        event.seen = (struct watchdog_sight){true, stat.start_time, stat.parent, owner};
    }
    take_event(server, event);
}

static void watch(struct timer_server *server, int64_t pid) {
    bool is_there = death_watch_add(server->deaths, (pid_t)pid);
    take_event(
        server, (struct watchdog_event){.kind = WATCHDOG_EVENT_WATCHED, .is_there = is_there});
}

static bool is_running(const struct kernel_process_stat *process) {
    struct kernel_process_stat now;
    return process_table_read((pid_t)process->pid, &now) && now.start_time == process->start_time;
}

static void send_signal(struct timer_server *server, const struct watchdog_effect *effect) {
    const struct kernel_process_stat process = {
        .pid = effect->signal.pid, .start_time = effect->signal.start_time};
    enum watchdog_signal_result result = WATCHDOG_SIGNAL_NOBODY;
    if (server->settings.send_signal(server->settings.context, &process, effect->signal.signal)) {
        result = WATCHDOG_SIGNAL_SENT;
    } else if (is_running(&process)) {
        result = WATCHDOG_SIGNAL_REFUSED;
    }
    take_event(server, (struct watchdog_event){.kind = WATCHDOG_EVENT_SIGNALLED, .result = result});
}

/* Effects and events. */

static void perform(struct timer_server *server, const struct watchdog_effect *effect) {
    const struct log *log = server->settings.log;
    switch (effect->kind) {
    case WATCHDOG_EFFECT_LOOK_UP:
        look_up(server, effect);
        break;
    case WATCHDOG_EFFECT_WATCH:
        watch(server, effect->pid);
        break;
    case WATCHDOG_EFFECT_SIGNAL:
        send_signal(server, effect);
        break;
    case WATCHDOG_EFFECT_UNWATCH:
        death_watch_remove(server->deaths, (pid_t)effect->pid);
        break;
    case WATCHDOG_EFFECT_UNWATCH_ALL:
        death_watch_remove_all(server->deaths);
        break;
    case WATCHDOG_EFFECT_DROP_INPUT:
        timer_fifo_drop_input(server->fifo);
        break;
    case WATCHDOG_EFFECT_ARM_DEADLINE:
        wall_timer_set(server->deadline, effect->deadline);
        break;
    case WATCHDOG_EFFECT_DISARM_DEADLINE:
        wall_timer_stop(server->deadline);
        break;
    case WATCHDOG_EFFECT_ARM_TIMER:
        event_timer_set(server->timer, effect->when);
        break;
    case WATCHDOG_EFFECT_DISARM_TIMER:
        event_timer_stop(server->timer);
        break;
    case WATCHDOG_EFFECT_TELL_BAD_LINE:
        complain_about_line(server, effect->complaint.reason, effect->complaint.held_back);
        break;
    case WATCHDOG_EFFECT_TELL_REFUSED:
        complain_about_request(server, effect);
        break;
    case WATCHDOG_EFFECT_TELL_TOO_LATE:
        log_info(log, "watchdog: process %" PRId64 " has ended and needs no timer", effect->pid);
        break;
    case WATCHDOG_EFFECT_TELL_ENDED:
        log_info(
            log, "watchdog: process %" PRId64 " has ended, its timers do not matter", effect->pid);
        break;
    case WATCHDOG_EFFECT_TELL_GONE:
    case WATCHDOG_EFFECT_TELL_LIVES_ON:
    case WATCHDOG_EFFECT_TELL_UNTOUCHED:
        tell_of_expiry(server, effect);
        break;
    case WATCHDOG_EFFECT_NOTIFY:
        server->settings.notified(server->settings.context, &effect->notice);
        break;
    }
}

static void take_event(struct timer_server *server, struct watchdog_event event) {
    event.now = event_loop_now(server->loop);
    event.wall_now = event_loop_wall_time(server->loop);
    server->queue = memory_reserve(
        server->queue, &server->queue_capacity, server->queue_length + 1, sizeof *server->queue);
    server->queue[server->queue_length++] = event;
    if (server->is_stepping) {
        return;
    }
    server->is_stepping = true;
    for (size_t i = 0; i < server->queue_length; i++) {
        struct watchdog_event next = server->queue[i];
        struct watchdog_effects effects;
        watchdog_machine_step(server->machine, &next, &effects);
        for (size_t k = 0; k < effects.count; k++) {
            perform(server, &effects.items[k]);
        }
    }
    server->queue_length = 0;
    server->is_stepping = false;
}

static void take_request(void *context, const struct watchdog_request *request) {
    take_event(
        context, (struct watchdog_event){.kind = WATCHDOG_EVENT_REQUEST, .request = request});
}

static void take_bad_line(void *context, const char *reason) {
    take_event(context, (struct watchdog_event){.kind = WATCHDOG_EVENT_BAD_LINE, .reason = reason});
}

static void take_line(void *context, struct slice line) {
    const struct timer_request_visitor visitor = {take_request, take_bad_line, context};
    timer_request_json_each(line, &visitor);
}

static bool take_unfinished_line(void *context, struct slice line) {
    struct watchdog_request request;
    if (timer_request_json_read(line, &request, NULL) != FAILURE_NONE) {
        return false;
    }
    take_request(context, &request);
    watchdog_request_clear(&request);
    return true;
}

static void process_ended(void *context, pid_t pid) {
    take_event(context, (struct watchdog_event){.kind = WATCHDOG_EVENT_PROCESS_ENDED, .pid = pid});
}

static void deadline_passed(void *context) {
    struct timer_server *server = context;
    timer_fifo_take_input(server->fifo); /* a release written in time may not have been read yet */
    take_event(server, (struct watchdog_event){.kind = WATCHDOG_EVENT_DEADLINE_PASSED});
}

static void timer_fired(void *context) {
    take_event(context, (struct watchdog_event){.kind = WATCHDOG_EVENT_TIMER_FIRED});
}

void timer_server_begin(struct timer_server *server) {
    take_event(server, (struct watchdog_event){.kind = WATCHDOG_EVENT_BEGIN});
}

void timer_server_end(struct timer_server *server) {
    take_event(server, (struct watchdog_event){.kind = WATCHDOG_EVENT_END});
}

void timer_server_take(struct timer_server *server, const struct watchdog_request *request) {
    take_request(server, request);
}

void timer_server_forget(struct timer_server *server, pid_t pid) {
    take_event(server, (struct watchdog_event){.kind = WATCHDOG_EVENT_FORGET, .pid = pid});
}

void timer_server_looked_at(struct timer_server *server) {
    take_event(server, (struct watchdog_event){.kind = WATCHDOG_EVENT_LOOKED_AT});
}

/* Setting up and taking down. */

static void show_timer(void *context, const struct watchdog_request *timer) {
    timer_request_json_write(timer, context);
}

static void show_timers(void *context, struct text *out) {
    const struct timer_server *server = context;
    watchdog_each(watchdog_machine_timers(server->machine), show_timer, out);
}

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
    server->machine = watchdog_machine_new(&settings->rules);
    server->deaths = death_watch_new(loop, WATCHED_PROCESSES, process_ended, server);
    server->timer = event_timer_new(loop, timer_fired, server);
    enum failure_code code =
        wall_timer_new(loop, deadline_passed, server, &server->deadline, failure);
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

enum failure_code timer_server_renew(
    struct timer_server *server, const char *path, struct failure *failure) {
    enum failure_code code = timer_fifo_renew(server->fifo, failure);
    if (code == FAILURE_NONE) {
        snapshot_socket_free(server->snapshots);
        server->snapshots = NULL;
        open_snapshots(server, path);
    }
    return code;
}

void timer_server_free(struct timer_server *server) {
    if (server != NULL) {
        snapshot_socket_free(server->snapshots);
        timer_fifo_free(server->fifo);
        event_timer_free(server->timer);
        wall_timer_free(server->deadline);
        death_watch_free(server->deaths);
        watchdog_machine_free(server->machine);
        free(server->queue);
        free(server);
    }
}

const struct watchdog_machine *timer_server_machine(const struct timer_server *server) {
    return server->machine;
}
