/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/watchdog/agent_watchdog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "host/loop/snapshot_socket.h"
#include "host/process/death_notice.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_queue.h"
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

/* The scopes as Python's repr shows them, with commas between them. The caller frees the text. */
static char *timer_server_format_scopes(const struct text_list *scopes) {
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

static void timer_server_tell_of_expiry(
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

static void timer_server_send_signal(
    struct timer_server *server, const struct watchdog_effect *effect) {
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
        timer_server_send_signal(server, effect);
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
        timer_server_tell_of_expiry(server, effect);
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

/* A process has been looked at: the answer to a notice of the kind LOOK. */
static void timer_server_looked_at(struct timer_server *server) {
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

/* Makes what is at `path` anew: somebody has removed it. Fails as timer_fifo_renew does. */
static enum failure_code timer_server_renew(
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

/* Watchdog. */

struct agent_watchdog {
    struct agent_watchdog_settings settings;
    char *path;
    struct timer_server *server;
};

/* The rank of the worker whose session the process is in; -1: none. */
static int find_owner(
    void *context, const struct kernel_process_stat *process, bool is_asking_for_a_timer) {
    const struct agent_watchdog *watchdog = context;
    (void)is_asking_for_a_timer;
    return agent_workers_find(watchdog->settings.workers, (pid_t)process->session);
}

static const char *refusal(void *context, int64_t pid) {
    (void)context;
    (void)pid;
    return "it belongs to no worker of this job";
}

/* What follows from the watchdog's notices. */

static void tell(struct agent_watchdog *watchdog, enum event_watchdog what,
    const struct event_timer_record *timer) {
    const struct agent_watchdog_observer *observer = &watchdog->settings.observer;
    if (observer->happened != NULL) {
        observer->happened(observer->context, what, timer);
    }
}

/* Of the expired timers, the last one alone asks for the signal. */
static struct event_timer_record expired_timer(const struct watchdog_expiry *expiry, size_t index) {
    return (struct event_timer_record){
        .pid = expiry->pid,
        .scope = expiry->scopes.items[index],
        .expiration = expiry->expirations[index],
        .signal = index + 1 == expiry->scopes.count ? expiry->signal : 0,
    };
}

static void tell_of_expiry(struct agent_watchdog *watchdog, const struct watchdog_expiry *expiry) {
    for (size_t i = 0; i < expiry->scopes.count; i++) {
        struct event_timer_record timer = expired_timer(expiry, i);
        tell(watchdog, EVENT_WATCHDOG_TIMER_EXPIRED, &timer);
    }
}

static void tell_of_end(struct agent_watchdog *watchdog, const struct watchdog_expiry *expiry) {
    struct event_timer_record timer = expired_timer(expiry, expiry->scopes.count - 1);
    tell(watchdog, EVENT_WATCHDOG_KILL, &timer);
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

static void take_signalled(struct agent_watchdog *watchdog, const struct watchdog_notice *notice) {
    const struct watchdog_expiry *expiry = notice->expiry;
    char *scopes = timer_server_format_scopes(&expiry->scopes);
    log_error(watchdog->settings.log,
        "watchdog: ending process %" PRId64 " (local_rank %d) with %s, its timers expired: %s",
        expiry->pid, notice->owner, signal_name_from_number(expiry->signal), scopes);
    free(scopes);
    note_end(watchdog, expiry, notice->owner);
    tell_of_expiry(watchdog, expiry);
    tell_of_end(watchdog, expiry);
}

static void looked_at(void *context) {
    struct agent_watchdog *watchdog = context;
    timer_server_looked_at(watchdog->server);
}

static void look(struct agent_watchdog *watchdog, const struct watchdog_notice *notice) {
    struct agent_evidence_subject subject = {(pid_t)notice->expiry->pid, notice->owner};
    char *scopes = timer_server_format_scopes(&notice->expiry->scopes);
    char *reason = text_format("its timers expired: %s", scopes);
    struct agent_evidence_order order = {
        &subject, 1, reason, notice->bound, looked_at, watchdog, NULL};
    agent_evidence_gather(watchdog->settings.evidence, &order);
    free(reason);
    free(scopes);
}

static void take_notice(void *context, const struct watchdog_notice *notice) {
    struct agent_watchdog *watchdog = context;
    const struct agent_watchdog_settings *settings = &watchdog->settings;
    switch (notice->kind) {
    case WATCHDOG_NOTICE_STARTED:
        tell(watchdog, EVENT_WATCHDOG_STARTED, NULL);
        break;
    case WATCHDOG_NOTICE_STOPPED:
        tell(watchdog, EVENT_WATCHDOG_STOPPED, NULL);
        break;
    case WATCHDOG_NOTICE_EXPIRED:
        tell_of_expiry(watchdog, notice->expiry);
        break;
    case WATCHDOG_NOTICE_SIGNALLED:
        take_signalled(watchdog, notice);
        break;
    case WATCHDOG_NOTICE_LOOKS_BEGUN:
        settings->look_begun(settings->context);
        break;
    case WATCHDOG_NOTICE_LOOK:
        look(watchdog, notice);
        break;
    case WATCHDOG_NOTICE_LOOKS_OVER:
        settings->look_over(settings->context);
        break;
    case WATCHDOG_NOTICE_AGENT_TO_END:
        settings->end_agent(settings->context);
        break;
    }
}

/* Workers that are about to start need the FIFO, and somebody has removed it. */
static bool renew(void *context) {
    struct agent_watchdog *watchdog = context;
    const struct log *log = watchdog->settings.log;
    struct failure failure;
    if (timer_server_renew(watchdog->server, watchdog->path, &failure) != FAILURE_NONE) {
        log_warning(log,
            "watchdog: %s was removed while the job ran; these workers have no timers: %s",
            watchdog->path, failure.message);
        return false;
    }
    log_warning(log, "watchdog: %s was removed while the job ran; it is made anew", watchdog->path);
    return true;
}

/* Setting up and taking down. */

/* The FIFO of another agent is not taken away from it: a worker that is a launcher itself inherits
 * its own agent's variables. The caller frees the path. */
static char *choose_path(const struct agent_watchdog_settings *settings) {
    const char *wanted = settings->config->timer_file;
    if (wanted != NULL && !timer_fifo_is_served(wanted)) {
        return memory_duplicate_string(wanted);
    }
    char *uuid = random_seed_uuid();
    char *path = text_format(
        "%s/watchdog_timer_%s", temporary_directory_usable(settings->environment), uuid);
    free(uuid);
    if (wanted != NULL) {
        log_warning(settings->log,
            "TORCHELASTIC_TIMER_FILE: another program reads %s; these workers get %s", wanted,
            path);
    }
    return path;
}

static void tell_guardian(struct guardian *guardian, const char *path) {
    char *socket_path = text_format("%s" TIMER_SERVER_SOCKET_SUFFIX, path);
    guardian_remove_at_end(guardian, GUARDIAN_REMAINS_FIFO, path);
    guardian_remove_at_end(guardian, GUARDIAN_REMAINS_SOCKET, socket_path);
    free(socket_path);
}

static bool send_signal(void *context, const struct kernel_process_stat *process, int signal) {
    (void)context;
    return process_table_signal(process, signal);
}

enum failure_code agent_watchdog_new(struct event_loop *loop,
    const struct agent_watchdog_settings *settings, struct agent_watchdog **out_watchdog,
    struct failure *failure) {
    const struct launch_config *config = settings->config;
    if (!config->serves_timers) {
        *out_watchdog = NULL;
        return FAILURE_NONE;
    }
    struct agent_watchdog *watchdog = memory_allocate(sizeof *watchdog);
    watchdog->settings = *settings;
    const struct timer_server_settings server_settings = {
        .log = settings->log,
        .log_prefix = "watchdog: ",
        .rules = {.maximum_ancestors = WATCHDOG_MAXIMUM_ANCESTORS,
            .looks_first = settings->evidence != NULL,
            .look_bound = config->evidence_timeout,
            .ends_agent = config->on_timer_expiry == LAUNCH_TIMER_EXPIRY_EXIT_AGENT},
        .find_owner = find_owner,
        .refusal = refusal,
        .send_signal = send_signal,
        .notified = take_notice,
        .context = watchdog,
    };
    char *path = choose_path(settings);
    tell_guardian(settings->guardian, path);
    enum failure_code code =
        timer_server_new(loop, path, &server_settings, &watchdog->server, failure);
    if (code == FAILURE_NONE) {
        log_info(settings->log, "watchdog: serving timers at %s", path);
        agent_workers_set_timer_file(settings->workers, path, renew, watchdog);
        watchdog->path = memory_duplicate_string(path);
        *out_watchdog = watchdog;
    } else {
        failure_wrap(failure,
            "TORCHELASTIC_ENABLE_FILE_TIMER (TORCHELASTIC_TIMER_FILE names another place, or "
            "TMPDIR)");
        agent_watchdog_free(watchdog);
    }
    free(path);
    return code;
}

void agent_watchdog_free(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        timer_server_free(watchdog->server);
        free(watchdog->path);
        free(watchdog);
    }
}

void agent_watchdog_begin(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        timer_server_begin(watchdog->server);
    }
}

void agent_watchdog_end(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        timer_server_end(watchdog->server);
    }
}

void agent_watchdog_forget(struct agent_watchdog *watchdog, pid_t pid) {
    if (watchdog != NULL) {
        timer_server_forget(watchdog->server, pid);
    }
}

struct wall_time agent_watchdog_last_progress(
    const struct agent_watchdog *watchdog, struct wall_time now) {
    return watchdog == NULL
               ? now
               : watchdog_machine_last_progress(timer_server_machine(watchdog->server), now);
}

size_t agent_watchdog_timer_count(const struct agent_watchdog *watchdog) {
    return watchdog == NULL ? 0
                            : watchdog_timer_count(
                                  watchdog_machine_timers(timer_server_machine(watchdog->server)));
}

uint64_t agent_watchdog_request_count(const struct agent_watchdog *watchdog) {
    return watchdog == NULL
               ? 0
               : watchdog_machine_request_count(timer_server_machine(watchdog->server));
}
