/* SPDX-License-Identifier: BSD-3-Clause */
/* The event records of a job, which a launcher writes for other programs: one event as a value, and
 * which events a step of the agent causes. wire/telling/event_json spells them, and the handler of
 * --event-log-handler writes them. Compare torch/distributed/elastic/events/api.py Event, and
 * SimpleElasticAgent._construct_event, record_duration and _record_worker_events in
 * torch/distributed/elastic/agent/server/api.py. */
#ifndef MUSTER_CORE_TELLING_EVENT_RECORD_H
#define MUSTER_CORE_TELLING_EVENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "core/agent/agent_machine.h"
#include "core/failure/failure_report.h"

/* How the job has ended on this node, for the program that has started the agent: RunResult in
 * torch/distributed/elastic/agent/server/api.py. wire/telling/agent_line spells it. */

/* Of what the function of a worker gives back. */
#define RUN_RETURN_VALUE_MAXIMUM ((size_t)512 * 1024)

/* The states of a worker group (WorkerState) in which an agent can end. */
enum run_state {
    RUN_STATE_UNKNOWN,   /* nothing is known of how it ended */
    RUN_STATE_STOPPED,   /* by a signal, by other nodes, or before there were workers */
    RUN_STATE_SUCCEEDED, /* all workers of this node have exited with 0, or none was needed */
    RUN_STATE_FAILED,    /* a worker of this node has failed */
    RUN_STATE_COUNT,
};

/* A worker that has ended by itself. */
struct run_worker {
    int global_rank;
    int local_rank;
    int64_t pid;
    int exit_code;             /* as in Python: a signal is a negative number */
    struct bytes return_value; /* of its function; empty: none */
};

/* Owns everything; a zeroed struct is valid. */
struct run_result {
    enum run_state state;
    int exit_status; /* that of the command */
    int signal;      /* that has ended the agent; 0: none */
    int restarts;    /* that the job has used */
    char *message;   /* why the agent itself could not go on, or NULL */
    struct run_worker *workers;
    size_t worker_count;
    struct failure_account *failures; /* of this node, but for workers that the agent has ended */
    size_t failure_count;
    bool has_root_cause;
    struct failure_account root_cause; /* of the job; perhaps on another node */
};

/* The worker group of this node (WorkerGroup) between its rendezvous and its end. It owns what it
 * has. */
enum run_group_state {
    RUN_GROUP_STATE_UNKNOWN,
    RUN_GROUP_STATE_STOPPED,
    RUN_GROUP_STATE_SUCCEEDED,
    RUN_GROUP_STATE_FAILED,
    RUN_GROUP_STATE_INIT,    /* it has its ranks, and its workers are about to be started */
    RUN_GROUP_STATE_HEALTHY, /* they run */
    RUN_GROUP_STATE_COUNT,
};

struct run_group {
    enum run_group_state state;
    int group_rank;
    int group_world_size;
    int base_rank; /* the global rank of the first worker; the others follow */
    int world_size;
    int role_base_rank;
    int role_world_size;
    int restarts; /* that the job has used */
    char *run_id;
    char *role;
    char *master_host;
    int master_port;
    int64_t *pids; /* by local rank; 0: it was not started */
    size_t worker_count;
};

void run_group_copy(const struct run_group *group, struct run_group *out_copy);
void run_group_clear(struct run_group *group);

/* NULL for what is no state. */
const char *run_state_name(enum run_state state);
/* RUN_STATE_COUNT for an unknown name. */
enum run_state run_state_from_name(const char *name);

void run_result_clear(struct run_result *result);

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
