/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/watchdog/agent_watchdog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/watchdog/timer_server.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/workers/signal_name.h"
#include "host/loop/clock.h"
#include "host/loop/directory_tree.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_queue.h"

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
