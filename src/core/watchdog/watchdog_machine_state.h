/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a watchdog machine, which its parts share. watchdog_machine takes events and
 * requests, watchdog_endings ends processes whose timers have expired, and watchdog_step has what
 * both need. Only these parts use it. */
#ifndef MUSTER_CORE_WATCHDOG_WATCHDOG_MACHINE_STATE_H
#define MUSTER_CORE_WATCHDOG_WATCHDOG_MACHINE_STATE_H

#include "base/log.h"
#include "core/watchdog/joint_ending.h"
#include "core/watchdog/known_processes.h"
#include "core/watchdog/watchdog_machine.h"

/* A process with an expired timer, which is to be ended. */
struct watchdog_ending {
    struct watchdog_ending *next;
    struct watchdog_expiry expiry;
    struct wall_time since;  /* when it should have been ended */
    struct instant retry_at; /* set when it could not be signalled */
    bool is_tried;
    bool is_due;     /* it is ended in the pass that is under way */
    bool is_dropped; /* the agent stops the worker group, and so ends this process */
};

/* The task to which an answer belongs. */
enum watchdog_task {
    WATCHDOG_TASK_NONE,
    WATCHDOG_TASK_ADMIT,  /* looks up the process of a request */
    WATCHDOG_TASK_EXPIRE, /* handles processes with expired timers, one after the other */
    /* Ends processes that were looked at, or are tried again, one after the other. */
    WATCHDOG_TASK_END,
};

/* The search for the owner of a process among its ancestors. */
struct watchdog_search {
    int64_t pid;
    bool is_asking;
    bool is_there;
    uint64_t start_time;
    int ancestors;
    int owner;
};

/* A process that must not be signalled, and whose timer expires once more. Of several such
 * processes only one is remembered, since one is enough to say that something is overdue. */
struct watchdog_refusal {
    int64_t pid; /* 0: none */
    struct wall_time since;
};

/* All processes with expired timers. */
struct watchdog_endings {
    struct wall_time expiring;       /* WATCHDOG_TASK_EXPIRE: handles timers that expire by then */
    struct watchdog_ending *list;    /* processes that are looked at, or are tried again */
    struct watchdog_ending *current; /* of the tasks EXPIRE and END */
    struct watchdog_ending *told;    /* the effects of the last step point into it */
    struct watchdog_refusal refusal;
    struct joint_ending joint;
    struct instant joint_due;
    bool is_joint; /* WATCHDOG_TASK_END ends all processes that were looked at */
    bool is_agent_to_end;
};

struct watchdog_machine {
    struct watchdog_settings settings;
    struct watchdog *timers;
    bool is_serving;
    uint64_t request_count;
    struct log_throttle throttle;
    struct known_processes known;
    const struct watchdog_request *request; /* of WATCHDOG_TASK_ADMIT; borrowed */
    enum watchdog_task task;
    struct watchdog_search search;
    bool is_armed;
    struct wall_time deadline; /* the armed deadline */
    struct watchdog_endings endings;
};

#endif
