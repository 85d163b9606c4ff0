/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_family.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/process/guardian.h"
#include "host/process/process_table.h"
#include "host/process/process_watch.h"

struct process_family {
    struct process_family_events events;
    struct guardian *guardian;
    struct process_watch *watch;
    struct process_ids strangers;     /* children that existed before the family */
    struct process_ids spares;        /* children that are watched, and no workers yet */
    struct process_ids open_sessions; /* sessions whose leader has ended while other members live */
    bool is_gone;                     /* the family is empty, and `gone` was called */
    bool is_killing;                  /* SIGKILL was sent and is in force */
};

/* How long the end of the spares may hold up the end of the family. */
#define SPARE_PATIENCE_MILLISECONDS 1000

/* A walk over the descendants of this process. */
struct descent {
    const struct process_family *family;
    int signal;
    struct process_ids found; /* in the order of finding; each one's children are listed in turn */
};

static bool is_spare(const struct process_family *family, pid_t pid) {
    return process_ids_have(&family->spares, pid);
}

/* The guardian is a child only where this process is the first one of a container. One that was
 * replaced is no stranger from before the family. */
static bool is_guardian(const struct process_family *family, pid_t pid) {
    return family->guardian != NULL && guardian_descriptor(family->guardian) != -1 &&
           guardian_pid(family->guardian) == pid;
}

/* Children that do not belong to the family. */
static bool is_outsider(const struct process_family *family, pid_t pid) {
    return process_ids_have(&family->strangers, pid) || is_spare(family, pid) ||
           is_guardian(family, pid);
}

static void forget_spare(struct process_family *family, pid_t pid) {
    struct process_ids *spares = &family->spares;
    for (size_t i = 0; i < spares->count; i++) {
        if (spares->items[i] == pid) {
            spares->count--;
            memmove(&spares->items[i], &spares->items[i + 1],
                (spares->count - i) * sizeof *spares->items);
            return;
        }
    }
}

/* Whether the process of `stat`, which was listed as a child of `parent`, is still that process.
 * The parent may have ended meanwhile, which made the process a child of ours. */
static bool is_descendant(const struct kernel_process_stat *stat, pid_t parent) {
    return stat->parent == parent || stat->parent == getpid();
}

static void signal_descendant(
    const struct descent *descent, const struct kernel_process_stat *stat) {
    bool has_it_by_group = process_watch_has(descent->family->watch, (pid_t)stat->group);
    if (!has_it_by_group && stat->state != 'Z') {
        process_table_signal(stat, descent->signal);
    }
}

static void find_children(struct descent *descent, pid_t parent) {
    struct process_ids children = {0};
    process_table_children(parent, &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        struct kernel_process_stat stat;
        if (!process_ids_have(&descent->found, child) && !is_outsider(descent->family, child) &&
            process_table_read(child, &stat) && is_descendant(&stat, parent)) {
            process_ids_add(&descent->found, child);
            signal_descendant(descent, &stat);
        }
    }
    process_ids_clear(&children);
}

/* Where there is no /proc. The descendants of a child are found when it has ended, because they are
 * children of ours then. No child has been waited for, so no number has been reused. */
static void signal_own_children(const struct process_family *family, int signal) {
    struct process_ids children = {0};
    process_table_own_children(&children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        if (!is_outsider(family, child) && !process_watch_has(family->watch, getpgid(child))) {
            kill(child, signal);
        }
    }
    process_ids_clear(&children);
}

/* Signals the descendants that are outside the workers' process groups. A process whose parent ends
 * meanwhile becomes a child of ours, so our own children are searched until no new process is
 * found. */
static void signal_outside_groups(const struct process_family *family, int signal) {
    if (!process_table_is_there()) {
        signal_own_children(family, signal);
        return;
    }
    struct descent descent = {.family = family, .signal = signal};
    size_t next = 0;
    size_t found_before;
    do {
        found_before = descent.found.count;
        find_children(&descent, getpid());
        while (next < descent.found.count) {
            find_children(&descent, descent.found.items[next++]);
        }
    } while (descent.found.count > found_before);
    process_ids_clear(&descent.found);
}

/* The workers have not been waited for, so these group numbers cannot have been reused. */
static void signal_groups(const struct process_family *family, int signal) {
    size_t count = process_watch_count(family->watch);
    for (size_t i = 0; i < count; i++) {
        pid_t worker = process_watch_pid(family->watch, i);
        if (!is_spare(family, worker)) {
            kill(-worker, signal);
        }
    }
}

void process_family_signal(struct process_family *family, int signal) {
    if (family->is_gone) {
        return;
    }
    family->is_killing = family->is_killing || signal == SIGKILL;
    signal_groups(family, signal);
    signal_outside_groups(family, signal);
}

static void list_children(struct process_ids *out_children) {
    if (process_table_is_there()) {
        process_table_children(getpid(), out_children);
    } else {
        process_table_own_children(out_children);
    }
}

