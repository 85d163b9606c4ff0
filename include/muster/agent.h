/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers of one node of a job, started, watched and restarted: LocalElasticAgent, WorkerSpec
 * and RunResult of torch/distributed/elastic/agent/server/local_elastic_agent.py and api.py, and
 * ProcessFailure of multiprocessing/errors/__init__.py. It is what `muster run` does.
 *
 *     static const char *const args[] = {"-u", "train.py", 0};
 *     struct muster_agent_settings settings = MUSTER_AGENT_SETTINGS;
 *     settings.entrypoint = "python3";
 *     settings.args = args;
 *     settings.local_world_size = 8;
 *     struct muster_agent *agent;
 *     if (muster_agent_start(&settings, &agent, &failure) == MUSTER_OK) {
 *         … poll muster_agent_fd(agent) for reading; then:
 *         muster_agent_process(agent, NULL);
 *         … until muster_agent_result no longer says MUSTER_ERROR_STATE
 *     }
 *     muster_agent_free(agent);
 *
 * muster_agent_start RUNS THE AGENT AS A PROCESS: a copy of the program is forked, without exec. It
 * is no child of the program, but leads a session of its own. It has none of the program's
 * descriptors but the standard ones, and no signal handler. The program keeps its signals, its
 * SIGCHLD and its children: it only has SIGCHLD once when the agent is started, for a process
 * between that has been waited for by then. (A program that is process 1 or a subreaper has to wait
 * for the agent as for any orphan.) When the program ends or is killed, the agent ends its workers.
 *
 * muster_agent_run OWNS THE PROCESS that calls it, as the command does: it handles the signals of
 * --signals-to-handle and SIGCHLD, ignores SIGPIPE, waits for all children, becomes a subreaper,
 * raises the limit of open files and starts threads. Call it from a program that has one thread and
 * no children.
 *
 * AN AGENT WITHOUT MEMORY waits some seconds for more. Then it ends its workers and itself, as
 * after a failure that no restart follows; other nodes may go on without it. The result's message
 * says so, its exit_status is 1, and muster_agent_run returns MUSTER_ERROR_MEMORY. It keeps some
 * MiB of address space for that. Where they are not enough (as when a limit is set below what the
 * process has already), the agent's process writes one line to stderr and exits with 1, and its
 * guardian ends the workers; the state of the result is then MUSTER_WORKER_STATE_UNKNOWN. With
 * muster_agent_run that is the program's own process, and `ended` is not called.
 *
 * WHAT THE AGENT CALLS ITSELF (since 0.3): start_workers and the members after it, and the backend
 * of a rendezvous. They are called in the agent's process. With muster_agent_start that is a copy:
 * it has what the program had in memory then, and what is changed there the program does not see.
 * It has none of the program's descriptors but the standard ones and the backend's watch_fd; what
 * else is needed is opened there. The agent waits for each call, so it has to return soon.
 *
 * Callbacks come from inside muster_agent_process or muster_agent_run, in the order in which things
 * have happened. From inside one the agent may be stopped, killed and freed; it must not be
 * processed. Times are seconds since 1970. What muster/error.h says holds here. */
#ifndef MUSTER_AGENT_H
#define MUSTER_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>
#include <muster/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_agent;
struct muster_rendezvous;

/* WorkerState; the last two are of a worker group that goes on, since 0.3. */
enum muster_worker_state {
    MUSTER_WORKER_STATE_UNKNOWN = 0, /* the agent was killed, and nothing is known */
    MUSTER_WORKER_STATE_STOPPED = 1, /* by a signal, by other nodes, or before there were workers */
    MUSTER_WORKER_STATE_SUCCEEDED = 2,
    MUSTER_WORKER_STATE_FAILED = 3,
    MUSTER_WORKER_STATE_INIT = 4,   /* it has its ranks, and is about to be started */
    MUSTER_WORKER_STATE_HEALTHY = 5 /* it runs */
};

