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

size_t watchdog_timer_count(const struct watchdog *watchdog);

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

/* The watchdog as a machine. It decides which processes may hold timers, what happens to a process
 * whose timer expires, which processes are looked at before one is ended, and when a signal is
 * tried again. It reads no FIFO, and looks at and signals no process. The watchdog above is its
 * registry of timers. Compare FileTimerServer in
 * torch/distributed/elastic/timer/file_based_local_timer.py.
 *
 * The contract with the performer:
 * - The performer answers LOOK_UP by SEEN, WATCH by WATCHED, and SIGNAL by SIGNALLED. Before the
 *   answer only BEGIN, END, FORGET and LOOKED_AT may come. Such a question is the last effect of
 *   its step.
 * - What a REQUEST borrows stays valid until the questions that follow it are answered.
 * - The machine has one timer on the monotonic clock, and one deadline on the wall clock. ARM_TIMER
 *   and ARM_DEADLINE replace them. Before DEADLINE_PASSED the performer hands in all requests that
 *   clients have written until then, so that a release that was written in time counts.
 * - The performer answers each LOOK by one LOOKED_AT within the time that it names, unless a BEGIN
 *   comes before. */

/* A process that has asked for a timer is trusted for so long. */
#define KNOWN_PROCESSES_TRUST_MILLISECONDS 10
/* When the pids of two processes are the same in this ring, the second one replaces the first,
 * which is then looked up again. */
#define KNOWN_PROCESSES_PLACES 256

/* The largest number of generations between a worker and a descendant that may hold timers. */
#define WATCHDOG_MAXIMUM_ANCESTORS 64

enum watchdog_event_kind {
    /* asked by the user */
    WATCHDOG_EVENT_BEGIN,  /* from now on requests are served */
    WATCHDOG_EVENT_END,    /* all timers are dropped, and requests are no longer served */
    WATCHDOG_EVENT_FORGET, /* a process has ended and was reaped */
    /* from clients */
    WATCHDOG_EVENT_REQUEST,
    WATCHDOG_EVENT_BAD_LINE, /* a line that is no request */
    /* answers */
    WATCHDOG_EVENT_SEEN,      /* LOOK_UP */
    WATCHDOG_EVENT_WATCHED,   /* WATCH */
    WATCHDOG_EVENT_SIGNALLED, /* SIGNAL */
    WATCHDOG_EVENT_LOOKED_AT, /* LOOK */
    /* from the machine on which it runs */
    WATCHDOG_EVENT_PROCESS_ENDED, /* a process that was watched */
    WATCHDOG_EVENT_DEADLINE_PASSED,
    WATCHDOG_EVENT_TIMER_FIRED,
};

enum watchdog_signal_result {
    WATCHDOG_SIGNAL_SENT,
    WATCHDOG_SIGNAL_REFUSED, /* the process runs, but must not be signalled */
    WATCHDOG_SIGNAL_NOBODY,  /* it has ended meanwhile */
};

/* A process as LOOK_UP has found it. */
struct watchdog_sight {
    bool is_there;
    uint64_t start_time;
    int64_t parent;
    /* The local rank of the worker to which the process itself belongs (not counting its
     * ancestors), or 0 where there are no workers; -1: no worker. */
    int owner;
};

struct watchdog_event {
    enum watchdog_event_kind kind;
    struct instant now;
    struct wall_time wall_now;
    union {
        int64_t pid;                            /* FORGET, PROCESS_ENDED */
        const struct watchdog_request *request; /* borrowed */
        const char *reason;                     /* BAD_LINE; borrowed */
        struct watchdog_sight seen;
        bool is_there; /* WATCHED: the process runs, even if there was no room to watch it */
        enum watchdog_signal_result result; /* SIGNALLED */
    };
};

