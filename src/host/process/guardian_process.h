/* SPDX-License-Identifier: BSD-3-Clause */
/* The main function of the guardian process, and the messages it receives. guardian.c starts the
 * process; the two are connected only by a socket. */
#ifndef MUSTER_HOST_PROCESS_GUARDIAN_PROCESS_H
#define MUSTER_HOST_PROCESS_GUARDIAN_PROCESS_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "host/process/guardian_remains.h"
#include "host/process/guardian_sweep.h"

#define GUARDIAN_NAME "muster-guardian" /* the longest name that fits into the process table */

enum guardian_notice_kind {
    GUARDIAN_SESSION_BEGINS,
    GUARDIAN_SESSION_ENDS,
    GUARDIAN_REMAINS,    /* a path follows, without a NUL */
    GUARDIAN_PATIENCE,   /* how long the agent may be silent from now on */
    GUARDIAN_CONNECTION, /* a descriptor comes with it; none: see guardian_hold_connection */
    GUARDIAN_HEARD,      /* the agent has read a word */
    GUARDIAN_FAREWELL,
};

/* One message. */
struct guardian_notice {
    enum guardian_notice_kind kind;
    int32_t leader;      /* pid of the session's leader, which is also the session's number */
    uint64_t start_time; /* SESSION_BEGINS: start time of the leader, 0 when unknown */
    enum guardian_remains_kind remains; /* REMAINS */
    struct duration patience;           /* PATIENCE: see guardian_speak */
};

/* What the guardian says, when it ends the workers of an agent that lives, but is silent. It says
 * so before, so that the agent knows it when it sees their ends. */
struct guardian_word {
    struct duration silence;
};

/* The most bytes of a path that follows a notice. */
#define GUARDIAN_PATH_MAXIMUM PATH_MAX

/* In memory that the agent and its guardian share, so that a sign of life wakes nobody: the agent's
 * last one, in nanoseconds of the monotonic clock. */
struct guardian_sign {
    _Atomic int64_t given;
};

/* What is ended and removed when the agent is gone. A guardian that takes another one's place
 * begins with all of it. A zeroed struct is valid and empty. */
struct guardian_charge {
    struct guardian_sessions sessions;
    struct guardian_remains remains;
    struct text_list fingerprint; /* see guardian_start */
    bool may_fence;               /* the same; else the guardian has no standard error */
    int32_t agent;
    const struct guardian_sign *sign;
};

/* Runs in a process of its own and never returns. It reads notices from `notices_fd` until the
 * farewell or the end of the socket. It writes its pid (an int32_t) to `ready_fd` when it no longer
 * depends on anything of the agent's. `charge` is where it begins; it is the process's own. */
_Noreturn void guardian_process_run(int notices_fd, int ready_fd, struct guardian_charge *charge);

#endif
