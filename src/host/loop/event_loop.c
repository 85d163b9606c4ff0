/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/event_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
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

/* Embedded loop. */

/* How many turns one call makes at most, so that a busy peer does not keep the program's own loop
 * waiting. */
#define MOST_TURNS 16

struct embedded_loop {
    struct event_loop *loop;
    pid_t owner;
    /* libuv's timers do not make its descriptor readable, so this one does, which it polls. */
    int alarm_fd;
    struct event_descriptor *alarm;
    bool is_running;
};

static void alarm_rang(void *context) {
    const struct embedded_loop *embedded = context;
    uint64_t expirations;
    (void)!read(embedded->alarm_fd, &expirations, sizeof expirations);
}

enum failure_code embedded_loop_new(struct embedded_loop **out_embedded, struct failure *failure) {
    struct embedded_loop *embedded = memory_allocate(sizeof *embedded);
    embedded->owner = getpid();
    embedded->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    enum failure_code code = embedded->alarm_fd < 0
                                 ? failure_set_system(failure, errno, "cannot make a timer")
                                 : event_loop_new(&embedded->loop, failure);
    if (code == FAILURE_NONE) {
        code = event_descriptor_new(
            embedded->loop, embedded->alarm_fd, alarm_rang, embedded, &embedded->alarm, failure);
    }
    if (code != FAILURE_NONE) {
        embedded_loop_free(embedded);
        return code;
    }
    (void)event_loop_run_ready(embedded->loop); /* libuv begins to watch the alarm only now */
    *out_embedded = embedded;
    return FAILURE_NONE;
}

void embedded_loop_free(struct embedded_loop *embedded) {
    if (embedded == NULL) {
        return;
    }
    event_descriptor_free(embedded->alarm);
    (void)event_loop_free(embedded->loop); /* true: everything in it was freed just before */
    if (embedded->alarm_fd >= 0) {
        close(embedded->alarm_fd);
    }
    free(embedded);
}

struct event_loop *embedded_loop_inside(struct embedded_loop *embedded) {
    return embedded->loop;
}

int embedded_loop_fd(const struct embedded_loop *embedded) {
    return uv_backend_fd(event_loop_uv(embedded->loop));
}

/* libuv asks the kernel for the descriptors that callbacks have added only at its next turn. Its
 * list of them is a ring whose head points to itself when it is empty, in all its versions. */
static bool has_new_descriptors(const struct embedded_loop *embedded) {
    const uv_loop_t *uv = event_loop_uv(embedded->loop);
    const void *head = &uv->watcher_queue;
    const void *first;
    memcpy(&first, head, sizeof first);
    return first != head;
}

void embedded_loop_note(struct embedded_loop *embedded) {
    uv_loop_t *uv = event_loop_uv(embedded->loop);
    struct itimerspec setting = {0};
    uv_update_time(uv); /* libuv counts from its cached time, which may be old */
    int milliseconds = has_new_descriptors(embedded) ? 0 : uv_backend_timeout(uv);
    if (milliseconds >= 0) {
        setting.it_value.tv_sec = milliseconds / 1000;
        setting.it_value.tv_nsec = (long)(milliseconds % 1000) * NANOSECONDS_PER_MILLISECOND;
        setting.it_value.tv_nsec += milliseconds == 0; /* zero would disarm it */
    }
    (void)timerfd_settime(embedded->alarm_fd, 0, &setting, NULL); /* cannot fail */
}

/* SIGPIPE is held back while the loop runs, and taken from this thread if it came. The kernel sends
 * it to the thread that has written, so none of another thread is taken. */
struct held_signal {
    sigset_t pipe;
    sigset_t before;
    bool was_pending;
};

static bool is_pending(void) {
    sigset_t pending;
    sigemptyset(&pending);
    (void)sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

static void hold(struct held_signal *held) {
    sigemptyset(&held->pipe);
    sigaddset(&held->pipe, SIGPIPE);
    held->was_pending = is_pending();
    pthread_sigmask(SIG_BLOCK, &held->pipe, &held->before);
}

static void let_go(const struct held_signal *held) {
    const struct timespec at_once = {0};
    if (!held->was_pending && is_pending()) {
        while (sigtimedwait(&held->pipe, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

static void begin(struct embedded_loop *embedded, struct held_signal *held) {
    embedded->is_running = true;
    hold(held);
}

static void end(struct embedded_loop *embedded, const struct held_signal *held) {
    let_go(held);
    embedded->is_running = false;
    embedded_loop_note(embedded);
}

/* What is due now, such as a request that a callback has added: it is sent in a turn of its own. */
static bool has_work_at_once(const struct embedded_loop *embedded) {
    uv_loop_t *uv = event_loop_uv(embedded->loop);
    uv_update_time(uv);
    return has_new_descriptors(embedded) || uv_backend_timeout(uv) == 0;
}

/* The program may be busy for long after this, and other nodes wait for what is to be sent. */
static void turn_while_there_is_work(struct embedded_loop *embedded) {
    for (int turns = 0; has_work_at_once(embedded) && turns < MOST_TURNS; turns++) {
        (void)event_loop_run_ready(embedded->loop);
    }
}

void embedded_loop_process(struct embedded_loop *embedded) {
    struct held_signal held;
    begin(embedded, &held);
    (void)event_loop_run_ready(embedded->loop);
    turn_while_there_is_work(embedded);
    end(embedded, &held);
}

void embedded_loop_run_until(struct embedded_loop *embedded, const bool *is_done) {
    struct held_signal held;
    begin(embedded, &held);
    while (!*is_done) {
        event_loop_run(embedded->loop);
    }
    turn_while_there_is_work(embedded);
    end(embedded, &held);
}

bool embedded_loop_is_running(const struct embedded_loop *embedded) {
    return embedded->is_running;
}

bool embedded_loop_is_of_this_process(const struct embedded_loop *embedded) {
    return embedded->owner == getpid();
}

/* Abort notice. */

#define EXIT_REFUSED 1

/* NULL: no refusal. Only constants, because a signal handler may not format. */
static const char *explain(int error) {
    switch (error) {
    case ENOMEM:
        return "no memory is left for the program, or none for its event loop (see ulimit -v, and "
               "the memory limit of the cgroup)";
    case EMFILE:
        return "too many open files: raise the limit of this process (ulimit -n)";
    case ENFILE:
        return "too many open files on this machine (fs.file-max)";
    case ENOSPC:
        return "the event loop can watch no further file: this user has reached "
               "fs.epoll.max_user_watches";
    default:
        return NULL;
    }
}

static struct sigaction earlier;
static const char *volatile words_to_tell; /* NULL: nobody is told */
static volatile int told_fd;

static void say(const char *words) {
    ssize_t written = write(STDERR_FILENO, words, strlen(words));
    (void)written;
}

static void give_notice(int signal) {
    const char *reason = explain(errno);
    bool is_memory = errno == ENOMEM;
    (void)signal;
    if (reason != NULL) {
        say("muster: error: cannot go on: ");
        say(reason);
        say("\n");
        if (words_to_tell != NULL && is_memory) {
            const char *words = words_to_tell;
            ssize_t sent = send(told_fd, words, strlen(words), MSG_DONTWAIT | MSG_NOSIGNAL);
            (void)sent;
        }
        _exit(EXIT_REFUSED);
    }
}

void abort_notice_install(void) {
    struct sigaction action = {.sa_handler = give_notice};
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, &earlier);
}

void abort_notice_remove(void) {
    sigaction(SIGABRT, &earlier, NULL);
}

void abort_notice_tell(int fd, const char *words) {
    told_fd = fd;
    words_to_tell = words;
}