enum muster_agent_event_kind {
    MUSTER_AGENT_EVENT_AGENT = 1,     /* of the agent: RENDEZVOUS, ASSIGN_WORKER_RANKS, SUCCEEDED,
                                         FAILED */
    MUSTER_AGENT_EVENT_WORKER = 2,    /* of a worker: START, SUCCEEDED, FAILED, TERMINATED */
    MUSTER_AGENT_EVENT_WATCHDOG = 3,  /* "timer expired" */
    MUSTER_AGENT_EVENT_STANDBY = 4,   /* "standby.ready" */
    MUSTER_AGENT_EVENT_RENDEZVOUS = 5 /* of this node's part in the rendezvous (RdzvEvent) */
};

/* A record of --event-log-handler: Event in torch/distributed/elastic/events/api.py. Borrowed for
 * the callback; texts are UTF-8, and NULL where the record has none. Fields may be added at the
 * end. */
struct muster_agent_event {
    enum muster_agent_event_kind kind;
    const char *name;  /* "torchelastic.worker.status.START" */
    const char *state; /* "START"; of a rendezvous INIT, RUNNING, SUCCEEDED or FAILED */
    double timestamp;  /* 0: the record has none */
    const char *run_id;
    const char *role;
    const char *hostname;
    const char *raw_error; /* of a worker: the JSON of its error file; else why it went wrong */
    const char *message;   /* RENDEZVOUS */
    int group_rank;        /* of this node; -1: it has none yet, as with the ranks below */
    int group_world_size;
    int global_rank; /* WORKER */
    int local_rank;
    long pid;          /* of the worker; 0: none */
    int has_exit_code; /* of a worker that has failed: … */
    int exit_code;     /* as in Python: a signal is a negative number */
    int restarts;
    double duration_ms; /* -1: the record has none */
    const char *json;   /* the whole record, one line without its newline */
};

/* ProcessFailure. */
struct muster_process_failure {
    int global_rank;
    int local_rank;
    long pid;         /* 0: it could not be started */
    int exitcode;     /* as in Python; 1 where it could not be started or hangs in the kernel */
    double timestamp; /* of the error file, else when its end was seen */
    const char *hostname;
    const char *error_file; /* a path on its node, or NULL, as all that follows */
    const char *message;  /* the traceback or message from there, or why it could not be started */
    const char *evidence; /* what the kernel knows besides */
};

/* Since 0.3: RendezvousInfo, with what SimpleElasticAgent._assign_worker_ranks makes of it: where
 * this node's workers are in a round. Begin with MUSTER_AGENT_ROUND. */
struct muster_agent_round {
    size_t size;          /* of this struct */
    int group_rank;       /* of this node; 0 to … */
    int group_world_size; /* … this many nodes, which are 1 to 65536 */
    int global_rank;      /* of the worker of local rank 0; the others follow, and all are in … */
    int world_size;       /* … this many, at most 2^28 */
    int role_rank;        /* the same among the workers of this node's role */
    int role_world_size;
    const char *master_addr; /* where the workers' store is, at most 255 bytes */
    int master_port;         /* 1 to 65535 */
};
#define MUSTER_AGENT_ROUND                                                                         \
    { sizeof(struct muster_agent_round), 0, 1, 0, 1, 0, 1, 0, 0 }

#define MUSTER_RETURN_VALUE_MAXIMUM 524288

/* What the function of a worker gives back: up to MUSTER_RETURN_VALUE_MAXIMUM bytes, which mean
 * what the program wants. None is a length of 0. */
struct muster_return_value {
    const void *data;
    size_t length;
};

/* A worker that has ended by itself. */
struct muster_worker_exit {
    int global_rank;
    int local_rank;
    long pid;
    int exitcode;
    /* Its item of return_values: of a function whose exitcode is 0. A program has none. */
    struct muster_return_value return_value;
};

