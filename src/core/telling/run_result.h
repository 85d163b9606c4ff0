/* SPDX-License-Identifier: BSD-3-Clause */
/* How the job has ended on this node, for the program that has started the agent: RunResult in
 * torch/distributed/elastic/agent/server/api.py. wire/telling/run_result_json spells it. */
#ifndef MUSTER_CORE_TELLING_RUN_RESULT_H
#define MUSTER_CORE_TELLING_RUN_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/failure/failure_report.h"

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

#endif
