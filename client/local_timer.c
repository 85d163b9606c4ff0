/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers between a parent and its forked children. The parent keeps the agent's watchdog registry;
 * requests come through a queue, which is a pipe. */
#include "muster/local_timer.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/clock.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_queue.h"

/* The maximum length of a timer: about 30 years. */
#define MAXIMUM_SECONDS 1e9
/* About the year 2262; struct wall_time cannot hold later times. */
#define NEVER_SECONDS 9.2e9
/* The time a child waits for room in the queue. */
#define PATIENCE_SECONDS 5
#define MAXIMUM_ANCESTORS 64
/* A process that could not be signalled is signalled again after this time. */
#define RETRY_NANOSECONDS NANOSECONDS_PER_SECOND

_Static_assert(MUSTER_LOCAL_TIMER_SCOPE_SIZE == TIMER_QUEUE_MAXIMUM_SCOPE, "one longest scope");

struct muster_local_timer_queue {
    struct timer_queue *requests;
};

struct muster_local_timer_server {
    struct muster_local_timer_queue *queue;
    struct watchdog *registry;
};

/* Sets errno and returns -1. */
static int failed(int error) {
    errno = error;
    return -1;
}

/* The queue. */

struct muster_local_timer_queue *muster_local_timer_queue_new(void) {
    struct timer_queue *requests;
    struct failure failure;
    if (timer_queue_new(&requests, &failure) != FAILURE_NONE) {
        errno = failure.system_error;
        return NULL;
    }
    struct muster_local_timer_queue *queue = memory_allocate(sizeof *queue);
    queue->requests = requests;
    return queue;
}

void muster_local_timer_queue_free(struct muster_local_timer_queue *queue) {
    if (queue != NULL) {
        timer_queue_free(queue->requests);
        free(queue);
    }
}

size_t muster_local_timer_queue_size(const struct muster_local_timer_queue *queue) {
    return timer_queue_size(queue->requests);
}

struct visit {
    void (*visit)(void *context, const struct muster_local_timer_request *request);
    void *context;
};

static void visit_request(void *context, const struct watchdog_request *request) {
    const struct visit *visit = context;
    double expiration = (double)request->expiration.nanoseconds / NANOSECONDS_PER_SECOND;
    const struct muster_local_timer_request seen = {
        .pid = (long)request->pid,
        .scope = request->scope,
        .expiration = request->kind == WATCHDOG_RELEASE ? -1 : expiration,
    };
    visit->visit(visit->context, &seen);
}

size_t muster_local_timer_queue_get(struct muster_local_timer_queue *queue, size_t count,
    double timeout, void (*visit)(void *context, const struct muster_local_timer_request *request),
    void *context) {
    struct visit visiting = {visit, context};
    return timer_queue_get(
        queue->requests, count, duration_from_seconds(timeout), visit_request, &visiting);
}

/* For the children. */

static int put(struct muster_local_timer_queue *queue, struct watchdog_request *request) {
    struct failure failure;
    struct duration patience = duration_from_seconds(PATIENCE_SECONDS);
    enum failure_code code = timer_queue_put(queue->requests, request, patience, &failure);
    watchdog_request_clear(request);
    if (code == FAILURE_NONE) {
        return 0;
    }
    return failed(code == FAILURE_LIMIT     ? EMSGSIZE
                  : code == FAILURE_TIMEOUT ? ETIMEDOUT
                                            : failure.system_error);
}

int muster_local_timer_acquire(
    struct muster_local_timer_queue *queue, const char *scope, double seconds) {
    if (!(seconds >= 0 && seconds <= MAXIMUM_SECONDS)) {
        return failed(EINVAL);
    }
    struct watchdog_request request = {
        .kind = WATCHDOG_ACQUIRE,
        .pid = getpid(),
        .scope = memory_duplicate_string(scope),
        .expiration = {clock_wall_time().nanoseconds + (int64_t)(seconds * NANOSECONDS_PER_SECOND)},
        .signal = SIGKILL,
    };
    return put(queue, &request);
}

int muster_local_timer_release(struct muster_local_timer_queue *queue, const char *scope) {
    struct watchdog_request request = {
        .kind = WATCHDOG_RELEASE,
        .pid = getpid(),
        .scope = memory_duplicate_string(scope),
    };
    return put(queue, &request);
}

/* For the parent. */

struct muster_local_timer_server *muster_local_timer_server_new(
    struct muster_local_timer_queue *queue) {
    struct muster_local_timer_server *server = memory_allocate(sizeof *server);
    server->queue = queue;
    server->registry = watchdog_new(&WATCHDOG_LIMITS_DEFAULT);
    return server;
}

void muster_local_timer_server_free(struct muster_local_timer_server *server) {
    if (server != NULL) {
        watchdog_free(server->registry);
        free(server);
    }
}

size_t muster_local_timer_count(const struct muster_local_timer_server *server) {
    return watchdog_timer_count(server->registry);
}

static bool is_descendant(const struct kernel_process_stat *process) {
    struct kernel_process_stat ancestor = *process;
    for (int i = 0; i < MAXIMUM_ANCESTORS && ancestor.parent > 1; i++) {
        if (ancestor.parent == getpid()) {
            return true;
        }
        if (!process_table_read((pid_t)ancestor.parent, &ancestor)) {
            return false;
        }
    }
    return false;
}

