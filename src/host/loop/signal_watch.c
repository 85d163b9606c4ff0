/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/signal_watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include <uv.h>

#include "base/memory.h"

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
