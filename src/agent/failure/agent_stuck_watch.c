/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_stuck_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/workers/worker_group.h"

/* Whatever --monitor-interval says, the agent does not look more often than this. */
#define SHORTEST_INTERVAL_MILLISECONDS 10

struct agent_stuck_watch {
    struct agent_stuck_watch_settings settings;
    struct event_loop *loop;
    struct event_timer *timer;
    struct stuck_watch *watches; /* by local rank */
    bool is_watching;
};

static void set_timer(struct agent_stuck_watch *watch) {
    struct duration interval = watch->settings.config->monitor_interval;
    struct duration shortest = duration_from_milliseconds(SHORTEST_INTERVAL_MILLISECONDS);
    if (interval.nanoseconds < shortest.nanoseconds) {
        interval = shortest;
    }
    event_timer_set(watch->timer, instant_after(event_loop_now(watch->loop), interval));
}

static void look_at_worker(struct agent_stuck_watch *watch, int local_rank) {
    const struct agent_stuck_watch_settings *settings = &watch->settings;
    pid_t pid = agent_workers_pid(settings->workers, local_rank);
    struct kernel_process_stat stat;
    if (pid == 0 || agent_workers_find(settings->workers, pid) != local_rank ||
        !settings->read_process(pid, &stat)) {
        return;
    }
    struct duration timeout = settings->config->stuck_timeout;
    struct stuck_watch *worker = &watch->watches[local_rank];
    struct instant now = event_loop_now(watch->loop);
    switch (stuck_watch_see(worker, stat.state, now, timeout)) {
    case STUCK_NOTHING_NEW:
        break;
    case STUCK_BEGINS:
        log_warning(settings->log,
            "worker %lld (local_rank %d) is in uninterruptible sleep; the job fails if it stays "
            "there for %.1f s",
            (long long)pid, local_rank, duration_seconds(timeout));
        break;
    case STUCK_TIMED_OUT:
        settings->stuck(settings->context, local_rank, instant_until(worker->since, now));
        break;
    }
}

static void look(void *context) {
    struct agent_stuck_watch *watch = context;
    for (int rank = 0; rank < watch->settings.worker_count && watch->is_watching; rank++) {
        look_at_worker(watch, rank);
    }
    if (watch->is_watching) {
        set_timer(watch);
    }
}

struct agent_stuck_watch *agent_stuck_watch_new(
    struct event_loop *loop, const struct agent_stuck_watch_settings *settings) {
    if (settings->config->stuck_timeout.nanoseconds == 0) {
        return NULL;
    }
    struct agent_stuck_watch *watch = memory_allocate(sizeof *watch);
    watch->settings = *settings;
    watch->loop = loop;
    watch->timer = event_timer_new(loop, look, watch);
    watch->watches = memory_allocate((size_t)settings->worker_count * sizeof *watch->watches);
    return watch;
}

void agent_stuck_watch_free(struct agent_stuck_watch *watch) {
    if (watch != NULL) {
        event_timer_free(watch->timer);
        free(watch->watches);
        free(watch);
    }
}

void agent_stuck_watch_begin(struct agent_stuck_watch *watch) {
    if (watch != NULL) {
        memset(watch->watches, 0, (size_t)watch->settings.worker_count * sizeof *watch->watches);
        watch->is_watching = true;
        set_timer(watch);
    }
}

void agent_stuck_watch_end(struct agent_stuck_watch *watch) {
    if (watch != NULL) {
        watch->is_watching = false;
        event_timer_stop(watch->timer);
    }
}
