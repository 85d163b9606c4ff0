/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/local_timer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/process_table.h"
#include "options/python_repr.h"

/* How long a client waits for room in the queue. */
#define PATIENCE_SECONDS 5
#define MAXIMUM_ANCESTORS 64
/* After how long a process that could not be signalled is signalled again. */
#define RETRY_NANOSECONDS 1000000000

struct local_timer_server {
    struct timer_queue *queue;
    const struct log *log;
    struct watchdog *registry;
};

static struct wall_time wall_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (struct wall_time){(int64_t)time.tv_sec * 1000000000 + time.tv_nsec};
}

/* The child's side. */

static enum failure_code ask(struct timer_queue *queue, enum watchdog_request_kind kind,
    const char *scope, struct duration after, struct failure *failure) {
    struct watchdog_request request = {
        .kind = kind,
        .pid = getpid(),
        .scope = memory_duplicate_string(scope),
        .signal = SIGKILL,
    };
    struct instant expiration = instant_after((struct instant){wall_clock().nanoseconds}, after);
    request.expiration.nanoseconds = expiration.nanoseconds;
    enum failure_code code =
        timer_queue_put(queue, &request, duration_from_seconds(PATIENCE_SECONDS), failure);
    watchdog_request_clear(&request);
    return code;
}

enum failure_code local_timer_acquire(
    struct timer_queue *queue, const char *scope, struct duration after, struct failure *failure) {
    return ask(queue, WATCHDOG_ACQUIRE, scope, after, failure);
}

enum failure_code local_timer_release(
    struct timer_queue *queue, const char *scope, struct failure *failure) {
    return ask(queue, WATCHDOG_RELEASE, scope, (struct duration){0}, failure);
}

/* The parent's side. */

struct local_timer_server *local_timer_server_new(
    struct timer_queue *queue, const struct log *log) {
    struct local_timer_server *server = memory_allocate(sizeof *server);
    server->queue = queue;
    server->log = log;
    server->registry = watchdog_new(&WATCHDOG_LIMITS_DEFAULT);
    return server;
}

void local_timer_server_free(struct local_timer_server *server) {
    if (server != NULL) {
        watchdog_free(server->registry);
        free(server);
    }
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

void local_timer_server_register(
    struct local_timer_server *server, const struct watchdog_request *request) {
    struct kernel_process_stat stat;
    struct watchdog_process process = {0};
    if (request->pid > 0 && request->pid <= INT32_MAX &&
        process_table_read((pid_t)request->pid, &stat)) {
        process = (struct watchdog_process){is_descendant(&stat), stat.start_time};
    }
    if (watchdog_take(server->registry, request, &process) != FAILURE_NONE) {
        log_warning(server->log, "process %" PRId64 " gets no timer: it %s", request->pid,
            process.is_ours ? "has too many" : "is no descendant of this one that runs");
    }
}

void local_timer_server_clear(struct local_timer_server *server, pid_t pid) {
    watchdog_forget(server->registry, pid);
}

bool local_timer_server_expired(
    struct local_timer_server *server, struct watchdog_expiry *out_expiry) {
    return watchdog_take_expired(server->registry, wall_clock(), out_expiry);
}

static bool find(const struct watchdog_expiry *expiry, struct kernel_process_stat *out_stat) {
    return process_table_read((pid_t)expiry->pid, out_stat) &&
           out_stat->start_time == expiry->start_time;
}

bool local_timer_server_reap(
    struct local_timer_server *server, const struct watchdog_expiry *expiry) {
    struct kernel_process_stat stat;
    struct text scope = {0};
    if (!find(expiry, &stat)) {
        return true;
    }
    python_repr_append(&scope, expiry->scopes.items[expiry->scopes.count - 1]);
    log_warning(server->log, "ending process %" PRId64 ", its timer expired: %s", expiry->pid,
        text_string(&scope));
    text_clear(&scope);
    return process_table_signal(&stat, SIGKILL) || !find(expiry, &stat);
}

static void register_request(void *context, const struct watchdog_request *request) {
    local_timer_server_register(context, request);
}

/* How long to wait for requests: not beyond the next deadline. */
static struct duration patience(const struct local_timer_server *server, struct duration maximum) {
    struct wall_time next;
    if (watchdog_next_deadline(server->registry, &next)) {
        int64_t left = next.nanoseconds - wall_clock().nanoseconds;
        left = left > 0 ? left : 0;
        maximum.nanoseconds = left < maximum.nanoseconds ? left : maximum.nanoseconds;
    }
    return maximum;
}

size_t local_timer_server_serve(struct local_timer_server *server, struct duration maximum) {
    struct watchdog_expiry expiry;
    size_t ended = 0;
    size_t count = timer_queue_size(server->queue);
    timer_queue_get(
        server->queue, count > 0 ? count : 1, patience(server, maximum), register_request, server);
    while (local_timer_server_expired(server, &expiry)) {
        if (expiry.signal == 0) {
            /* nobody is to be ended */
        } else if (local_timer_server_reap(server, &expiry)) {
            local_timer_server_clear(server, (pid_t)expiry.pid);
            ended++;
        } else {
            struct wall_time later = {wall_clock().nanoseconds + RETRY_NANOSECONDS};
            watchdog_retry(server->registry, &expiry, later);
        }
        watchdog_expiry_clear(&expiry);
    }
    return ended;
}

size_t local_timer_server_timer_count(const struct local_timer_server *server) {
    return watchdog_timer_count(server->registry);
}
