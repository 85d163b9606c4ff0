/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "base/memory.h"

/* The exit status that is reported when the real one was lost, because other code in this process
 * waited for the child. */
#define STATUS_LOST 255

struct watched {
    struct process_watch *watch;
    pid_t pid;
    int pidfd;                           /* -1: the child is watched by SIGCHLD */
    struct event_descriptor *descriptor; /* NULL when `pidfd` is -1 */
};

struct process_watch {
    struct event_loop *loop;
    struct process_watch_events events;
    uv_signal_t *child_signal;
    struct event_wake
        *recheck; /* sent when a child without a pidfd may have ended before it was added */
    struct watched **watched; /* in the order they were added */
    size_t count;
    size_t capacity;
};

static void free_watched(struct watched *watched) {
    event_descriptor_free(watched->descriptor);
    if (watched->pidfd != -1) {
        close(watched->pidfd);
    }
    free(watched);
}

static void forget(struct process_watch *watch, struct watched *watched) {
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->watched[i] == watched) {
            watch->count--;
            memmove(&watch->watched[i], &watch->watched[i + 1],
                (watch->count - i) * sizeof *watch->watched);
            break;
        }
    }
    free_watched(watched);
}

static struct process_exit exit_from(const siginfo_t *info) {
    return (struct process_exit){
        .is_signal = info->si_code != CLD_EXITED,
        .value = info->si_status,
        .has_dumped_core = info->si_code == CLD_DUMPED,
    };
}

/* Collects the status of a watched child and reports it; false when the child lives. The child
 * has not been waited for yet, so its pid cannot have been reused, and no pidfd is needed to name
 * it. */
static bool collect(struct watched *watched) {
    struct process_watch *watch = watched->watch;
    siginfo_t info = {0};
    int status = waitid(P_PID, (id_t)watched->pid, &info, WEXITED | WNOHANG);
    if (status == 0 && info.si_pid == 0) {
        return false;
    }
    pid_t pid = watched->pid;
    struct process_exit how =
        status == 0 ? exit_from(&info) : (struct process_exit){.value = STATUS_LOST};
    forget(watch, watched);
    watch->events.exited(watch->events.context, pid, &how);
    return true;
}

static struct watched *find(const struct process_watch *watch, pid_t pid) {
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->watched[i]->pid == pid) {
            return watch->watched[i];
        }
    }
    return NULL;
}

/* Finds a child that has ended, without waiting for it. Returns 0 when there is none, -1 when there
 * are no children. */
static pid_t peek_ended(void) {
    siginfo_t info = {0};
    int status;
    do {
        status = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
    } while (status == -1 && errno == EINTR);
    return status == 0 ? info.si_pid : -1;
}

static void tell_unwatched(const struct process_watch *watch, const siginfo_t *info) {
    if (watch->events.unwatched_exited != NULL) {
        struct process_exit how = exit_from(info);
        watch->events.unwatched_exited(watch->events.context, info->si_pid, &how);
    }
}

/* Reaps ended children that are not watched. If a watched child is found, the search stops, because
 * pidfds report watched children in their order. The search continues after that report. */
static bool reap_unwatched(struct process_watch *watch) {
    bool has_reaped = false;
    for (;;) {
        pid_t pid = peek_ended();
        if (pid <= 0 || find(watch, pid) != NULL) {
            return has_reaped;
        }
        siginfo_t info;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) == 0) {
            has_reaped = true;
            tell_unwatched(watch, &info);
        }
    }
}

static void report_reaped(struct process_watch *watch) {
    if (watch->events.reaped != NULL) {
        watch->events.reaped(watch->events.context);
    }
}

static void pidfd_readable(void *context) {
    struct watched *watched = context;
    struct process_watch *watch = watched->watch;
    if (collect(watched)) {
        reap_unwatched(watch);
        report_reaped(watch);
    }
}

/* Collects the watched children without a pidfd that have ended. The callbacks may add to the list,
 * but never remove from it. */