/* While there are strangers or spares, the kernel never reports "no child". Then the children must
 * be listed. */
static bool has_children_of_ours(const struct process_family *family) {
    if (!process_watch_has_children(family->watch)) {
        return false;
    }
    if (family->strangers.count == 0 && family->spares.count == 0) {
        return true;
    }
    struct process_ids children = {0};
    bool has_ours = false;
    list_children(&children);
    for (size_t i = 0; i < children.count; i++) {
        has_ours = has_ours || !is_outsider(family, children.items[i]);
    }
    process_ids_clear(&children);
    return has_ours;
}

static void end_open_sessions(struct process_family *family) {
    for (size_t i = 0; i < family->open_sessions.count; i++) {
        guardian_end_session(family->guardian, family->open_sessions.items[i]);
    }
    process_ids_clear(&family->open_sessions);
}

static void children_reaped(void *context) {
    struct process_family *family = context;
    if (family->is_gone || process_family_worker_count(family) > 0) {
        return;
    }
    if (has_children_of_ours(family)) {
        if (family->is_killing) {
            signal_outside_groups(family, SIGKILL);
        }
        return;
    }
    family->is_gone = true;
    family->is_killing = false;
    end_open_sessions(family);
    family->events.gone(family->events.context);
}

static void worker_exited(void *context, pid_t pid, const struct process_exit *how) {
    struct process_family *family = context;
    if (kill(-pid, 0) == -1 && errno == ESRCH) {
        guardian_end_session(family->guardian, pid);
    } else {
        process_ids_add(&family->open_sessions, pid);
    }
    if (is_spare(family, pid)) {
        forget_spare(family, pid);
        family->events.spare_exited(family->events.context, pid, how);
        return;
    }
    family->events.exited(family->events.context, pid, how);
}

enum failure_code process_family_new(struct event_loop *loop,
    const struct process_family_events *events, struct guardian *guardian,
    struct process_family **out_family, struct failure *failure) {
    struct process_family *family = memory_allocate(sizeof *family);
    family->events = *events;
    family->guardian = guardian;
    family->is_gone = true;
    const struct process_watch_events watch_events = {worker_exited, children_reaped, family};
    enum failure_code code = process_watch_new(loop, &watch_events, &family->watch, failure);
    if (code != FAILURE_NONE) {
        free(family);
        return code;
    }
    list_children(&family->strangers);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* cannot fail since Linux 3.4 */
    *out_family = family;
    return FAILURE_NONE;
}

/* The watch does not run any longer, so nobody else waits for them. */
static void end_spares(struct process_family *family) {
    struct timespec pause = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    for (size_t i = 0; i < family->spares.count; i++) {
        kill(-family->spares.items[i], SIGKILL);
    }
    for (int waited = 0; family->spares.count > 0 && waited < SPARE_PATIENCE_MILLISECONDS;) {
        pid_t spare = family->spares.items[0];
        if (waitpid(spare, NULL, WNOHANG) == 0) {
            nanosleep(&pause, NULL);
            waited++;
        } else {
            guardian_end_session(family->guardian, spare);
            forget_spare(family, spare);
        }
    }
}

void process_family_free(struct process_family *family) {
    if (family != NULL) {
        end_spares(family);
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
        process_watch_free(family->watch);
        process_ids_clear(&family->strangers);
        process_ids_clear(&family->spares);
        process_ids_clear(&family->open_sessions);
        free(family);
    }
}

void process_family_add(struct process_family *family, const struct process *process) {
    family->is_gone = false;
    guardian_note_session(family->guardian, process->pid);
    process_watch_add(family->watch, process);
}

void process_family_add_spare(struct process_family *family, const struct process *process) {
    process_ids_add(&family->spares, process->pid);
    guardian_note_session(family->guardian, process->pid);
    process_watch_add(family->watch, process);
}

void process_family_give(struct process_family *family, pid_t spare) {
    forget_spare(family, spare);
    family->is_gone = false;
}

void process_family_take_back(struct process_family *family, pid_t spare) {
    if (process_watch_has(family->watch, spare)) { /* else it has ended */
        process_ids_add(&family->spares, spare);
        process_family_end_spare(family, spare);
    }
    family->is_gone = process_family_worker_count(family) == 0 && !has_children_of_ours(family);
}

void process_family_end_spare(struct process_family *family, pid_t spare) {
    if (is_spare(family, spare)) {
        kill(-spare, SIGKILL);
    }
}

void process_family_orphans(const struct process_family *family, struct process_ids *out_orphans) {
    struct process_ids children = {0};
    process_table_children(getpid(), &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        if (!process_watch_has(family->watch, child) &&
            !process_ids_have(&family->strangers, child)) {
            process_ids_add(out_orphans, child);
        }
    }
    process_ids_clear(&children);
}

bool process_family_is_gone(const struct process_family *family) {
    return family->is_gone;
}

size_t process_family_worker_count(const struct process_family *family) {
    return process_watch_count(family->watch) - family->spares.count;
}
