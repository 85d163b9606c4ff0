/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_watchdog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/timer_server.h"
#include "base/memory.h"
#include "core/joint_ending.h"
#include "core/signal_name.h"
#include "core/watchdog.h"
#include "host/process_table.h"
#include "host/random_seed.h"
#include "host/timer_fifo.h"
#include "options/python_repr.h"

/* How far up a process may descend from a worker. */
#define MAXIMUM_ANCESTORS 64
/* Milliseconds between attempts to end a process that may not be signalled. */
#define RETRY 1000
/* A process whose time is up, and which is looked at before it is ended. */
struct ending {
    struct agent_watchdog *watchdog;
    struct ending *next;
    struct watchdog_expiry expiry;
    struct wall_time since;    /* when it was to be ended */
    struct event_timer *retry; /* NULL until it could not be ended */
    bool is_dropped;           /* the group is being stopped: others see to the end of this one */
};

struct agent_watchdog {
    struct event_loop *loop;
    struct ending *endings;
    struct joint_ending joint; /* of the endings that have not been tried */
    struct event_timer *joint_timer;
    bool is_agent_to_end;
    struct agent_watchdog_settings settings;
    struct timer_server *server;
    bool is_serving;
};

/* Who may hold timers. */

/* The rank of the worker whose session the process is in, or one of its ancestors; -1: none. */
static int find_worker(
    const struct agent_watchdog *watchdog, const struct kernel_process_stat *process) {
    struct kernel_process_stat ancestor = *process;
    int local_rank = agent_workers_find(watchdog->settings.workers, (pid_t)ancestor.session);
    for (int i = 0; i < MAXIMUM_ANCESTORS && local_rank < 0 && ancestor.parent > 1; i++) {
        if (!process_table_read((pid_t)ancestor.parent, &ancestor)) {
            return -1;
        }
        local_rank = agent_workers_find(watchdog->settings.workers, (pid_t)ancestor.session);
    }
    return local_rank;
}

/* A process that belongs to a worker, and that worker's rank; false when it is no such process. */
static bool find_process(const struct agent_watchdog *watchdog, int64_t pid,
    struct kernel_process_stat *out_stat, int *out_local_rank) {
    if (pid > INT32_MAX || !process_table_read((pid_t)pid, out_stat)) {
        return false;
    }
    *out_local_rank = find_worker(watchdog, out_stat);
    return *out_local_rank >= 0;
}

static bool belongs_to_a_worker(void *context, const struct kernel_process_stat *process) {
    return find_worker(context, process) >= 0;
}

/* Expiry. */

static void append_scopes(struct text *out, const struct text_list *scopes) {
    for (size_t i = 0; i < scopes->count; i++) {
        text_append(out, i == 0 ? "" : ", ");
        python_repr_append(out, scopes->items[i]);
    }
}

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

static bool is_running(const struct kernel_process_stat *process) {
    struct kernel_process_stat now;
    return process_table_read((pid_t)process->pid, &now) && now.start_time == process->start_time;
}

/* False when the process is still to be ended. */
static bool end_process(struct agent_watchdog *watchdog, const struct watchdog_expiry *expiry) {
    const struct log *log = watchdog->settings.log;
    struct text scopes = {0};
    struct kernel_process_stat stat;
    int local_rank;
    bool is_settled = true;
    append_scopes(&scopes, &expiry->scopes);
    bool is_there = find_process(watchdog, expiry->pid, &stat, &local_rank) &&
                    stat.start_time == expiry->start_time;
    if (!is_there) {
        log_info(log, "watchdog: process %" PRId64 " has ended, its timers do not matter: %s",
            expiry->pid, text_string(&scopes));
    } else if (expiry->signal == 0) {
        log_warning(log, "watchdog: process %" PRId64 " lives on, though its timers expired: %s",
            expiry->pid, text_string(&scopes));
        tell_of_expiry(watchdog, expiry);
    } else if (process_table_signal(&stat, expiry->signal)) {
        log_error(log,
            "watchdog: ending process %" PRId64 " (local_rank %d) with %s, its timers expired: %s",
            expiry->pid, local_rank, signal_name_from_number(expiry->signal), text_string(&scopes));
        note_end(watchdog, expiry, local_rank);
        tell_of_expiry(watchdog, expiry);
        tell_of_end(watchdog, expiry);
        watchdog->is_agent_to_end =
            watchdog->settings.config->on_timer_expiry == LAUNCH_TIMER_EXPIRY_EXIT_AGENT;
    } else if (is_running(&stat)) {
        log_error(log,
            "watchdog: cannot end process %" PRId64 ", whose timers expired: %s; trying again",
            expiry->pid, text_string(&scopes));
        is_settled = false;
    }
    text_clear(&scopes);
    return is_settled;
}