static bool collect_without_pidfd(struct process_watch *watch) {
    bool has_collected = false;
    for (size_t i = 0; i < watch->count;) {
        struct watched *watched = watch->watched[i];
        if (watched->pidfd == -1 && collect(watched)) {
            has_collected = true; /* the next item has moved to this index */
        } else {
            i++;
        }
    }
    return has_collected;
}

static void look_at_children(void *context) {
    struct process_watch *watch = context;
    bool has_collected = collect_without_pidfd(watch);
    if (reap_unwatched(watch) || has_collected) {
        report_reaped(watch);
    }
}

static void child_signal_received(uv_signal_t *handle, int signal) {
    (void)signal;
    look_at_children(handle->data);
}

static void free_handle(uv_handle_t *handle) {
    free(handle);
}

static int watch_child_signal(struct process_watch *watch) {
    uv_signal_t *handle = memory_allocate(sizeof *handle);
    int status = uv_signal_init(event_loop_uv(watch->loop), handle);
    if (status != 0) {
        free(handle);
        return status;
    }
    handle->data = watch;
    status = uv_signal_start(handle, child_signal_received, SIGCHLD);
    if (status != 0) {
        uv_close((uv_handle_t *)handle, free_handle);
        return status;
    }
    watch->child_signal = handle;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_UNBLOCK, &child, NULL); /* the parent process may have left it blocked */
    return 0;
}

enum failure_code process_watch_new(struct event_loop *loop,
    const struct process_watch_events *events, struct process_watch **out_watch,
    struct failure *failure) {
    struct process_watch *watch = memory_allocate(sizeof *watch);
    watch->loop = loop;
    watch->events = *events;
    enum failure_code code =
        event_wake_new(loop, look_at_children, watch, &watch->recheck, failure);
    if (code != FAILURE_NONE) {
        process_watch_free(watch);
        return code;
    }
    int status = watch_child_signal(watch);
    if (status != 0) {
        process_watch_free(watch);
        return failure_set_system(failure, -status, "cannot watch for ended children");
    }
    *out_watch = watch;
    return FAILURE_NONE;
}

void process_watch_free(struct process_watch *watch) {
    if (watch == NULL) {
        return;
    }
    for (size_t i = 0; i < watch->count; i++) {
        free_watched(watch->watched[i]);
    }
    if (watch->child_signal != NULL) {
        uv_close((uv_handle_t *)watch->child_signal, free_handle);
    }
    event_wake_free(watch->recheck);
    free(watch->watched);
    free(watch);
}

static void watch_pidfd(struct watched *watched) {
    struct process_watch *watch = watched->watch;
    if (watched->pidfd != -1 && event_descriptor_new(watch->loop, watched->pidfd, pidfd_readable,
                                    watched, &watched->descriptor, NULL) == FAILURE_NONE) {
        return;
    }
    if (watched->pidfd != -1) {
        close(watched->pidfd);
        watched->pidfd = -1;
    }
    event_wake_send(watch->recheck);
}

void process_watch_add(struct process_watch *watch, const struct process *process) {
    struct watched *watched = memory_allocate(sizeof *watched);
    *watched = (struct watched){.watch = watch, .pid = process->pid, .pidfd = process->pidfd};
    watch->watched =
        memory_reserve(watch->watched, &watch->capacity, watch->count + 1, sizeof *watch->watched);
    watch->watched[watch->count++] = watched;
    watch_pidfd(watched);
}

size_t process_watch_count(const struct process_watch *watch) {
    return watch->count;
}

pid_t process_watch_pid(const struct process_watch *watch, size_t index) {
    return watch->watched[index]->pid;
}

bool process_watch_has(const struct process_watch *watch, pid_t pid) {
    return find(watch, pid) != NULL;
}

bool process_watch_has_children(const struct process_watch *watch) {
    (void)watch;
    return peek_ended() != -1;
}
