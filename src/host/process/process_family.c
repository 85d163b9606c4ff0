/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_family.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/memory.h"
#include "host/process/guardian.h"
#include "host/process/process_table.h"

/* The exit status that is reported when the real one was lost, because other code in this process
 * waited for the child. */
#define STATUS_LOST 255

struct watched {
    struct process_watch *watch;
    pid_t pid;
    int pidfd;                           /* -1: the child is watched by SIGCHLD */
    struct event_descriptor *descriptor; /* NULL when `pidfd` is -1 */
};

/* Reports the end of child processes without polling: the event loop watches each child's pidfd;
 * where there is no pidfd, SIGCHLD is used. Only this module waits for children. So it also reaps
 * children that are not watched (orphans that the agent adopted as a subreaper), but never takes a
 * watched child's status away. It sends no signals; process_family, which the agent uses, does.
 *
 * The callbacks run from the event loop, never from within a call below. They may call
 * process_watch_add, but not process_watch_free. */

struct process_watch_events {
    /* A watched process ended. It has been reaped, so its pid may be reused. With pidfds the calls
     * come in the order in which the kernel reported the ends. */
    void (*exited)(void *context, pid_t pid, const struct process_exit *how);
    /* Called once per batch after children were reaped, watched or not, and after the `exited` and
     * `unwatched_exited` calls. May be NULL. */
    void (*reaped)(void *context);
    /* Another child ended, and has been reaped. May be NULL. */
    void (*unwatched_exited)(void *context, pid_t pid, const struct process_exit *how);
    void *context;
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

/* Stops watching; the children live on. Accepts NULL. */
static void process_watch_free(struct process_watch *watch) {
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

/* `events` is copied. Handles SIGCHLD through the loop. */
static enum failure_code process_watch_new(struct event_loop *loop,
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

/* Watches a child, which may already have ended. Call it before the loop runs again after the
 * child's start; later, an early end would be taken for an orphan's. Takes over the child: its
 * pidfd is closed and its status collected here. A child without a pidfd, or with one that the loop
 * refuses, is watched by SIGCHLD. */
static void process_watch_add(struct process_watch *watch, const struct process *process) {
    struct watched *watched = memory_allocate(sizeof *watched);
    *watched = (struct watched){.watch = watch, .pid = process->pid, .pidfd = process->pidfd};
    watch->watched =
        memory_reserve(watch->watched, &watch->capacity, watch->count + 1, sizeof *watch->watched);
    watch->watched[watch->count++] = watched;
    watch_pidfd(watched);
}

/* The number of watched processes whose end has not been reported. */
static size_t process_watch_count(const struct process_watch *watch) {
    return watch->count;
}

/* The pid of the `index`-th of them, in the order they were added. It cannot be reused yet. */
static pid_t process_watch_pid(const struct process_watch *watch, size_t index) {
    return watch->watched[index]->pid;
}

static bool process_watch_has(const struct process_watch *watch, pid_t pid) {
    return find(watch, pid) != NULL;
}

/* Whether this process has any child at all, watched or not. This costs one system call. */
static bool process_watch_has_children(const struct process_watch *watch) {
    (void)watch;
    return peek_ended() != -1;
}

/* Family. */

/* How long the end of the spares may hold up the end of the family. */
#define SPARE_PATIENCE_MILLISECONDS 1000

/* More than an attempt and a local rank. */
#define REST_SIZE 32

/* The session of a worker or a spare. Its number stays its own as long as somebody is in it. */
struct session {
    pid_t leader;
    int local_rank; /* -1: a spare's */
    bool has_ended; /* the leader; others may live */
    bool is_open;   /* has_ended: there were others, and the guardian still looks after it */
    bool is_told;   /* its leader's process group has got the signal that is in force */
};

/* A process that was left behind by its parent, and has got the signal that is in force. */
struct remnant {
    pid_t pid;
    uint64_t start_time;
    int local_rank;
    bool is_told;
    bool ignores;  /* the signal, so that it does not end by it */
    bool catches;  /* the signal, so that it may end with any status */
    char *command; /* NULL: it is no child of ours, or nobody wants to know */
};

struct process_family {
    struct process_family_events events;
    uint64_t limit; /* see struct process_family_marks */
    struct text_list fingerprint;
    struct guardian *guardian;
    struct process_watch *watch;
    bool may_meet_strangers;
    struct process_ids strangers; /* children that are no worker's, as far as they are known */
    struct process_ids spares;    /* children that are watched, and no workers yet */
    struct session *sessions;
    size_t session_count;
    size_t session_capacity;
    struct remnant *remnants;
    size_t remnant_count;
    size_t remnant_capacity;
    bool is_gone;    /* the family is empty, and `gone` was called */
    int closing;     /* the signal that is in force; 0: none */
    bool is_killing; /* it is SIGKILL */
    struct event_loop *loop;
    struct event_timer *recount; /* set when a child of ours turns out to be none */
};

/* Spares and sessions. */

static bool is_spare(const struct process_family *family, pid_t pid) {
    return process_ids_have(&family->spares, pid);
}

static void forget_number(struct process_ids *ids, pid_t pid) {
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->items[i] == pid) {
            ids->count--;
            memmove(&ids->items[i], &ids->items[i + 1], (ids->count - i) * sizeof *ids->items);
            return;
        }
    }
}

static struct session *find_session(const struct process_family *family, pid_t leader) {
    for (size_t i = 0; i < family->session_count; i++) {
        if (family->sessions[i].leader == leader) {
            return &family->sessions[i];
        }
    }
    return NULL;
}

static void forget_session(struct process_family *family, pid_t leader) {
    struct session *session = find_session(family, leader);
    if (session != NULL) {
        *session = family->sessions[--family->session_count];
    }
}

static void add_session(struct process_family *family, pid_t leader, int local_rank) {
    forget_session(family, leader); /* an earlier one, which is over */
    family->sessions = memory_reserve(family->sessions, &family->session_capacity,
        family->session_count + 1, sizeof *family->sessions);
    family->sessions[family->session_count++] =
        (struct session){.leader = leader, .local_rank = local_rank};
}

static bool has_worker(const struct process_family *family, int local_rank) {
    for (size_t i = 0; i < family->session_count; i++) {
        const struct session *session = &family->sessions[i];
        if (session->local_rank == local_rank && !session->has_ended) {
            return true;
        }
    }
    return false;
}

/* What is left of them is told to the guardian; those of spares go on. */
static void end_sessions(struct process_family *family) {
    size_t kept = 0;
    for (size_t i = 0; i < family->session_count; i++) {
        const struct session *session = &family->sessions[i];
        if (!session->has_ended) {
            family->sessions[kept++] = *session;
        } else if (session->is_open) {
            guardian_end_session(family->guardian, session->leader);
        }
    }
    family->session_count = kept;
}

/* Whose child it is. */

/* The guardian is a child only where this process is the first one of a container. One that was
 * replaced is a stranger. */
static bool is_guardian(const struct process_family *family, pid_t pid) {
    return family->guardian != NULL && guardian_descriptor(family->guardian) != -1 &&
           guardian_pid(family->guardian) == pid;
}

/* Processes that do not belong to the family, as far as is known without a look at them. */
static bool is_outsider(const struct process_family *family, pid_t pid) {
    return process_ids_have(&family->strangers, pid) || is_spare(family, pid) ||
           is_guardian(family, pid);
}

/* The local rank at the beginning of a variable's rest: "3", "3/…" and "0/3/error.json", where the
 * attempt is before it. -1: it is something else. */
static int read_local_rank(const char *start, const char *rest) {
    bool is_behind_attempt = start[strlen(start) - 1] == '_';
    const char *number = is_behind_attempt ? strchr(rest, '/') : rest;
    char *end;
    if (number == NULL) {
        return -1;
    }
    number += is_behind_attempt;
    long rank = strtol(number, &end, 10);
    bool is_rank = end != number && (*end == '\0' || *end == '/') && rank >= 0 && rank < INT32_MAX;
    return is_rank ? (int)rank : -1;
}

/* The local rank that a process has inherited; -1: it has none, or does not show it. */
static bool has_variable(const struct process_family *family, pid_t pid, int *out_local_rank) {
    char rest[REST_SIZE];
    *out_local_rank = -1;
    for (size_t i = 0; i < family->fingerprint.count; i++) {
        const char *start = family->fingerprint.items[i];
        if (process_words_find(pid, start, rest, sizeof rest)) {
            *out_local_rank = read_local_rank(start, rest);
            return true;
        }
    }
    return false;
}

/* Whether a child that is no outsider descends from a worker. Where nothing tells, it does. */
static bool descends_from_worker(const struct process_family *family, pid_t child) {
    int local_rank;
    enum process_kin_answer answer = process_kin_has_limit(child, family->limit);
    bool is_of_session =
        answer == PROCESS_KIN_UNKNOWN && find_session(family, getsid(child)) != NULL;
    bool has_no_mark = family->limit == 0 && family->fingerprint.count == 0;
    return has_no_mark || answer == PROCESS_KIN_YES || is_of_session ||
           has_variable(family, child, &local_rank);
}

/* Whether a child belongs to the family. A child's number is not reused before it is reaped, so one
 * that is known for sure is looked at once. */
static bool is_ours(struct process_family *family, pid_t child) {
    if (is_outsider(family, child)) {
        return false;
    }
    if (!family->may_meet_strangers || process_watch_has(family->watch, child) ||
        descends_from_worker(family, child)) {
        return true;
    }
    if (process_kin_has_limit(child, family->limit) == PROCESS_KIN_NO) {
        process_ids_add(&family->strangers, child);
    }
    return false;
}

static void list_children(struct process_ids *out_children) {
    if (process_table_is_there()) {
        process_table_children(getpid(), out_children);
    } else {
        process_table_own_children(out_children);
    }
}

/* While there are outsiders, the kernel never reports "no child". Then the children must be listed.
 */
static bool has_children_of_ours(struct process_family *family) {
    if (!process_watch_has_children(family->watch)) {
        return false;
    }
    if (!family->may_meet_strangers && family->strangers.count == 0 && family->spares.count == 0) {
        return true;
    }
    struct process_ids children = {0};
    bool has_ours = false;
    list_children(&children);
    for (size_t i = 0; i < children.count; i++) {
        has_ours = is_ours(family, children.items[i]) || has_ours;
    }
    process_ids_clear(&children);
    return has_ours;
}

/* Remnants. */

static struct remnant *find_remnant(
    const struct process_family *family, pid_t pid, uint64_t start_time) {
    for (size_t i = 0; i < family->remnant_count; i++) {
        struct remnant *remnant = &family->remnants[i];
        if (remnant->pid == pid && remnant->start_time == start_time) {
            return remnant;
        }
    }
    return NULL;
}

static struct remnant *add_remnant(
    struct process_family *family, pid_t pid, uint64_t start_time, int local_rank) {
    family->remnants = memory_reserve(family->remnants, &family->remnant_capacity,
        family->remnant_count + 1, sizeof *family->remnants);
    struct remnant *remnant = &family->remnants[family->remnant_count++];
    *remnant = (struct remnant){.pid = pid, .start_time = start_time, .local_rank = local_rank};
    return remnant;
}

static void forget_remnants(struct process_family *family) {
    for (size_t i = 0; i < family->remnant_count; i++) {
        free(family->remnants[i].command);
    }
    family->remnant_count = 0;
}

/* Where there is no /proc, only the number is known, which no other child has meanwhile. */
static void read_child(pid_t child, struct kernel_process_stat *out_stat) {
    if (!process_table_read(child, out_stat)) {
        *out_stat = (struct kernel_process_stat){
            .pid = child, .state = 'S', .group = getpgid(child), .session = getsid(child)};
    }
}

/* The remnant that a child of ours is. One that its worker's process group got the signal with has
 * it already. */
static struct remnant *take_remnant(
    struct process_family *family, const struct kernel_process_stat *stat) {
    pid_t pid = (pid_t)stat->pid;
    struct remnant *remnant = find_remnant(family, pid, stat->start_time);
    if (remnant == NULL) {
        const struct session *session = find_session(family, (pid_t)stat->session);
        const struct session *group = find_session(family, (pid_t)stat->group);
        int local_rank = session != NULL ? session->local_rank : -1;
        if (session == NULL) {
            (void)has_variable(family, pid, &local_rank);
        }
        remnant = add_remnant(family, pid, stat->start_time, local_rank);
        remnant->is_told = group != NULL && group->is_told;
    }
    return remnant;
}

/* What is told of it when it has ended. */
static void note_signal(
    struct remnant *remnant, const struct kernel_process_stat *stat, int signal) {
    uint64_t bit = UINT64_C(1) << (signal - 1);
    remnant->is_told = true;
    remnant->ignores = (stat->ignored & bit) != 0;
    remnant->catches = (stat->caught & bit) != 0;
    if (remnant->command == NULL) {
        remnant->command = process_words_command(remnant->pid);
    }
}

/* Signals. */

/* What the children of an orphan have in common with it is its process group. Those who have left
 * that, too, get the signal when the orphan has ended, as the orphan did after its worker. */
static void signal_group_below(
    struct process_family *family, pid_t parent, int64_t group, int local_rank) {
    struct process_ids children = {0};
    process_table_children(parent, &children);
    for (size_t i = 0; i < children.count; i++) {
        struct kernel_process_stat stat;
        pid_t child = children.items[i];
        if (process_table_read(child, &stat) && stat.group == group && stat.parent == parent &&
            find_remnant(family, child, stat.start_time) == NULL) {
            add_remnant(family, child, stat.start_time, local_rank)->is_told = true;
            process_table_signal(&stat, family->closing);
            signal_group_below(family, child, group, local_rank);
        }
    }
    process_ids_clear(&children);
}

/* A child has not been waited for, so neither its number nor that of its group has been reused. */
static void signal_orphan(struct process_family *family, const struct kernel_process_stat *stat) {
    pid_t pid = (pid_t)stat->pid;
    int local_rank = take_remnant(family, stat)->local_rank;
    if (stat->group == pid) {
        add_session(family, pid, local_rank);
        struct session *session = find_session(family, pid);
        session->has_ended = true; /* no worker leads it */
        session->is_told = true;
        kill(-pid, family->closing);
    } else {
        kill(pid, family->closing);
        signal_group_below(family, pid, stat->group, local_rank);
    }
}

/* Passes the signal that is in force on to what workers have left behind that have ended. */
static void signal_orphans(struct process_family *family) {
    struct process_ids children = {0};
    list_children(&children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        struct kernel_process_stat stat;
        if (process_watch_has(family->watch, child) || !is_ours(family, child)) {
            continue;
        }
        read_child(child, &stat);
        if (stat.state == 'Z') {
            continue;
        }
        struct remnant *remnant = take_remnant(family, &stat);
        bool is_needed = remnant->local_rank == -1 ? process_family_worker_count(family) > 0
                                                   : has_worker(family, remnant->local_rank);
        if (!is_needed && !remnant->is_told) {
            note_signal(remnant, &stat, family->closing);
            signal_orphan(family, &stat);
        }
    }
    process_ids_clear(&children);
}

/* A walk over the descendants of this process, which are killed. */
struct descent {
    struct process_family *family;
    struct process_ids found; /* in the order of finding; each one's children are listed in turn */
};

/* Whether the process of `stat`, which was listed as a child of `parent`, is still that process.
 * The parent may have ended meanwhile, which made the process a child of ours. */
static bool is_descendant(const struct kernel_process_stat *stat, pid_t parent) {
    return stat->parent == parent || stat->parent == getpid();
}

static void kill_descendant(
    const struct descent *descent, const struct kernel_process_stat *stat, pid_t parent) {
    struct process_family *family = descent->family;
    bool is_worker = process_watch_has(family->watch, (pid_t)stat->pid);
    if (stat->state == 'Z') {
        return;
    }
    if (parent == getpid() && !is_worker) {
        note_signal(take_remnant(family, stat), stat, SIGKILL);
    }
    if (!process_watch_has(family->watch, (pid_t)stat->group)) { /* else it has it by its group */
        process_table_signal(stat, SIGKILL);
    }
}

static void kill_children(struct descent *descent, pid_t parent) {
    struct process_ids children = {0};
    process_table_children(parent, &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        struct kernel_process_stat stat;
        bool may_be_ours = parent == getpid() ? is_ours(descent->family, child)
                                              : !is_outsider(descent->family, child);
        if (!process_ids_have(&descent->found, child) && may_be_ours &&
            process_table_read(child, &stat) && is_descendant(&stat, parent)) {
            process_ids_add(&descent->found, child);
            kill_descendant(descent, &stat, parent);
        }
    }
    process_ids_clear(&children);
}

/* Where there is no /proc. The descendants of a child are found when it has ended, because they are
 * children of ours then. No child has been waited for, so no number has been reused. */
static void kill_own_children(struct process_family *family) {
    struct process_ids children = {0};
    process_table_own_children(&children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        if (is_ours(family, child) && !process_watch_has(family->watch, getpgid(child))) {
            kill(child, SIGKILL);
        }
    }
    process_ids_clear(&children);
}

/* Kills the descendants that are outside the workers' process groups. A process whose parent ends
 * meanwhile becomes a child of ours, so our own children are searched until no new process is
 * found. */
static void kill_outside_groups(struct process_family *family) {
    if (!process_table_is_there()) {
        kill_own_children(family);
        return;
    }
    struct descent descent = {.family = family};
    size_t next = 0;
    size_t found_before;
    do {
        found_before = descent.found.count;
        kill_children(&descent, getpid());
        while (next < descent.found.count) {
            kill_children(&descent, descent.found.items[next++]);
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

/* Nobody has got it yet, but for the groups of the workers that live. */
static void put_in_force(struct process_family *family, int signal) {
    family->closing = signal;
    family->is_killing = family->is_killing || signal == SIGKILL;
    for (size_t i = 0; i < family->remnant_count; i++) {
        family->remnants[i].is_told = false;
    }
    for (size_t i = 0; i < family->session_count; i++) {
        struct session *session = &family->sessions[i];
        session->is_told = !session->has_ended && !is_spare(family, session->leader);
    }
}

void process_family_signal(struct process_family *family, int signal) {
    if (family->is_gone) {
        return;
    }
    put_in_force(family, signal);
    signal_groups(family, signal);
    if (signal == SIGKILL) {
        kill_outside_groups(family);
    } else {
        signal_orphans(family);
    }
}

/* Ends. */

static void children_reaped(void *context) {
    struct process_family *family = context;
    if (family->is_gone) {
        return;
    }
    bool has_workers = process_family_worker_count(family) > 0;
    if (has_workers || has_children_of_ours(family)) {
        if (family->is_killing && !has_workers) {
            kill_outside_groups(family);
        } else if (family->closing != 0 && !family->is_killing) {
            signal_orphans(family);
        }
        return;
    }
    family->is_gone = true;
    family->is_killing = false;
    family->closing = 0;
    end_sessions(family);
    forget_remnants(family);
    family->events.gone(family->events.context);
}

static void end_session(struct process_family *family, pid_t leader) {
    struct session *session = find_session(family, leader);
    session->has_ended = true;
    session->is_open = kill(-leader, 0) == 0 || errno != ESRCH;
    if (!session->is_open) {
        guardian_end_session(family->guardian, leader);
    }
}

static void worker_exited(void *context, pid_t pid, const struct process_exit *how) {
    struct process_family *family = context;
    end_session(family, pid);
    if (is_spare(family, pid)) {
        forget_number(&family->spares, pid);
        if (!find_session(family, pid)->is_open) {
            forget_session(family, pid);
        }
        family->events.spare_exited(family->events.context, pid, how);
        return;
    }
    family->events.exited(family->events.context, pid, how);
}

/* What ends by itself at that moment is no news, nor what ignores the signal. */
static bool is_ended_by_us(const struct process_family *family, const struct remnant *remnant,
    const struct process_exit *how) {
    bool is_by_signal = how->is_signal && (how->value == family->closing || how->value == SIGKILL);
    return remnant->command != NULL && (is_by_signal || (remnant->catches && !remnant->ignores));
}

static void orphan_exited(void *context, pid_t pid, const struct process_exit *how) {
    struct process_family *family = context;
    forget_number(&family->strangers, pid);
    for (size_t i = family->remnant_count; i > 0; i--) {
        struct remnant *remnant = &family->remnants[i - 1];
        if (remnant->pid != pid) {
            continue;
        }
        struct remnant ended = *remnant;
        *remnant = family->remnants[--family->remnant_count];
        if (is_ended_by_us(family, &ended, how) && family->events.orphan_ended != NULL) {
            const struct process_orphan orphan = {pid, ended.local_rank, ended.command};
            family->events.orphan_ended(family->events.context, &orphan);
        }
        free(ended.command);
    }
}

/* The family. */

enum failure_code process_family_new(struct event_loop *loop,
    const struct process_family_events *events, const struct process_family_marks *marks,
    struct guardian *guardian, struct process_family **out_family, struct failure *failure) {
    struct process_family *family = memory_allocate(sizeof *family);
    family->events = *events;
    family->limit = marks->limit;
    if (marks->fingerprint != NULL) {
        text_list_add_all(&family->fingerprint, marks->fingerprint);
    }
    family->guardian = guardian;
    family->is_gone = true;
    family->loop = loop;
    family->may_meet_strangers = process_kin_may_meet_strangers();
    const struct process_watch_events watch_events = {
        worker_exited, children_reaped, orphan_exited, family};
    enum failure_code code = process_watch_new(loop, &watch_events, &family->watch, failure);
    if (code != FAILURE_NONE) {
        text_list_clear(&family->fingerprint);
        free(family);
        return code;
    }
    family->recount = event_timer_new(loop, children_reaped, family);
    list_children(&family->strangers);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* cannot fail since Linux 3.4 */
    *out_family = family;
    return FAILURE_NONE;
}

void process_family_leave_out(struct process_family *family, pid_t pid) {
    if (!process_ids_have(&family->strangers, pid)) {
        process_ids_add(&family->strangers, pid);
    }
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
            forget_number(&family->spares, spare);
        }
    }
}

void process_family_free(struct process_family *family) {
    if (family != NULL) {
        end_spares(family);
        event_timer_free(family->recount);
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
        process_watch_free(family->watch);
        process_ids_clear(&family->strangers);
        process_ids_clear(&family->spares);
        forget_remnants(family);
        free(family->remnants);
        free(family->sessions);
        text_list_clear(&family->fingerprint);
        free(family);
    }
}

static void watch(struct process_family *family, const struct process *process, int local_rank) {
    add_session(family, process->pid, local_rank);
    guardian_note_session(family->guardian, process->pid);
    process_watch_add(family->watch, process);
}

void process_family_add(
    struct process_family *family, const struct process *process, int local_rank) {
    family->is_gone = false;
    watch(family, process, local_rank);
}

void process_family_add_spare(struct process_family *family, const struct process *process) {
    process_ids_add(&family->spares, process->pid);
    watch(family, process, -1);
}

/* The number of a child is its own until it is waited for. Until now it has passed for what a
 * worker has left behind. */
bool process_family_adopt_spare(struct process_family *family, pid_t pid) {
    siginfo_t state;
    if (pid <= 0 || process_watch_has(family->watch, pid) ||
        waitid(P_PID, (id_t)pid, &state, WEXITED | WNOHANG | WNOWAIT) != 0) {
        return false;
    }
    const struct process process = {pid, pidfd_open_process(pid)};
    forget_number(&family->strangers, pid);
    process_family_add_spare(family, &process);
    event_timer_set(family->recount, event_loop_now(family->loop));
    return true;
}

void process_family_give(struct process_family *family, pid_t spare, int local_rank) {
    struct session *session = find_session(family, spare);
    if (session != NULL) {
        session->local_rank = local_rank;
    }
    forget_number(&family->spares, spare);
    family->is_gone = false;
}

void process_family_take_back(struct process_family *family, pid_t spare) {
    if (process_watch_has(family->watch, spare)) { /* else it has ended */
        process_ids_add(&family->spares, spare);
        find_session(family, spare)->local_rank = -1;
        process_family_end_spare(family, spare);
    }
    family->is_gone = process_family_worker_count(family) == 0 && !has_children_of_ours(family);
    if (family->is_gone) {
        family->closing = 0;
        family->is_killing = false;
    }
}

void process_family_end_spare(struct process_family *family, pid_t spare) {
    if (is_spare(family, spare)) {
        kill(-spare, SIGKILL);
    }
}

void process_family_orphans(struct process_family *family, struct process_ids *out_orphans) {
    struct process_ids children = {0};
    process_table_children(getpid(), &children);
    for (size_t i = 0; i < children.count; i++) {
        pid_t child = children.items[i];
        if (!process_watch_has(family->watch, child) && is_ours(family, child)) {
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