/* Looking first. */

static void free_ending(struct ending *ending) {
    event_timer_free(ending->retry);
    watchdog_expiry_clear(&ending->expiry);
    free(ending);
}

static void free_endings(struct agent_watchdog *watchdog) {
    while (watchdog->endings != NULL) {
        struct ending *ending = watchdog->endings;
        watchdog->endings = ending->next;
        free_ending(ending);
    }
}

static void end_agent_if_wanted(struct agent_watchdog *watchdog) {
    if (watchdog->is_agent_to_end) {
        watchdog->is_agent_to_end = false; /* once: a second call were a second signal */
        watchdog->settings.end_agent(watchdog->settings.context);
    }
}

static void retry(void *context);

/* True when nothing is left to do for it. */
static bool try_to_end(struct ending *ending) {
    struct agent_watchdog *watchdog = ending->watchdog;
    if (ending->is_dropped || end_process(watchdog, &ending->expiry)) {
        return true;
    }
    if (ending->retry == NULL) {
        ending->retry = event_timer_new(watchdog->loop, retry, ending);
    }
    event_timer_set(ending->retry,
        instant_after(event_loop_now(watchdog->loop), duration_from_milliseconds(RETRY)));
    return false;
}

static void retry(void *context) {
    struct ending *ending = context;
    struct agent_watchdog *watchdog = ending->watchdog;
    struct ending **link = &watchdog->endings;
    if (!try_to_end(ending)) {
        return;
    }
    while (*link != ending) {
        link = &(*link)->next;
    }
    *link = ending->next;
    free_ending(ending);
    end_agent_if_wanted(watchdog);
}

/* All that have been looked at, together. */
static void end_jointly(void *context) {
    struct agent_watchdog *watchdog = context;
    struct ending **link = &watchdog->endings;
    while (*link != NULL) {
        struct ending *ending = *link;
        if (ending->retry == NULL && try_to_end(ending)) {
            *link = ending->next;
            free_ending(ending);
        } else {
            link = &ending->next;
        }
    }
    watchdog->joint = (struct joint_ending){0};
    end_agent_if_wanted(watchdog);
    watchdog->settings.look_over(watchdog->settings.context);
}

static void looked_at(void *context) {
    struct agent_watchdog *watchdog = context;
    struct instant next;
    bool has_next = timer_server_next_expiry(watchdog->server, &next);
    joint_ending_end_look(&watchdog->joint);
    event_timer_set(
        watchdog->joint_timer, joint_ending_due(&watchdog->joint, has_next ? &next : NULL));
}

static void copy_expiry(struct watchdog_expiry *copy, const struct watchdog_expiry *expiry) {
    *copy = *expiry;
    copy->scopes = (struct text_list){0};
    text_list_add_all(&copy->scopes, &expiry->scopes);
    copy->expiration_capacity = expiry->scopes.count;
    copy->expirations =
        memory_duplicate(expiry->expirations, expiry->scopes.count * sizeof *expiry->expirations);
}