/* RunResult. It belongs to the agent, until that is freed. Fields may be added at the end. */
struct muster_run_result {
    enum muster_worker_state state;
    int exit_status;                          /* as that of the command */
    int signal;                               /* that has ended the agent; 0: none */
    int restarts;                             /* how many the job has used */
    const char *message;                      /* why the agent itself could not go on, or NULL */
    const struct muster_worker_exit *workers; /* of this node, in the order of global ranks */
    size_t worker_count;
    const struct muster_process_failure *failures; /* of this node, the same */
    size_t failure_count;
    const struct muster_process_failure *root_cause; /* of the job, maybe on another node; NULL:
                                                        none is known */
};

/* Worker. */
struct muster_worker {
    int local_rank;
    int global_rank;
    int role_rank;
    int world_size;
    int role_world_size;
    long pid; /* 0: it was not started */
};

/* WorkerGroup: the workers of this node since its last rendezvous. Fields may be added at the end.
 */
struct muster_worker_group {
    enum muster_worker_state state;
    int group_rank;
    int group_world_size;
    int restarts; /* how many the job has used */
    const char *run_id;
    const char *role;
    const char *master_addr; /* what workers are told */
    int master_port;
    const struct muster_worker *workers; /* by local rank */
    size_t worker_count;
};

/* LogsDest of one worker: paths of at most 4095 bytes, in directories that are there; NULL: below
 * log_dir. */
struct muster_worker_logs {
    const char *stdout_file; /* of a stream that redirects or tee send to a file */
    const char *stderr_file;
    const char *error_file;
};

/* WorkerSpec and LaunchConfig. Begin with MUSTER_AGENT_SETTINGS; NULL stands for the default. What
 * is given is copied, except for what callbacks and the function use. Texts are not empty, have at
 * most 65536 bytes, and are UTF-8 except for entrypoint and log_dir, which has at most 4095; lists
 * have at most 65536 items of 131071 bytes. */
struct muster_agent_settings {
    size_t size; /* of this struct */

    /* What to run: a program, found on PATH where it has no slash, … (Since 0.3: where there is
     * none, and no function, `options` are a whole command line of `muster run`, which ends with
     * the program. Then the numbers below do not count, and PET_… in `env` does.) */
    const char *entrypoint;
    const char *const *args; /* its arguments, up to a NULL; ${local_rank} is put in */
    /* … or a function: each worker is a process that is forked from the agent, and ends with the
     * status that the function returns (0 to 255). Its rank is in its environment (RANK, …), as a
     * program's is. In place of an entrypoint.
     * *out_value is empty; the function may set it to bytes that last as long as its process. They
     * are in the result when the job succeeds on this node, or ends by a failure of another of its
     * workers. A value that is too long, or for which there is no memory, is a failure of the
     * worker, which then ends with 1 and says why in its error file. */
    int (*function)(void *context, struct muster_return_value *out_value);
    void *function_context;
    const char *const *env; /* NAME=VALUE up to a NULL: what workers inherit; NULL: environ */

    const char *role;        /* default "default" */
    int local_world_size;    /* 1 to 4096; default 1 */
    int max_restarts;        /* 0 to 1000000000; default 3 */
    double monitor_interval; /* above 0; seconds between looks for workers that hang */

    /* The rendezvous. Without a backend and an endpoint the job has this node alone. */
    int min_nodes;             /* default 1 */
    int max_nodes;             /* min_nodes to 65536; default 1 */
    const char *rdzv_backend;  /* "c10d", "static", "dir", "etcd", "k8s" */
    const char *rdzv_endpoint; /* see muster(1) */
    const char *run_id;
    const char *rdzv_configs; /* "KEY=VALUE,KEY=VALUE" */

    /* The workers' output; see muster(1). */
    const char *log_dir;
    const char *redirects; /* "3", "0:1,1:2" */
    const char *tee;

    /* Further options of `muster run`, up to a NULL: "--node-rank=1", "--standby=off". Of an option
     * that is named above as well the last value holds, which is this one. */
    const char *const *options;

    /* Callbacks, each of which may be NULL. */
    void (*event)(void *context, const struct muster_agent_event *event);
    void (*metric)(void *context, const struct muster_metric *metric);
    void (*ended)(void *context, const struct muster_run_result *result); /* the last one */
    void *context;

