/* SPDX-License-Identifier: BSD-3-Clause */
/* The event records of a job, which a launcher writes for other programs: one event as a value, and
 * which events a step of the agent causes. wire/event_json spells them, and the handler of
 * --event-log-handler writes them. Compare torch/distributed/elastic/events/api.py Event, and
 * SimpleElasticAgent._construct_event, record_duration and _record_worker_events in
 * torch/distributed/elastic/agent/server/api.py. */
#ifndef MUSTER_CORE_TELLING_EVENT_RECORD_H
#define MUSTER_CORE_TELLING_EVENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/agent/agent_machine.h"

enum event_state {
    EVENT_STATE_RENDEZVOUS, /* AGENT: a join has ended, with or without success; has a duration */
    EVENT_STATE_ASSIGN_WORKER_RANKS, /* AGENT: the workers of a round have their ranks */
    EVENT_STATE_START,               /* WORKER */
    EVENT_STATE_RUNNING,             /* AGENT: a record of the watchdog */
    EVENT_STATE_SUCCEEDED,  /* AGENT: it ran the job to its end, also when workers failed */
    EVENT_STATE_FAILED,     /* AGENT: it could not run the job to its end */
    EVENT_STATE_TERMINATED, /* WORKER: it did not fail, but its worker group did */
};

/* What a record of the watchdog tells. */
enum event_watchdog {
    EVENT_WATCHDOG_NONE,
    EVENT_WATCHDOG_STARTED,
    EVENT_WATCHDOG_STOPPED,
    EVENT_WATCHDOG_TIMER_EXPIRED,
    EVENT_WATCHDOG_KILL,
};

/* What a record of the standby workers tells. */
enum event_standby {
    EVENT_STANDBY_NONE,
    EVENT_STANDBY_READY, /* all that are wanted wait */
    EVENT_STANDBY_USED,  /* workers have been started from standby */
    EVENT_STANDBY_DIRTY, /* there are none any more */
};

/* How many standby workers a record is about, and of how many. */
struct event_standby_record {
    enum event_standby what;
    int count;
    int total;
    const char *reason; /* DIRTY: "dirty", "late", "ended" or "deaths"; else NULL */
};

/* The agent at the time of a record. Strings are borrowed and never NULL. */
struct event_agent {
    const char *run_id;
    const char *role;
    const char *host_name; /* qualified */
    const char *rdzv_backend;
    const char *entry_point;
    bool has_group; /* a rendezvous was joined, and the next two members are set */
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
    int64_t pid;    /* 0: it was not started */
    bool is_failed; /* the record has the pid, and the exit code if there is one */
    bool has_exit_code;
    int exit_code; /* as in Python: a signal is a negative number */
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
    const struct event_worker *worker; /* NULL: the record is about the agent */
    const char *raw_error;             /* or NULL */
    bool has_duration;
    struct duration duration;
    enum event_watchdog watchdog;
    const struct event_timer_record *timer;     /* set with TIMER_EXPIRED and KILL */
    const struct event_standby_record *standby; /* NULL: the record is about something else */
};

/* A record of a rendezvous, as RdzvEvent in torch/distributed/elastic/events/api.py.
 * core/rendezvous/rendezvous_transcript decides which records there are. Strings are borrowed and
 * never NULL. */
enum event_node_state {
    EVENT_NODE_INIT,
    EVENT_NODE_RUNNING,
    EVENT_NODE_SUCCEEDED,
    EVENT_NODE_FAILED,
};

struct event_rendezvous {
    const char *run_id;
    /* The function of PyTorch that does the same:
     * "dynamic_rendezvous.py:DynamicRendezvousHandler._close". */
    const char *name;
    const char *message;
    const char *trouble; /* the reason of a failure; else "" */
    const char *host_name;
    int64_t pid; /* of the agent */
    enum event_node_state state;
    bool has_rank;
    int rank; /* of the node */
    bool has_local_id;
    int64_t local_id; /* of the node */
};

/* The records that one step of the agent causes, in this order. */
struct event_plan {
    bool has_begun_rendezvous;
    bool has_left_rendezvous; /* a RENDEZVOUS record, with or without success */
    bool has_joined;          /* an ASSIGN_WORKER_RANKS record with the new ranks */
    bool has_started;         /* a START record for every worker */
};

/* `before` is the phase in which `machine` was before it took the event. */
struct event_plan event_plan_step(enum agent_phase before, const struct agent_machine *machine);

/* Whether the record of a watchdog that stops now is held back: it then comes after the records of
 * the workers' ends, or before the next rendezvous if there is one. This is so after a success,
 * because torchrun's watchdog stops together with its agent then. */
bool event_plan_holds_watchdog_stop(const struct agent_machine *machine);

/* Whether an agent with this outcome records the ends of its workers. It does not when it was ended
 * by a signal, when other nodes ended the job, or when a worker could not be started. */
bool event_plan_has_worker_ends(
    const struct agent_outcome *outcome, const struct worker_group *workers);
/* SUCCEEDED, FAILED, or TERMINATED for a worker that died from the signal that stopped its worker
 * group. torchrun records FAILED in the last case, and TERMINATED for a worker that had succeeded
 * before its group failed. */
enum event_state event_plan_worker_end(const struct worker_group *workers, int local_rank);
/* SUCCEEDED also when workers failed. FAILED when the agent was ended by a signal or by other
 * nodes, or could not start a worker. */
enum event_state event_plan_agent_end(
    const struct agent_outcome *outcome, const struct worker_group *workers);

/* The failure of a worker; NULL when it did not fail by itself. */
const struct worker_failure *event_plan_failure(const struct worker_group *workers, int local_rank);

/* The names in the records, for example "SUCCEEDED" and "timer expired". */
const char *event_state_name(enum event_state state);
const char *event_watchdog_name(enum event_watchdog watchdog);
const char *event_standby_name(enum event_standby standby); /* "standby.ready" */
const char *event_node_state_name(enum event_node_state state);

#endif
