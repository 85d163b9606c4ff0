/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/event_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/memory.h"
#include "host/loop/clock.h"

/* The time between the moments that timers share. */
#define BEAT NANOSECONDS_PER_SECOND

struct event_loop {
    uv_loop_t uv;
    int64_t beat; /* where in each second the shared moments lie: not the same for all processes */
};

struct event_timer {
    uv_timer_t uv;
    struct event_loop *loop;
    struct instant when;
    void (*fired)(void *context);
    void *context;
};

struct event_descriptor {
    uv_poll_t uv;
    void (*readable)(void *context);
    void *context;
};

struct event_wake {
    uv_async_t uv;
    void (*woken)(void *context);
    void *context;
};

enum failure_code event_loop_new(struct event_loop **out_loop, struct failure *failure) {
    struct event_loop *loop = memory_allocate(sizeof *loop);
    int status = uv_loop_init(&loop->uv);
    if (status != 0) {
        free(loop);
        return failure_set_system(failure, -status, "cannot create an event loop");
    }
    loop->beat = (int64_t)(random_seed() % BEAT);
    *out_loop = loop;
    return FAILURE_NONE;
}

bool event_loop_free(struct event_loop *loop) {
    if (loop == NULL) {
        return true;
    }
    uv_run(&loop->uv, UV_RUN_NOWAIT); /* forgets an event_loop_stop that came after the last run */
    uv_run(&loop->uv, UV_RUN_NOWAIT); /* runs the close callbacks of handles freed just before */
    if (uv_loop_close(&loop->uv) != 0) {
        return false;
    }
    free(loop);
    return true;
}