enum watchdog_effect_kind {
    /* questions */
    WATCHDOG_EFFECT_LOOK_UP,
    WATCHDOG_EFFECT_WATCH, /* for its end */
    WATCHDOG_EFFECT_SIGNAL,
    /* orders */
    WATCHDOG_EFFECT_UNWATCH,
    WATCHDOG_EFFECT_UNWATCH_ALL,
    WATCHDOG_EFFECT_DROP_INPUT, /* requests that were written but not read yet */
    WATCHDOG_EFFECT_ARM_DEADLINE,
    WATCHDOG_EFFECT_DISARM_DEADLINE,
    WATCHDOG_EFFECT_ARM_TIMER,
    WATCHDOG_EFFECT_DISARM_TIMER,
    /* to be logged */
    WATCHDOG_EFFECT_TELL_BAD_LINE,
    WATCHDOG_EFFECT_TELL_REFUSED,  /* a process gets no timer */
    WATCHDOG_EFFECT_TELL_TOO_LATE, /* a process that asked for a timer has ended */
    WATCHDOG_EFFECT_TELL_ENDED,    /* a process that holds timers has ended */
    WATCHDOG_EFFECT_TELL_GONE,     /* a process with expired timers has ended */
    WATCHDOG_EFFECT_TELL_LIVES_ON, /* the expired timers of a process ask for no signal */
    /* A process must not be signalled; the signal is tried again. */
    WATCHDOG_EFFECT_TELL_UNTOUCHED,
    /* for the user of the machine */
    WATCHDOG_EFFECT_NOTIFY,
};

enum watchdog_notice_kind {
    WATCHDOG_NOTICE_STARTED,
    WATCHDOG_NOTICE_STOPPED,
    WATCHDOG_NOTICE_EXPIRED,     /* timers expired, and no process is signalled */
    WATCHDOG_NOTICE_SIGNALLED,   /* timers expired, and the process got its signal */
    WATCHDOG_NOTICE_LOOKS_BEGUN, /* looks begin; comes before the first LOOK */
    WATCHDOG_NOTICE_LOOK,        /* look at a process that is to be ended */
    /* The looks are over, and their processes were ended, or could not be. */
    WATCHDOG_NOTICE_LOOKS_OVER,
    WATCHDOG_NOTICE_AGENT_TO_END, /* a process was signalled, and the agent is to end too */
};

struct watchdog_notice {
    enum watchdog_notice_kind kind;
    const struct watchdog_expiry *expiry; /* EXPIRED, SIGNALLED, LOOK */
    int owner;                            /* SIGNALLED, LOOK */
    struct duration bound;                /* LOOK: how long it may take */
};

/* Pointers belong to the machine or the event, and are valid until the next step. */
struct watchdog_effect {
    enum watchdog_effect_kind kind;
    union {
        struct {
            int64_t pid;
            /* The process asks for a timer; else it or its child has an expired timer. */
            bool is_asking;
        } look_up;
        int64_t pid; /* WATCH, UNWATCH, TELL_TOO_LATE, TELL_ENDED */
        struct {
            int64_t pid;
            uint64_t start_time;
            int signal;
        } signal;
        struct wall_time deadline; /* ARM_DEADLINE */
        struct instant when;       /* ARM_TIMER */
        struct {
            const char *reason;                     /* TELL_BAD_LINE */
            const struct watchdog_request *request; /* TELL_REFUSED */
            bool is_limit; /* TELL_REFUSED: there are too many timers; else the process may hold
                              none */
            uint64_t held_back; /* how many complaints were dropped since the last one */
        } complaint;
        const struct watchdog_expiry *expiry; /* TELL_GONE, TELL_LIVES_ON, TELL_UNTOUCHED */
        struct watchdog_notice notice;
    };
};

#define WATCHDOG_EFFECTS_MAXIMUM 8

struct watchdog_effects {
    struct watchdog_effect items[WATCHDOG_EFFECTS_MAXIMUM];
    size_t count;
};

struct watchdog_settings {
    /* In how many ancestors an owner is looked for; 0: only in the process itself. */
    int maximum_ancestors;
    bool looks_first;           /* at a process that is to be ended */
    struct duration look_bound; /* for all processes that are ended together */
    bool ends_agent;            /* when a process was ended */
};

struct watchdog_machine;

/* The caller frees the machine with watchdog_machine_free, which accepts NULL. */
struct watchdog_machine *watchdog_machine_new(const struct watchdog_settings *settings);
void watchdog_machine_free(struct watchdog_machine *machine);

/* Takes one event. It empties `effects` first, and then fills it with what the performer is to do,
 * in order. */
void watchdog_machine_step(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *effects);

/* When the machine last had nothing overdue: now; or when the first unhandled timer was due; or
 * since when a process is being looked at or cannot be ended. */
struct wall_time watchdog_machine_last_progress(
    const struct watchdog_machine *machine, struct wall_time now);

/* The registry of timers. */
const struct watchdog *watchdog_machine_timers(const struct watchdog_machine *machine);

/* How many requests have come, with those that were refused. */
uint64_t watchdog_machine_request_count(const struct watchdog_machine *machine);

#endif