    /* muster_agent_start: where the agent's and the workers' output goes that goes to no file.
     * Both stay the program's; -1: the program's own. */
    int stdout_fd;
    int stderr_fd;

    /* Since 0.3: WorkerSpec.master_addr and master_port. Workers are told these in MASTER_ADDR and
     * MASTER_PORT, whatever the rendezvous says; the program sees to it that a store is there.
     * NULL, at most 255 bytes; and 0. */
    const char *master_addr;
    int master_port;
    /* Since 0.3: what each worker gets for itself, by its local rank: `local_world_size` lists,
     * each up to a NULL. rank_env has NAME=VALUE, in place of what the worker would have under that
     * name; rank_args are the arguments of an entrypoint, in place of `args`. NULL in the place of
     * a list: as if there were none. */
    const char *const *const *rank_env;
    const char *const *const *rank_args;

    /* Since 0.3: WorkerSpec.rdzv_handler. The record of the job is kept by the backend of this
     * rendezvous, and run id, numbers of nodes, timeouts and local_addr are its; the members of
     * that name are not to be given. It was made with a backend of the program's own. It stays the
     * program's, and the agent calls nothing of it but the backend. An rdzv_backend of
     * muster_rendezvous_register does the same. */
    const struct muster_rendezvous *rendezvous;
    /* Since 0.3: where the nodes of such a rendezvous keep all else that they tell each other: the
     * store of DynamicRendezvousHandler.from_backend. HOST:PORT, where the node that it names
     * serves it; or the path of a file, which begins with '/'. At most 65536 bytes. Default
     * rdzv_endpoint; a job of one node needs none. */
    const char *rdzv_store;

    /* Since 0.3: what SimpleElasticAgent has to be overridden. Groups are borrowed for the call.
     * Before the workers of an attempt are started; and before this node joins a round again, when
     * those of the last one have ended. With an error this node ends as one that has failed, and
     * leaves the job; `failure` says why. */
    enum muster_error (*start_workers)(
        void *context, const struct muster_worker_group *group, struct muster_failure *failure);
    enum muster_error (*restart_workers)(
        void *context, const struct muster_worker_group *group, struct muster_failure *failure);
    /* Before the workers are stopped by that signal, unless all have succeeded. */
    void (*stop_workers)(void *context, const struct muster_worker_group *group, int signal);
    /* Every monitor_interval while they run. The local rank of a worker that is to be killed, which
     * then counts as failed, for what `failure` says; else -1. */
    int (*monitor_workers)(
        void *context, const struct muster_worker_group *group, struct muster_failure *failure);
    /* Once, when the workers have ended and the agent is about to; `signal` has ended it, or 0. */
    void (*shutdown)(void *context, const struct muster_worker_group *group, int signal);
    /* HealthCheckServer's: when the program made progress last, in seconds since 1970. Where
     * $TORCHELASTIC_HEALTH_CHECK_PORT is in `env`, /health is judged by that, too. */
    int64_t (*alive_callback)(void *context);
    /* LogsSpecs.reify: where the workers of an attempt write. Fills in an item for each local rank,
     * which is zero before; its texts are good until it is called again. An error is that of
     * start_workers, after which it is called. */
    enum muster_error (*reify_logs)(void *context, const struct muster_worker_group *group,
        struct muster_worker_logs *out_logs, struct muster_failure *failure);

    /* Since 0.3: WorkerSpec.rdzv_handler of any kind: the program has a rendezvous of its own, and
     * says where this node is. Of the members from min_nodes on to rdzv_configs run_id alone may be
     * given, and rdzv_backend, which is any name, for records. Both are called from
     * muster_agent_process, and not for muster_agent_run.
     * The node wants its next round, in which it has used so many restarts. The program calls
     * muster_agent_set_round when there is one, or muster_agent_end_round if there will be none. */
    void (*next_rendezvous)(void *context, int restarts);
    /* All workers of this node have succeeded, and it waits for muster_agent_end_round, when those
     * of the other nodes have. NULL: it does not wait. */
    void (*exit_barrier)(void *context);
};
#define MUSTER_AGENT_SETTINGS                                                                      \
    {                                                                                              \
        sizeof(struct muster_agent_settings), 0, 0, 0, 0, 0, 0, 1, 3, 0.1, 1, 1, 0, 0, 0, 0, 0, 0, \
            0, 0, 0, 0, 0, 0, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                  \
    }