void event_loop_run(struct event_loop *loop) {
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void event_loop_stop(struct event_loop *loop) {
    uv_stop(&loop->uv);
}

bool event_loop_run_ready(struct event_loop *loop) {
    return uv_run(&loop->uv, UV_RUN_NOWAIT) != 0;
}

struct instant event_loop_now(const struct event_loop *loop) {
    (void)loop;
    return clock_now();
}

struct wall_time event_loop_wall_time(const struct event_loop *loop) {
    (void)loop;
    return clock_wall_time();
}

struct uv_loop_s *event_loop_uv(struct event_loop *loop) {
    return &loop->uv;
}

/* libuv has a place for each descriptor up to the highest that it watches, and doubles the list of
 * them in one piece. It takes no failure for an answer, so it is asked for it first. */
static bool has_place_for(const uv_loop_t *uv, int fd) {
    size_t needed = (size_t)fd + 3; /* two places are libuv's own */
    size_t places = 1;
    if (fd < 0 || (unsigned)fd < uv->nwatchers || fcntl(fd, F_GETFD) == -1) {
        return true; /* or it is none, which uv_poll_init says */
    }
    while (places < needed) {
        places *= 2;
    }
    return spare_memory_is_there(places * sizeof(void *));
}

int event_loop_init_poll(struct event_loop *loop, struct uv_poll_s *poll, int fd) {
    return has_place_for(&loop->uv, fd) ? uv_poll_init(&loop->uv, poll, fd) : UV_ENOMEM;
}

static void free_handle_owner(uv_handle_t *handle) {
    free(handle->data);
}

static void start_timer(struct event_timer *timer);

/* libuv does not promise which clock it reads, so it is checked. */
static void timer_fired(uv_timer_t *handle) {
    struct event_timer *timer = handle->data;
    if (instant_is_before(event_loop_now(timer->loop), timer->when)) {
        start_timer(timer);
    } else {
        timer->fired(timer->context);
    }
}

/* libuv has the same clock, in whole milliseconds. Timers for the same moment get the same one, so
 * that they fire in one turn. */
static void start_timer(struct event_timer *timer) {
    uv_update_time(&timer->loop->uv); /* libuv counts from its cached time, which may be old */
    int64_t now = (int64_t)uv_now(&timer->loop->uv);
    int64_t due = duration_milliseconds_ceiling((struct duration){timer->when.nanoseconds});
    bool is_due = !instant_is_before(event_loop_now(timer->loop), timer->when);
    uv_timer_start(&timer->uv, timer_fired, is_due || due < now ? 0 : (uint64_t)(due - now), 0);
}

struct event_timer *event_timer_new(
    struct event_loop *loop, void (*fired)(void *context), void *context) {
    struct event_timer *timer = memory_allocate(sizeof *timer);
    timer->loop = loop;
    timer->fired = fired;
    timer->context = context;
    uv_timer_init(&loop->uv, &timer->uv); /* cannot fail */
    timer->uv.data = timer;
    return timer;
}

void event_timer_free(struct event_timer *timer) {
    if (timer != NULL) {
        uv_close((uv_handle_t *)&timer->uv, free_handle_owner);
    }
}

void event_timer_set(struct event_timer *timer, struct instant when) {
    timer->when = when;
    if (when.nanoseconds == INT64_MAX) {
        event_timer_stop(timer);
    } else {
        start_timer(timer);
    }
}

/* Where there is no shared moment in between, the earliest one is nearer to that of the next
 * time. */
void event_timer_set_between(
    struct event_timer *timer, struct instant earliest, struct instant latest) {
    int64_t since = (latest.nanoseconds - timer->loop->beat) % BEAT;
    struct instant beat = {latest.nanoseconds - (since < 0 ? since + BEAT : since)};
    event_timer_set(timer, instant_is_before(beat, earliest) ? earliest : beat);
}

void event_timer_stop(struct event_timer *timer) {
    uv_timer_stop(&timer->uv);
}

static void descriptor_readable(uv_poll_t *handle, int status, int events) {
    (void)status; /* the owner sees an error when it reads */
    (void)events;
    struct event_descriptor *descriptor = handle->data;
    descriptor->readable(descriptor->context);
}

enum failure_code event_descriptor_new(struct event_loop *loop, int fd,
    void (*readable)(void *context), void *context, struct event_descriptor **out_descriptor,
    struct failure *failure) {
    struct event_descriptor *descriptor = memory_allocate(sizeof *descriptor);
    descriptor->readable = readable;
    descriptor->context = context;
    int status = event_loop_init_poll(loop, &descriptor->uv, fd);
    if (status != 0) {
        free(descriptor);
        return failure_set_system(failure, -status, "cannot watch descriptor %d", fd);
    }
    descriptor->uv.data = descriptor;
    uv_poll_start(&descriptor->uv, UV_READABLE | UV_DISCONNECT, descriptor_readable);
    *out_descriptor = descriptor;
    return FAILURE_NONE;
}

void event_descriptor_free(struct event_descriptor *descriptor) {
    if (descriptor != NULL) {
        uv_poll_stop(&descriptor->uv);
        uv_close((uv_handle_t *)&descriptor->uv, free_handle_owner);
    }
}

static void wake_woken(uv_async_t *handle) {
    struct event_wake *wake = handle->data;
    wake->woken(wake->context);
}

enum failure_code event_wake_new(struct event_loop *loop, void (*woken)(void *context),
    void *context, struct event_wake **out_wake, struct failure *failure) {
    struct event_wake *wake = memory_allocate(sizeof *wake);
    wake->woken = woken;
    wake->context = context;
    int status = uv_async_init(&loop->uv, &wake->uv, wake_woken);
    if (status != 0) {
        free(wake);
        return failure_set_system(failure, -status, "cannot create a wake-up");
    }
    wake->uv.data = wake;
    *out_wake = wake;
    return FAILURE_NONE;
}

void event_wake_free(struct event_wake *wake) {
    if (wake != NULL) {
        uv_close((uv_handle_t *)&wake->uv, free_handle_owner);
    }
}

void event_wake_send(struct event_wake *wake) {
    uv_async_send(&wake->uv);
}

/* Signal watch. */

struct signal_watch {
    void (*received)(void *context, int signal);
    void *context;
    uv_signal_t **handles; /* they are closed one by one; the loop frees them */
    size_t count;
};

static void signal_received(uv_signal_t *handle, int signal) {
    const struct signal_watch *watch = handle->data;
    watch->received(watch->context, signal);
}

static void free_handle(uv_handle_t *handle) {
    free(handle);
}

static bool has_signal(const struct signal_watch *watch, int signal) {
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->handles[i]->signum == signal) {
            return true;
        }
    }
    return false;
}

