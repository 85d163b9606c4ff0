/* SPDX-License-Identifier: BSD-3-Clause */
/* The parent's side of muster/local_timer.h: the agent's watchdog registry, fed from the queue. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/clock.h"
#include "host/process/process_table.h"
#include "library/library_settings.h"
#include "library/local_timer_queue.h"

/* About the year 2262; struct wall_time cannot hold later times. */
#define NEVER_SECONDS 9.2e9
#define MAXIMUM_ANCESTORS 64
/* A process that could not be signalled is signalled again after this time. */
#define RETRY_NANOSECONDS NANOSECONDS_PER_SECOND

struct muster_local_timer_server {
    struct muster_local_timer_queue *queue;
    struct watchdog *registry;
    pid_t owner;
    int alarm_fd; /* readable when a timer is due */
    int poll_fd;  /* readable when that or the queue is */
};

static bool watch(int poll_fd, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* False with errno. */
static bool open_descriptors(struct muster_local_timer_server *server) {
    const struct muster_local_timer_queue *queue = server->queue;
    int requests_fd =
        queue->requests != NULL ? timer_queue_read_end(queue->requests) : queue->functions.fd;
    server->alarm_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    server->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    return server->alarm_fd >= 0 && server->poll_fd >= 0 &&
           watch(server->poll_fd, server->alarm_fd) &&
           (requests_fd < 0 || watch(server->poll_fd, requests_fd));
}

struct muster_local_timer_server *muster_local_timer_server_new(
    struct muster_local_timer_queue *queue) {
    if (queue == NULL || !local_timer_queue_can_be_served(queue)) {
        errno = EINVAL;
        return NULL;
    }
    if (!library_memory_is_there()) {
        return NULL;
    }
    struct muster_local_timer_server *server = memory_allocate(sizeof *server);
    server->queue = queue;
    server->owner = getpid();
    server->registry = watchdog_new(&WATCHDOG_LIMITS_DEFAULT);
    if (!open_descriptors(server)) {
        int error = errno;
        muster_local_timer_server_free(server);
        errno = error;
        return NULL;
    }
    return server;
}

void muster_local_timer_server_free(struct muster_local_timer_server *server) {
    if (server == NULL) {
        return;
    }
    if (server->poll_fd >= 0) {
        close(server->poll_fd);
    }
    if (server->alarm_fd >= 0) {
        close(server->alarm_fd);
    }
    watchdog_free(server->registry);
    free(server);
}

/* Sets errno when there is none, or it is another process's. */
static bool is_usable(const struct muster_local_timer_server *server) {
    if (server == NULL || server->owner != getpid()) {
        errno = EINVAL;
        return false;
    }
    return true;
}

int muster_local_timer_server_fd(const struct muster_local_timer_server *server) {
    return is_usable(server) ? server->poll_fd : -1;
}

/* The alarm rings when the next timer is due, also if the clock is set meanwhile. Called wherever
 * timers have changed. */
static void set_alarm(const struct muster_local_timer_server *server) {
    struct wall_time next;
    struct itimerspec setting = {0};
    if (watchdog_next_deadline(server->registry, &next)) {
        int64_t nanoseconds = next.nanoseconds > 1 ? next.nanoseconds : 1; /* zero disarms it */
        setting.it_value.tv_sec = (time_t)(nanoseconds / NANOSECONDS_PER_SECOND);
        setting.it_value.tv_nsec = (long)(nanoseconds % NANOSECONDS_PER_SECOND);
    }
    (void)timerfd_settime(server->alarm_fd, TFD_TIMER_ABSTIME, &setting, NULL); /* cannot fail */
}

size_t muster_local_timer_count(const struct muster_local_timer_server *server) {
    return is_usable(server) ? watchdog_timer_count(server->registry) : 0;
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
            return local_timer_failed(ESRCH);
        }
        process = (struct watchdog_process){is_descendant(&stat), stat.start_time};
    }
    enum failure_code code = watchdog_take(registry, request, &process);
    return code == FAILURE_NONE ? 0 : local_timer_failed(process.is_ours ? ENOSPC : EPERM);
}

int muster_local_timer_register(
    struct muster_local_timer_server *server, const struct muster_local_timer_request *request) {
    if (!is_usable(server)) {
        return -1;
    }
    if (request == NULL || request->scope == NULL || !(request->expiration <= NEVER_SECONDS)) {
        return local_timer_failed(EINVAL);
    }
    if (strlen(request->scope) > MUSTER_LOCAL_TIMER_SCOPE_SIZE) {
        return local_timer_failed(EMSGSIZE);
    }
    if (!library_memory_is_there()) {
        return -1;
    }
    bool releases = request->expiration < 0;
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
    set_alarm(server);
    errno = error;
    return result;
}

void muster_local_timer_clear(struct muster_local_timer_server *server, long pid) {
    if (is_usable(server)) {
        watchdog_forget(server->registry, pid);
        set_alarm(server);
    }
}

int muster_local_timer_expired(
    struct muster_local_timer_server *server, struct muster_local_timer_expiry *out_expiry) {
    struct watchdog_expiry expiry;
    if (!is_usable(server)) {
        return 0;
    }
    if (out_expiry == NULL) {
        errno = EINVAL;
        return 0;
    }
    if (!library_memory_is_there() ||
        !watchdog_take_expired(server->registry, clock_wall_time(), &expiry)) {
        return 0;
    }
    set_alarm(server);
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
    set_alarm(server);
    watchdog_expiry_clear(&again);
}

int muster_local_timer_reap(
    struct muster_local_timer_server *server, const struct muster_local_timer_expiry *expiry) {
    struct kernel_process_stat stat;
    if (!is_usable(server)) {
        return -1;
    }
    if (expiry == NULL || strnlen(expiry->scope, sizeof expiry->scope) == sizeof expiry->scope) {
        return local_timer_failed(EINVAL);
    }
    if (!find(expiry, &stat) || process_table_signal(&stat, SIGKILL) || !find(expiry, &stat)) {
        return 0;
    }
    try_again_later(server, expiry);
    return local_timer_failed(EPERM);
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
    if (!is_usable(server)) {
        return 0;
    }
    if (isnan(maximum)) {
        errno = EINVAL;
        return 0;
    }
    if (!library_memory_is_there()) {
        return 0;
    }
    int error = errno; /* that nobody was ended is no error */
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
    errno = error;
    return ended;
}
