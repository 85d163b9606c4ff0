/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <muster/local_timer.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/clock.h"
#include "host/process/process_table.h"
#include "host/watchdog/timer_queue.h"
#include "library/library_settings.h"

/* What the children and the server share. */

struct muster_local_timer_queue {
    struct timer_queue *requests; /* NULL: the program's own functions */
    struct muster_local_timer_queue_functions functions;
};

/* The children. */

/* The maximum length of a timer: about 30 years. */
#define MAXIMUM_SECONDS 1e9
/* The time a child waits for room in the queue. */
#define PATIENCE_SECONDS 5

_Static_assert(MUSTER_LOCAL_TIMER_SCOPE_SIZE == TIMER_QUEUE_MAXIMUM_SCOPE, "one longest scope");

/* Sets errno and returns -1. */
static int local_timer_failed(int error) {
    errno = error;
    return -1;
}

/* The queue. */

static struct muster_local_timer_queue *hold(struct timer_queue *requests) {
    struct muster_local_timer_queue *queue = memory_allocate(sizeof *queue);
    queue->requests = requests;
    return queue;
}

struct muster_local_timer_queue *muster_local_timer_queue_new(void) {
    struct timer_queue *requests;
    struct failure failure;
    if (!library_memory_is_there()) {
        return NULL;
    }
    if (timer_queue_new(&requests, &failure) != FAILURE_NONE) {
        errno = failure.system_error;
        return NULL;
    }
    return hold(requests);
}

struct muster_local_timer_queue *muster_local_timer_queue_over(
    const struct muster_local_timer_queue_functions *functions) {
    if (functions == NULL || (functions->put == NULL && functions->get == NULL)) {
        errno = EINVAL;
        return NULL;
    }
    if (!library_memory_is_there()) {
        return NULL;
    }
    struct muster_local_timer_queue *queue = hold(NULL);
    queue->functions = *functions;
    return queue;
}

/* Whether requests can be got from it. */
static bool local_timer_queue_can_be_served(const struct muster_local_timer_queue *queue) {
    return queue->requests != NULL ? timer_queue_read_end(queue->requests) >= 0
                                   : queue->functions.get != NULL;
}

void muster_local_timer_queue_free(struct muster_local_timer_queue *queue) {
    if (queue != NULL) {
        if (queue->requests != NULL) {
            timer_queue_free(queue->requests);
        }
        free(queue);
    }
}

/* Over exec: the descriptor by its number. The number of the pipe's inode goes with it, so that
 * another pipe that got the descriptor meanwhile is not written into. */

int muster_local_timer_queue_hand_on(
    struct muster_local_timer_queue *queue, char *out_name, size_t size) {
    struct stat status;
    char name[MUSTER_LOCAL_TIMER_NAME_SIZE];
    if (queue == NULL || queue->requests == NULL || out_name == NULL) {
        return local_timer_failed(EINVAL);
    }
    int fd = timer_queue_write_end(queue->requests);
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || fstat(fd, &status) != 0) {
        return -1;
    }
    int length = snprintf(name, sizeof name, "%d:%ju", fd, (uintmax_t)status.st_ino);
    if (length < 0 || (size_t)length >= size) {
        return local_timer_failed(ERANGE);
    }
    if (fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC) != 0) {
        return -1;
    }
    memcpy(out_name, name, (size_t)length + 1);
    return 0;
}

/* Digits only, up to `end`. */
static bool read_number(
    const char *text, char end, uintmax_t maximum, uintmax_t *out_number, const char **out_rest) {
    uintmax_t number = 0;
    const char *digit = text;
    while (*digit >= '0' && *digit <= '9') {
        uintmax_t value = (uintmax_t)(*digit - '0');
        if (number > (maximum - value) / 10) {
            return false;
        }
        number = number * 10 + value;
        digit++;
    }
    *out_number = number;
    *out_rest = digit + 1;
    return digit > text && *digit == end;
}

static bool is_inode(int fd, uintmax_t inode) {
    struct stat status;
    return fstat(fd, &status) == 0 && (uintmax_t)status.st_ino == inode;
}