/* Starts the agent as a process of its own. MUSTER_ERROR_INVALID with the words of the command for
 * settings that make no sense; MUSTER_ERROR_LIMIT; MUSTER_ERROR_SYSTEM. */
enum muster_error muster_agent_start(const struct muster_agent_settings *settings,
    struct muster_agent **out_agent, struct muster_failure *failure);

/* Runs the agent in this process until the job is over; see above. `ended` has the result. Returns
 * MUSTER_OK whenever the job was begun, however it ended, except for MUSTER_ERROR_MEMORY where it
 * ended for want of memory; *out_status, which may be NULL, is then the exit status of the command.
 * Else as muster_agent_start. */
enum muster_error muster_agent_run(
    const struct muster_agent_settings *settings, int *out_status, struct muster_failure *failure);

/* To be polled for reading. It stays readable when the agent has ended. -1 for NULL, and in a
 * child. */
int muster_agent_fd(const struct muster_agent *agent);

/* Takes what the agent has said, and does not wait. */
enum muster_error muster_agent_process(struct muster_agent *agent, struct muster_failure *failure);

/* The pid of the agent. MUSTER_ERROR_STATE when it has ended. */
enum muster_error muster_agent_pid(
    const struct muster_agent *agent, long *out_pid, struct muster_failure *failure);

/* Has the agent stop its workers and end, as this signal does with the command; 0: SIGTERM. A
 * second one kills the workers. The result follows. MUSTER_ERROR_STATE when the agent has ended. */
enum muster_error muster_agent_stop(
    struct muster_agent *agent, int signal, struct muster_failure *failure);

/* Kills the agent and, through its guardian, its workers. The result, which knows nothing, follows.
 * MUSTER_ERROR_STATE when it has ended. */
enum muster_error muster_agent_kill(struct muster_agent *agent, struct muster_failure *failure);

/* Since 0.3: get_worker_group. A copy of what the agent has told last of its workers, which is good
 * until the next call, and as long as the agent. MUSTER_ERROR_STATE before its first rendezvous. */
enum muster_error muster_agent_worker_group(struct muster_agent *agent,
    const struct muster_worker_group **out_group, struct muster_failure *failure);

/* Since 0.3: answers next_rendezvous. The round is copied. MUSTER_ERROR_STATE where the node waits
 * for none, or the agent has ended. */
enum muster_error muster_agent_set_round(struct muster_agent *agent,
    const struct muster_agent_round *round, struct muster_failure *failure);

/* Since 0.3: the round is over, of a node for which next_rendezvous was called. Its workers are
 * stopped, and it asks for another one, which costs no restart: as when num_nodes_waiting is not 0.
 * In the exit barrier: it goes on, and ends. While it waits for a round: there will be none, and it
 * ends as one that could not join. `reason` is for the log, UTF-8 of at most 1023 bytes.
 * MUSTER_ERROR_STATE where the agent has ended, or has not asked for a round. */
enum muster_error muster_agent_end_round(
    struct muster_agent *agent, const char *reason, struct muster_failure *failure);

/* How it has ended. MUSTER_ERROR_STATE until muster_agent_process has seen the end. */
enum muster_error muster_agent_result(const struct muster_agent *agent,
    const struct muster_run_result **out_result, struct muster_failure *failure);

/* An agent that has not ended stops its workers, and ends when that is done, unless it is killed
 * before; nobody hears of it. Accepts NULL. */
void muster_agent_free(struct muster_agent *agent);

#ifdef __cplusplus
}
#endif

#endif
