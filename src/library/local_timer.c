/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of muster/local_timer.h, and what children put into it. */
#include "library/library_settings.h"
#include "library/local_timer_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"

/* The maximum length of a timer: about 30 years. */
#define MAXIMUM_SECONDS 1e9
/* The time a child waits for room in the queue. */
#define PATIENCE_SECONDS 5

_Static_assert(MUSTER_LOCAL_TIMER_SCOPE_SIZE == TIMER_QUEUE_MAXIMUM_SCOPE, "one longest scope");

int local_timer_failed(int error) {
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

bool local_timer_queue_can_be_served(const struct muster_local_timer_queue *queue) {
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
