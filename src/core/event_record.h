/* SPDX-License-Identifier: BSD-3-Clause */
/* What a launcher records of a job for other programs to read: one event as a value, and which
 * events a step in the life of an agent causes. Spelled by wire/event_json, written by whoever was
 * asked to (--event-log-handler). Compare torch/distributed/elastic/events/api.py Event, and
 * SimpleElasticAgent._construct_event, record_duration and _record_worker_events in
 * torch/distributed/elastic/agent/server/api.py. */
#ifndef MUSTER_CORE_EVENT_RECORD_H
#define MUSTER_CORE_EVENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/agent_machine.h"

enum event_state {
    EVENT_STATE_RENDEZVOUS,          /* AGENT: joined, or not; with its duration */
    EVENT_STATE_ASSIGN_WORKER_RANKS, /* AGENT: the workers of a round have their ranks */
    EVENT_STATE_START,               /* WORKER */
    EVENT_STATE_RUNNING,             /* AGENT: what the watchdog records */
    EVENT_STATE_SUCCEEDED,           /* AGENT: it has run the job to its end, whatever that was */
    EVENT_STATE_FAILED,              /* AGENT: it could not */
    EVENT_STATE_TERMINATED,          /* WORKER: did not fail, but its group did */
};

/* What the watchdog records of itself. */
enum event_watchdog {
    EVENT_WATCHDOG_NONE,
    EVENT_WATCHDOG_STARTED,
    EVENT_WATCHDOG_STOPPED,
    EVENT_WATCHDOG_TIMER_EXPIRED,
    EVENT_WATCHDOG_KILL,
};

/* The agent at the time of a record. Strings are borrowed, and never NULL. */
struct event_agent {
    const char *run_id;
    const char *role;
    const char *host_name; /* qualified */
    const char *rdzv_backend;
    const char *entry_point;
    bool has_group; /* a rendezvous has been joined: … */
    int group_rank;
    int group_world_size;
    int64_t total_run_seconds; /* 0 until the end */
    int restarts;
};

/* The worker that a record of source WORKER is about. */
struct event_worker {
    int global_rank;
    int local_rank;
    int role_rank;
    int role_world_size;
    int64_t pid;    /* 0: it was never started */
    bool is_failed; /* the record names pid and, unless it never ran, exit code: … */
    bool has_exit_code;
    int exit_code; /* as Python counts: a signal is negative */
};

/* The timer that a record of the watchdog is about. */
struct event_timer_record {
    int64_t pid;
    const char *scope;
    struct wall_time expiration;
    int signal;
};

struct event_record {
    struct wall_time time;
    enum event_state state;
    struct event_agent agent;
    const struct event_worker *worker; /* or NULL: about the agent */
    const char *raw_error;             /* or NULL */
    bool has_duration;
    struct duration duration;
    enum event_watchdog watchdog;
    const struct event_timer_record *timer; /* with TIMER_EXPIRED and KILL */
};

/* What a rendezvous records of itself, as RdzvEvent in torch/distributed/elastic/events/api.py;
 * which records there are is told by core/rendezvous_diary. Strings are borrowed, and never NULL.
 */
enum event_node_state {
    EVENT_NODE_INIT,
    EVENT_NODE_RUNNING,
    EVENT_NODE_SUCCEEDED,
    EVENT_NODE_FAILED,
};

struct event_rendezvous {
    const char *run_id;
    const char *name; /* "dynamic_rendezvous.py:DynamicRendezvousHandler._close": where PyTorch does
                         the same */
    const char *message;
    const char *trouble; /* why, of a failure; else "" */
    const char *host_name;
    int64_t pid; /* of the agent */
    enum event_node_state state;
    bool has_rank;
    int rank; /* of the node */
    bool has_local_id;
    int64_t local_id; /* of the node */
};

/* What one step of the agent gives to record, in this order. */
struct event_plan {
    bool has_begun_rendezvous;
    bool has_left_rendezvous; /* a RENDEZVOUS, whatever came of it */
    bool has_joined;          /* then an ASSIGN_WORKER_RANKS, with the new place */
    bool has_started;         /* a START for every worker */
};

/* `before` is the phase before `machine` took the event. */
struct event_plan event_plan_step(enum agent_phase before, const struct agent_machine *machine);

/* Whether an agent that ended so has records of its workers' ends: not when it was signalled or cut
 * off, and not of workers that were never started. */
bool event_plan_has_worker_ends(
    const struct agent_outcome *outcome, const struct worker_group *workers);
/* SUCCEEDED, FAILED, or TERMINATED for a worker that died of the signal that stopped its group.
 * torchrun says FAILED of that, and TERMINATED of one that had succeeded before its group failed.
 */
enum event_state event_plan_worker_end(const struct worker_group *workers, int local_rank);
/* SUCCEEDED also when workers failed; FAILED when the agent was signalled, cut off by other nodes,
 * or could not start a worker. */
enum event_state event_plan_agent_end(
    const struct agent_outcome *outcome, const struct worker_group *workers);

/* The failure of a worker; NULL when it did not fail of itself. */
const struct worker_failure *event_plan_failure(const struct worker_group *workers, int local_rank);

/* "SUCCEEDED"; "timer expired". */
const char *event_state_name(enum event_state state);
const char *event_watchdog_name(enum event_watchdog watchdog);
const char *event_node_state_name(enum event_node_state state);

#endif
