/* SPDX-License-Identifier: BSD-3-Clause */
/* The countdown timers of this node's workers. With a timer a worker asks to be ended if it has not
 * finished something by a point of wall-clock time. This is the registry of the timers, and its
 * rules: which process holds which timers, which timers have expired, and by which signal their
 * process is to be ended. It reads no FIFO and no clock, and signals no process. Compare
 * FileTimerServer in torch/distributed/elastic/timer/file_based_local_timer.py, with these
 * differences: only processes of the job may hold timers, their number has a ceiling, and an
 * expired timer that asks for no signal takes no other timer of its process with it. */
#ifndef MUSTER_CORE_WATCHDOG_WATCHDOG_H
#define MUSTER_CORE_WATCHDOG_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"

/* The limits of the registry. */
struct watchdog_limits {
    size_t timers;
    size_t timers_per_process;
    size_t scope_bytes; /* of all scopes together */
};
#define WATCHDOG_LIMITS_DEFAULT                                                                    \
    ((struct watchdog_limits){.timers = (size_t)1 << 21,                                           \
        .timers_per_process = (size_t)1 << 20,                                                     \
        .scope_bytes = (size_t)1 << 28})

enum watchdog_request_kind {
    WATCHDOG_ACQUIRE,
    WATCHDOG_RELEASE,
};

/* A request of a client. A process has one timer per scope. */
struct watchdog_request {
    enum watchdog_request_kind kind;
    int64_t pid;
    char *scope;
    struct wall_time expiration; /* ACQUIRE: the timer expires at this time */
    int signal;                  /* ACQUIRE: 0 or less: no process is signalled */
};

void watchdog_request_clear(struct watchdog_request *request);

/* What the host knows of the process in a request. */
struct watchdog_process {
    bool is_ours;        /* it belongs to a running worker */
    uint64_t start_time; /* together with the pid it identifies the process */
};

struct watchdog;

struct watchdog *watchdog_new(const struct watchdog_limits *limits);
/* Accepts NULL. */
void watchdog_free(struct watchdog *watchdog);

/* Carries out a request. An ACQUIRE replaces the timer of the same process and scope, and drops all
 * timers of an earlier process with the same pid. A RELEASE of an unknown timer does nothing.
 * FAILURE_INVALID for an ACQUIRE of a process that is not ours. FAILURE_LIMIT when the process, or
 * all processes together, would have too many timers. After a failure nothing has changed. */
__attribute__((warn_unused_result)) enum failure_code watchdog_take(struct watchdog *watchdog,
    const struct watchdog_request *request, const struct watchdog_process *process);

/* Drops all timers of a process, because it has exited. */
void watchdog_forget(struct watchdog *watchdog, int64_t pid);
/* Drops all timers. */
void watchdog_forget_all(struct watchdog *watchdog);

size_t watchdog_timer_count(const struct watchdog *watchdog);

/* Finds the start time of the process that holds timers under this pid. Returns false when there is
 * no such process. */
bool watchdog_find(const struct watchdog *watchdog, int64_t pid, uint64_t *out_start_time);

/* Calls `visit` for each timer. The timers of one process come together; otherwise the order is
 * undefined. The watchdog must not change meanwhile. */
void watchdog_each(const struct watchdog *watchdog,
    void (*visit)(void *context, const struct watchdog_request *timer), void *context);

/* Finds when the next timer expires. Returns false when there is none. */
bool watchdog_next_deadline(const struct watchdog *watchdog, struct wall_time *out_deadline);

/* One process with expired timers. */
struct watchdog_expiry {
    int64_t pid;
    uint64_t start_time;
    int signal;              /* the signal that ends it; 0: no expired timer asks for one */
    struct text_list scopes; /* in the order of expiry; with a signal, the last one asks for it */
    struct wall_time *expirations; /* of the scopes */
    size_t expiration_capacity;
};

void watchdog_expiry_clear(struct watchdog_expiry *expiry);

/* Takes the next process with expired timers. When a timer asks for a signal, all timers of the
 * process are removed from the registry, else only the expired ones. Returns false when no timer
 * has expired. The caller clears the expiry. */
bool watchdog_take_expired(
    struct watchdog *watchdog, struct wall_time now, struct watchdog_expiry *out_expiry);

/* The process could not be signalled: the timer that asked for the signal expires once more at
 * `when`, unless the process has acquired timers meanwhile. */
void watchdog_retry(
    struct watchdog *watchdog, const struct watchdog_expiry *expiry, struct wall_time when);

#endif