static bool find_process(int64_t pid, struct kernel_process_stat *out_stat) {
    return pid > 0 && pid <= INT32_MAX && process_table_read((pid_t)pid, out_stat);
}

static int take(struct watchdog *registry, const struct watchdog_request *request) {
    struct kernel_process_stat stat;
    struct watchdog_process process = {0};
    if (request->kind == WATCHDOG_ACQUIRE) {
        if (!find_process(request->pid, &stat)) {
            return failed(ESRCH);
        }
        process = (struct watchdog_process){is_descendant(&stat), stat.start_time};
    }
    enum failure_code code = watchdog_take(registry, request, &process);
    return code == FAILURE_NONE ? 0 : failed(process.is_ours ? ENOSPC : EPERM);
}

int muster_local_timer_register(
    struct muster_local_timer_server *server, const struct muster_local_timer_request *request) {
    if (strlen(request->scope) > MUSTER_LOCAL_TIMER_SCOPE_SIZE) {
        return failed(EMSGSIZE);
    }
    bool releases = !(request->expiration >= 0 && request->expiration <= NEVER_SECONDS);
    struct watchdog_request taken = {
        .kind = releases ? WATCHDOG_RELEASE : WATCHDOG_ACQUIRE,
        .pid = request->pid,
        .scope = memory_duplicate_string(request->scope),
        .signal = SIGKILL,
    };
    if (!releases) {
        taken.expiration.nanoseconds = (int64_t)(request->expiration * NANOSECONDS_PER_SECOND);
    }
    int result = take(server->registry, &taken);
    int error = errno;
    watchdog_request_clear(&taken);
    errno = error;
    return result;
}

void muster_local_timer_clear(struct muster_local_timer_server *server, long pid) {
    watchdog_forget(server->registry, pid);
}

int muster_local_timer_expired(
    struct muster_local_timer_server *server, struct muster_local_timer_expiry *out_expiry) {
    struct watchdog_expiry expiry;
    if (!watchdog_take_expired(server->registry, clock_wall_time(), &expiry)) {
        return 0;
    }
    out_expiry->pid = (long)expiry.pid;
    out_expiry->start_time = expiry.start_time;
    (void)snprintf(out_expiry->scope, sizeof out_expiry->scope, "%s", expiry.scopes.items[0]);
    watchdog_expiry_clear(&expiry);
    return 1;
}

static bool find(
    const struct muster_local_timer_expiry *expiry, struct kernel_process_stat *out_stat) {
    return find_process(expiry->pid, out_stat) && out_stat->start_time == expiry->start_time;
}

static void try_again_later(
    struct muster_local_timer_server *server, const struct muster_local_timer_expiry *expiry) {
    struct watchdog_expiry again = {
        .pid = expiry->pid, .start_time = expiry->start_time, .signal = SIGKILL};
    text_list_add(&again.scopes, expiry->scope);
    struct wall_time later = {clock_wall_time().nanoseconds + RETRY_NANOSECONDS};
    watchdog_retry(server->registry, &again, later);
    watchdog_expiry_clear(&again);
}

int muster_local_timer_reap(
    struct muster_local_timer_server *server, const struct muster_local_timer_expiry *expiry) {
    struct kernel_process_stat stat;
    if (!find(expiry, &stat) || process_table_signal(&stat, SIGKILL) || !find(expiry, &stat)) {
        return 0;
    }
    try_again_later(server, expiry);
    return failed(EPERM);
}

/* A round. */

struct round {
    struct muster_local_timer_server *server;
    const struct muster_local_timer_observer *observer;
};

static void register_request(void *context, const struct muster_local_timer_request *request) {
    const struct round *round = context;
    const struct muster_local_timer_observer *observer = round->observer;
    if (muster_local_timer_register(round->server, request) != 0 && errno != ESRCH &&
        observer != NULL && observer->refused != NULL) {
        observer->refused(observer->context, request, errno);
    }
}

/* How long to wait for requests: at most until the next deadline. */
static double patience(const struct muster_local_timer_server *server, double maximum) {
    struct wall_time next;
    if (watchdog_next_deadline(server->registry, &next)) {
        int64_t nanoseconds = next.nanoseconds - clock_wall_time().nanoseconds;
        double left = nanoseconds > 0 ? (double)nanoseconds / NANOSECONDS_PER_SECOND : 0;
        return left < maximum ? left : maximum;
    }
    return maximum;
}

size_t muster_local_timer_serve(struct muster_local_timer_server *server, double maximum,
    const struct muster_local_timer_observer *observer) {
    struct round round = {server, observer};
    struct muster_local_timer_expiry expiry;
    size_t count = muster_local_timer_queue_size(server->queue);
    size_t ended = 0;
    muster_local_timer_queue_get(
        server->queue, count > 0 ? count : 1, patience(server, maximum), register_request, &round);
    while (muster_local_timer_expired(server, &expiry)) {
        if (muster_local_timer_reap(server, &expiry) == 0) {
            ended++;
            if (observer != NULL && observer->ended != NULL) {
                observer->ended(observer->context, &expiry);
            }
        }
    }
    return ended;
}