static void look_first(
    struct agent_watchdog *watchdog, const struct watchdog_expiry *expiry, int local_rank) {
    const struct agent_watchdog_settings *settings = &watchdog->settings;
    struct ending *ending = memory_allocate(sizeof *ending);
    ending->watchdog = watchdog;
    ending->since = event_loop_wall_time(watchdog->loop);
    copy_expiry(&ending->expiry, expiry);
    ending->next = watchdog->endings;
    watchdog->endings = ending;
    event_timer_stop(watchdog->joint_timer);
    if (!watchdog->joint.is_begun) {
        settings->look_begun(settings->context);
    }
    struct duration bound = joint_ending_begin_look(
        &watchdog->joint, event_loop_now(watchdog->loop), settings->config->evidence_timeout);
    struct agent_evidence_subject subject = {(pid_t)expiry->pid, local_rank};
    struct text reason = {0};
    text_append(&reason, "its timers expired: ");
    append_scopes(&reason, &expiry->scopes);
    struct agent_evidence_order order = {
        &subject, 1, text_string(&reason), bound, looked_at, watchdog};
    agent_evidence_gather(settings->evidence, &order);
    text_clear(&reason);
}

/* Only who will be ended is worth the look. */
static bool look_and_end_process(void *context, const struct watchdog_expiry *expiry) {
    struct agent_watchdog *watchdog = context;
    struct kernel_process_stat stat;
    int local_rank;
    if (watchdog->settings.evidence != NULL && expiry->signal != 0 &&
        find_process(watchdog, expiry->pid, &stat, &local_rank) &&
        stat.start_time == expiry->start_time) {
        look_first(watchdog, expiry, local_rank);
        return true;
    }
    bool is_settled = end_process(watchdog, expiry);
    end_agent_if_wanted(watchdog);
    return is_settled;
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
    const struct timer_server_settings server_settings = {
        .log = settings->log,
        .admits = belongs_to_a_worker,
        .refusal = "it belongs to no worker of this job",
        .expired = look_and_end_process,
        .context = watchdog,
    };
    char *path = choose_path(settings);
    enum failure_code code =
        timer_server_new(loop, path, &server_settings, &watchdog->server, failure);
    if (code == FAILURE_NONE) {
        watchdog->joint_timer = event_timer_new(loop, end_jointly, watchdog);
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
        free_endings(watchdog);
        event_timer_free(watchdog->joint_timer);
        timer_server_free(watchdog->server);
        free(watchdog);
    }
}

void agent_watchdog_begin(struct agent_watchdog *watchdog) {
    if (watchdog != NULL) {
        free_endings(watchdog);
        watchdog->joint = (struct joint_ending){0};
        event_timer_stop(watchdog->joint_timer);
        timer_server_begin(watchdog->server);
        watchdog->is_serving = true;
        tell(watchdog, EVENT_WATCHDOG_STARTED, NULL);
    }
}

void agent_watchdog_end(struct agent_watchdog *watchdog) {
    if (watchdog != NULL && watchdog->is_serving) {
        tell(watchdog, EVENT_WATCHDOG_STOPPED, NULL);
        watchdog->is_serving = false;
        timer_server_end(watchdog->server);
        for (struct ending *ending = watchdog->endings; ending != NULL; ending = ending->next) {
            ending->is_dropped = true;
        }
    }
}

void agent_watchdog_forget(struct agent_watchdog *watchdog, pid_t pid) {
    if (watchdog != NULL) {
        timer_server_forget(watchdog->server, pid);
    }
}

struct wall_time agent_watchdog_last_progress(
    const struct agent_watchdog *watchdog, struct wall_time now) {
    if (watchdog == NULL) {
        return now;
    }
    struct wall_time last = timer_server_last_progress(watchdog->server, now);
    for (const struct ending *each = watchdog->endings; each != NULL; each = each->next) {
        if (!each->is_dropped && each->since.nanoseconds < last.nanoseconds) {
            last = each->since;
        }
    }
    return last;
}

size_t agent_watchdog_timer_count(const struct agent_watchdog *watchdog) {
    return watchdog == NULL ? 0 : timer_server_timer_count(watchdog->server);
}

uint64_t agent_watchdog_request_count(const struct agent_watchdog *watchdog) {
    return watchdog == NULL ? 0 : timer_server_request_count(watchdog->server);
}