struct muster_local_timer_queue *muster_local_timer_queue_open(const char *name) {
    const char *text = name != NULL ? name : getenv(MUSTER_LOCAL_TIMER_VARIABLE);
    uintmax_t number = 0;
    uintmax_t inode = 0;
    struct timer_queue *requests;
    if (text == NULL || *text == '\0') {
        errno = ENOENT;
        return NULL;
    }
    if (!library_memory_is_there()) {
        return NULL;
    }
    if (!read_number(text, ':', INT_MAX, &number, &text) ||
        !read_number(text, '\0', UINTMAX_MAX, &inode, &text)) {
        errno = EINVAL;
        return NULL;
    }
    int fd = is_inode((int)number, inode) ? fcntl((int)number, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0 || timer_queue_adopt(fd, &requests, NULL) != FAILURE_NONE) {
        if (fd >= 0) {
            close(fd);
        }
        errno = EBADF;
        return NULL;
    }
    return hold(requests);
}

size_t muster_local_timer_queue_size(const struct muster_local_timer_queue *queue) {
    if (queue == NULL) {
        errno = EINVAL;
        return 0;
    }
    if (queue->requests == NULL) {
        return queue->functions.size != NULL ? queue->functions.size(queue->functions.context) : 0;
    }
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
    if (queue == NULL || visit == NULL || isnan(timeout) ||
        !local_timer_queue_can_be_served(queue)) {
        errno = EINVAL;
        return 0;
    }
    if (!library_memory_is_there()) {
        return 0;
    }
    if (queue->requests == NULL) {
        return queue->functions.get(queue->functions.context, count, timeout, visit, context);
    }
    struct visit visiting = {visit, context};
    int error = errno; /* that nothing has come is no error */
    size_t taken = timer_queue_get(
        queue->requests, count, duration_from_seconds(timeout), visit_request, &visiting);
    errno = error;
    return taken;
}

/* For the children. */

static int put_over(
    const struct muster_local_timer_queue *queue, const char *scope, double expiration) {
    const struct muster_local_timer_request request = {getpid(), scope, expiration};
    int error = queue->functions.put != NULL
                    ? queue->functions.put(queue->functions.context, &request)
                    : EINVAL;
    return error == 0 ? 0 : local_timer_failed(error);
}

static int put(struct muster_local_timer_queue *queue, struct watchdog_request *request) {
    struct failure failure;
    struct duration patience = duration_from_seconds(PATIENCE_SECONDS);
    enum failure_code code = timer_queue_put(queue->requests, request, patience, &failure);
    watchdog_request_clear(request);
    if (code == FAILURE_NONE) {
        return 0;
    }
    return local_timer_failed(code == FAILURE_LIMIT     ? EMSGSIZE
                              : code == FAILURE_TIMEOUT ? ETIMEDOUT
                                                        : failure.system_error);
}

/* Whether a request may have this scope; sets errno. */
static bool can_name(const char *scope) {
    if (strnlen(scope, MUSTER_LOCAL_TIMER_SCOPE_SIZE + 1) > MUSTER_LOCAL_TIMER_SCOPE_SIZE) {
        errno = EMSGSIZE;
        return false;
    }
    return library_memory_is_there();
}

int muster_local_timer_acquire(
    struct muster_local_timer_queue *queue, const char *scope, double seconds) {
    if (queue == NULL || scope == NULL || !(seconds >= 0 && seconds <= MAXIMUM_SECONDS)) {
        return local_timer_failed(EINVAL);
    }
    if (!can_name(scope)) {
        return -1;
    }
    if (queue->requests == NULL) {
        double now = (double)clock_wall_time().nanoseconds / NANOSECONDS_PER_SECOND;
        return put_over(queue, scope, now + seconds);
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
    if (queue == NULL || scope == NULL) {
        return local_timer_failed(EINVAL);
    }
    if (!can_name(scope)) {
        return -1;
    }
    if (queue->requests == NULL) {
        return put_over(queue, scope, -1);
    }
    struct watchdog_request request = {
        .kind = WATCHDOG_RELEASE,
        .pid = getpid(),
        .scope = memory_duplicate_string(scope),
    };
    return put(queue, &request);
}

struct muster_local_timer_scope muster_local_timer_scope_begin(
    struct muster_local_timer_queue *queue, const char *scope, double seconds) {
    struct muster_local_timer_scope held = {.queue = queue, .scope = scope, .error = 0};
    if (muster_local_timer_acquire(queue, scope, seconds) != 0) {
        held.error = errno;
    }
    return held;
}

void muster_local_timer_scope_end(struct muster_local_timer_scope *scope) {
    int error = errno;
    if (scope != NULL && scope->error == 0) {
        (void)muster_local_timer_release(scope->queue, scope->scope);
    }
    errno = error;
}

/* The server. */

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
