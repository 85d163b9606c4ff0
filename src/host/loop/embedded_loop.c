/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/embedded_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "base/memory.h"

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