/* The parent process may have left the signal blocked. */
static void unblock(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static enum failure_code add_signal(
    struct signal_watch *watch, struct event_loop *loop, int signal, struct failure *failure) {
    if (has_signal(watch, signal)) {
        return FAILURE_NONE;
    }
    uv_signal_t *handle = memory_allocate(sizeof *handle);
    int status = uv_signal_init(event_loop_uv(loop), handle);
    if (status != 0) {
        free(handle);
        return failure_set_system(failure, -status, "cannot handle signals");
    }
    handle->data = watch;
    status = uv_signal_start(handle, signal_received, signal);
    if (status != 0) {
        uv_close((uv_handle_t *)handle, free_handle);
        return status == UV_EINVAL
                   ? failure_set(failure, FAILURE_INVALID, "signal %d cannot be handled", signal)
                   : failure_set_system(failure, -status, "cannot handle signal %d", signal);
    }
    unblock(signal);
    watch->handles[watch->count++] = handle;
    return FAILURE_NONE;
}

uint64_t signal_watch_ignored(void) {
    uint64_t ignored = 0;
    struct sigaction action;
    for (int signal = 1; signal < NSIG; signal++) {
        if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
            ignored |= signal_watch_bit(signal);
        }
    }
    return ignored &
           ~(signal_watch_bit(SIGPIPE) | signal_watch_bit(SIGXFSZ) | signal_watch_bit(SIGCHLD));
}

enum failure_code signal_watch_new(struct event_loop *loop, const int *signals, size_t count,
    void (*received)(void *context, int signal), void *context, struct signal_watch **out_watch,
    struct failure *failure) {
    struct signal_watch *watch = memory_allocate(sizeof *watch);
    watch->received = received;
    watch->context = context;
    watch->handles = memory_allocate(count * sizeof *watch->handles);
    for (size_t i = 0; i < count; i++) {
        enum failure_code code = add_signal(watch, loop, signals[i], failure);
        if (code != FAILURE_NONE) {
            signal_watch_free(watch);
            return code;
        }
    }
    *out_watch = watch;
    return FAILURE_NONE;
}

void signal_watch_go_deaf(const struct signal_watch *watch) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; watch != NULL && i < watch->count; i++) {
        sigaddset(&set, watch->handles[i]->signum);
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void signal_watch_free(struct signal_watch *watch) {
    if (watch == NULL) {
        return;
    }
    for (size_t i = 0; i < watch->count; i++) {
        uv_close((uv_handle_t *)watch->handles[i], free_handle);
    }
    free(watch->handles);
    free(watch);
}

void signal_watch_ignore_write_signals(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Wall timer. */

struct wall_timer {
    int fd;
    struct event_descriptor *watch;
    void (*fired)(void *context);
    void *context;
};

static void readable(void *context) {
    struct wall_timer *timer = context;
    uint64_t expirations;
    /* Nothing can be read when the timer was set again or stopped meanwhile. */
    if (read(timer->fd, &expirations, sizeof expirations) == (ssize_t)sizeof expirations) {
        timer->fired(timer->context);
    }
}

enum failure_code wall_timer_new(struct event_loop *loop, void (*fired)(void *context),
    void *context, struct wall_timer **out_timer, struct failure *failure) {
    struct wall_timer *timer = memory_allocate(sizeof *timer);
    timer->fired = fired;
    timer->context = context;
    timer->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    enum failure_code code =
        timer->fd < 0
            ? failure_set_system(failure, errno, "cannot make a timer")
            : event_descriptor_new(loop, timer->fd, readable, timer, &timer->watch, failure);
    if (code != FAILURE_NONE) {
        wall_timer_free(timer);
        return code;
    }
    *out_timer = timer;
    return FAILURE_NONE;
}

void wall_timer_free(struct wall_timer *timer) {
    if (timer != NULL) {
        event_descriptor_free(timer->watch);
        if (timer->fd >= 0) {
            close(timer->fd);
        }
        free(timer);
    }
}

static void set(const struct wall_timer *timer, int64_t nanoseconds) {
    struct itimerspec setting = {0};
    setting.it_value.tv_sec = (time_t)(nanoseconds / NANOSECONDS_PER_SECOND);
    setting.it_value.tv_nsec = (long)(nanoseconds % NANOSECONDS_PER_SECOND);
    (void)timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &setting, NULL); /* cannot fail */
}

void wall_timer_set(struct wall_timer *timer, struct wall_time when) {
    set(timer, when.nanoseconds > 0 ? when.nanoseconds : 1); /* 0 would disarm it */
}

void wall_timer_stop(struct wall_timer *timer) {
    set(timer, 0);
}
