/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user asked for, after parsing and validation. It consists of plain values; only the
 * numbers of devices are not known yet, because they depend on the machine. options/config_builder
 * builds it, and all higher floors read it. Matches torch/distributed/launcher/api.py LaunchConfig
 * and torch/distributed/run.py config_from_args. */
#ifndef MUSTER_CORE_LAUNCH_LAUNCH_CONFIG_H
#define MUSTER_CORE_LAUNCH_LAUNCH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"

/* The settings of a dynamic rendezvous: sizes, timeouts, policies. The defaults of the first part
 * are TorchElastic's; see RendezvousSettings and RendezvousTimeout in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */

/* What the remaining nodes do when a node is gone. */
enum rendezvous_on_node_loss {
    RENDEZVOUS_ON_NODE_LOSS_RESTART,  /* go on at once if enough nodes remain */
    RENDEZVOUS_ON_NODE_LOSS_WAIT,     /* wait for a new node until the join timeout, then go on */
    RENDEZVOUS_ON_NODE_LOSS_TORCHRUN, /* do nothing until a worker fails */
};

enum rendezvous_scale_up {
    /* A new node is admitted once `scale_up_interval` has passed since the round began; zero: at
     * once. */
    RENDEZVOUS_SCALE_UP_ALLOWED,
    RENDEZVOUS_SCALE_UP_NEVER, /* a new node only replaces a node that is gone */
};

/* A job of more nodes than this delegates unless it is told not to. The work that it saves grows
 * with the square of the number of nodes: 128 agents on two cores were a world after 1.2 s with
 * delegation and 4.3 s without. Up to this number the difference is hardly seen, and there every
 * node reads the whole record, so that its log names all others. */
#define RENDEZVOUS_DELEGATES_ABOVE_NODES 32

struct rendezvous_settings {
    int minimum_nodes;                   /* at least 1 */
    int maximum_nodes;                   /* at least minimum_nodes */
    struct duration join_timeout;        /* join_timeout, 600 s */
    struct duration last_call_timeout;   /* last_call_timeout, 30 s */
    struct duration close_timeout;       /* close_timeout, 30 s */
    struct duration heartbeat_timeout;   /* heartbeat_timeout, 5 s; accepted, but without effect */
    struct duration keep_alive_interval; /* keep_alive_interval, 5 s */
    int keep_alive_max_attempt;          /* keep_alive_max_attempt, 3 */
    /* Muster's own */
    struct duration silence_timeout; /* silence_timeout, 3 s: for a machine that does not answer */
    /* calm_after, 600 s: in a job that delegates, after how long without a lost packet a connection
     * needs no signs of life (core/store/connection_silence). A network that loses one packet in a
     * hundred is found out by then, but for one connection in a hundred thousand. */
    struct duration calm_after;
    /* host_timeout, 30 s: how long a node that has lost the store looks for it again */
    struct duration host_timeout;
    /* fence_timeout, 5 s: with a register, how long workers run on a node that hears of neither it
     * nor the host of the store */
    struct duration fence_timeout;
    struct duration exit_barrier_timeout; /* exit_barrier_timeout, 300 s */
    enum rendezvous_on_node_loss on_node_loss;
    /* The record tells how old the restarts are that are no older than this; zero: of none. */
    struct duration restart_window;
    /* A node whose workers have failed first so often leaves, where it can; 0: none does. */
    int exclude_after;
    enum rendezvous_scale_up scale_up;
    struct duration scale_up_interval;
    /* delegation: the node that hosts the store writes the record for the others, which do not read
     * it. Each of them has to take part in that, and the host has to offer it. The default depends
     * on maximum_nodes: RENDEZVOUS_DELEGATES_ABOVE_NODES. */
    bool delegates;
};

/* Sets TorchElastic's defaults for one node. Muster's own defaults are: go on at once when a node
 * is lost, and admit new nodes at once. */
void rendezvous_settings_init(struct rendezvous_settings *settings);

/* Whether the nodes of this job react to a lost node before one of their workers fails. */
bool rendezvous_settings_heed_losses(const struct rendezvous_settings *settings);

/* How often a node that delegates gives a sign of life that its host hears: keep_alive_interval, or
 * less often where the host would hear more than a few of them in each second. The host counts on
 * it, so it depends on nothing but the settings of the job. */
struct duration rendezvous_settings_beat(const struct rendezvous_settings *settings);

/* How long an agent may stand still at most without being taken for lost meanwhile, less some time
 * in which its workers can be ended. The others wait for keep_alive_interval times
 * keep_alive_max_attempt, but the last sign of life may be one interval old when the agent stops.
 * Zero: there is no such time. */
struct duration rendezvous_settings_standstill(const struct rendezvous_settings *settings);

/* Settings as they may be shown. A launcher's messages and logs are read by others than who has
 * written its command line, so the values of passwords are left out. */

/* Whether the value of the setting at the start of `setting` (KEY=VALUE, with or without more
 * behind it) is a secret: its key has the word password, passwd, secret or token in it, and does
 * not end in _file. Without a '=' it has no value. */
bool secret_setting_is_one(const char *setting);

/* Appends KEY=VALUE,KEY=VALUE with stars in the place of secrets. What has no '=' behind a secret
 * is taken for a part of it: a password with a comma. */
void secret_setting_write_shown(const char *settings, struct text *out);

/* The largest values that a command line may ask for. */
#define LAUNCH_MAXIMUM_NODES 65536
#define LAUNCH_MAXIMUM_WORKERS_PER_NODE 4096
#define LAUNCH_MAXIMUM_RESTARTS 1000000000
#define LAUNCH_MAXIMUM_BACKOFF_SECONDS 3600
#define LAUNCH_MAXIMUM_SIGNALS 64
#define LAUNCH_MAXIMUM_STANDBY_REST 100
/* The most bytes in the run id of a dynamic rendezvous. The run id is part of every key in the
 * store. torchrun's limit is a little smaller: it uses the run id in the name of a directory. */
#define LAUNCH_MAXIMUM_RUN_ID 256

/* How nodes prove themselves to each other's stores. */
enum launch_auth {
    LAUNCH_AUTH_OPEN,       /* not at all: there is no token, and nobody else is to be reached */
    LAUNCH_AUTH_NONE,       /* not at all, as the user wants it */
    LAUNCH_AUTH_TOKEN,      /* by the job's token */
    LAUNCH_AUTH_MUNGE,      /* by munge */
    LAUNCH_AUTH_MUNGE_HERE, /* by munge where this machine has it, else not at all */
};

enum launch_rendezvous {
    /* The job has only this node. The workers' store is on a free port. */
    LAUNCH_RENDEZVOUS_SINGLE,
    /* Master and node ranks are fixed. The workers' store is at the master's endpoint. */
    LAUNCH_RENDEZVOUS_STATIC,
    /* The nodes agree on each round through a shared record; see struct launch_dynamic. */
    LAUNCH_RENDEZVOUS_DYNAMIC,
};

/* The store that holds the record of a dynamic rendezvous. */
enum launch_record_store {
    LAUNCH_RECORD_TCP_STORE,
    LAUNCH_RECORD_FILE_STORE,
};

/* Whether this node hosts the TCP store of a dynamic rendezvous (rdzv-conf is_host). */
enum launch_is_host {
    /* A node hosts the store if the endpoint is its machine and no other node there hosts it. */
    LAUNCH_IS_HOST_UNSET,
    LAUNCH_IS_HOST_YES,
    LAUNCH_IS_HOST_NO,
};

/* A dynamic rendezvous. Matches the parameters that create_backend and create_handler read in
 * elastic/rendezvous/c10d_rendezvous_backend.py and dynamic_rendezvous.py. */
struct launch_dynamic {
    struct rendezvous_settings settings; /* its sizes are minimum_nodes and maximum_nodes */
    enum launch_record_store store;
    char *host; /* TCP store: the host without brackets; else NULL */
    int port;   /* TCP store: 0..65535; 0: the host of the store takes a free port */
    char *file; /* file store: the path of the file; else NULL */
    enum launch_is_host is_host;
    /* The register that decides which node hosts the store, by the name of its engine, and where it
     * is; NULL: the endpoint decides. */
    char *register_engine;
    char *register_endpoint;
    struct duration read_timeout; /* for one answer of the TCP store; the default is 60 s */
};

/* How many workers a node has: a number, or the devices to count. */
enum launch_worker_count {
    LAUNCH_COUNT_NUMBER,
    LAUNCH_COUNT_CPU,
    LAUNCH_COUNT_GPU,
    LAUNCH_COUNT_XPU,
    LAUNCH_COUNT_NAMED, /* a device that a plug-in of PyTorch knows */
    LAUNCH_COUNT_AUTO,  /* GPUs if there are any, else such devices, else CPUs */
};

enum launch_entry {
    LAUNCH_ENTRY_SCRIPT,  /* python -u SCRIPT ARG… */
    LAUNCH_ENTRY_MODULE,  /* python -u -m MODULE ARG… */
    LAUNCH_ENTRY_PROGRAM, /* PROGRAM ARG… (--no-python) */
    /* runpy.run_path(SCRIPT, run_name="__main__") in a new interpreter (--run-path). */
    LAUNCH_ENTRY_RUN_PATH,
};

enum launch_numa_binding {
    LAUNCH_NUMA_NONE,
    LAUNCH_NUMA_NODE,
    LAUNCH_NUMA_SOCKET,
    LAUNCH_NUMA_EXCLUSIVE,
    LAUNCH_NUMA_CORE_COMPLEX,
};

enum launch_exit_code {
    LAUNCH_EXIT_CODE_TORCHRUN, /* 1 for every failed job */
    /* The exit code of the first failed worker, or 128 + its signal. For a signal that ends the
     * agent: 128 + signal. */
    LAUNCH_EXIT_CODE_WORKER,
};

/* Where the event records of the job go (core/event_record). */
enum launch_event_handler {
    LAUNCH_EVENTS_NULL,
    LAUNCH_EVENTS_CONSOLE, /* stderr */
    LAUNCH_EVENTS_FILE,
    LAUNCH_EVENTS_PROGRAM, /* its standard input */
};

/* Which evidence the agent collects before it kills a worker that does not end by itself. */
enum launch_evidence {
    LAUNCH_EVIDENCE_OFF,
    LAUNCH_EVIDENCE_BASIC, /* evidence that does not disturb the worker */
    LAUNCH_EVIDENCE_FULL,  /* also evidence of debuggers, which stop the worker meanwhile */
};

/* Whether standby workers wait to take the place of workers (docs/standby.md). */
enum launch_standby {
    LAUNCH_STANDBY_OFF,
    LAUNCH_STANDBY_AUTO, /* where they help and cost little */
    LAUNCH_STANDBY_ON,
};

/* When a job counts as one that hangs, though its workers live (docs/hang-evidence.md). */
struct launch_hang {
    bool is_wanted;
    bool is_learned;       /* after how long follows from the steps so far, … */
    struct duration after; /* … or it is this */
    bool restarts;         /* the worker that is to blame counts as failed */
};

/* Bits of a redirect or tee value. */
#define LAUNCH_STREAM_STDOUT 1
#define LAUNCH_STREAM_STDERR 2

/* The value of -r or -t: one value for all ranks, or values for some ranks. */
struct launch_streams {
    int for_all; /* 0-3; used when `by_rank` is NULL */
    /* The values by local rank; -1 where the rank was not mentioned, and 0 applies. NULL when one
     * value is for all ranks. */
    int *by_rank;
    size_t rank_count; /* entries of by_rank */
};

/* What happens after a worker was ended because its timer expired. */
enum launch_timer_expiry {
    LAUNCH_TIMER_EXPIRY_RESTART_WORKER, /* the same as after any other failure */
    LAUNCH_TIMER_EXPIRY_EXIT_AGENT,     /* the agent ends too, as after SIGTERM */
};

/* Ends of a worker, after which its node shall be replaced. */
struct launch_exit_on {
    bool codes[256];                          /* by exit code; 0 never */
    bool signals[LAUNCH_MAXIMUM_SIGNALS + 1]; /* by number */
};

struct launch_config {
    /* size */
    int minimum_nodes;
    int maximum_nodes;
    enum launch_worker_count worker_count_kind;
    /* LAUNCH_COUNT_NUMBER: 1..LAUNCH_MAXIMUM_WORKERS_PER_NODE. Else 0 until the devices were
     * counted. */
    int worker_count;
    char *device_name; /* LAUNCH_COUNT_NAMED: "npu"; else NULL */

    /* rendezvous */
    enum launch_rendezvous rendezvous;
    char *rdzv_backend; /* as given, after torchrun's rewriting ("static", "c10d", …) */
    /* NULL: the agent makes a random one (standalone). Dynamic: 1 to LAUNCH_MAXIMUM_RUN_ID bytes of
     * any kind. */
    char *run_id;
    struct launch_dynamic dynamic; /* set with LAUNCH_RENDEZVOUS_DYNAMIC; else zero */
    char *master_host;             /* static: the host of the store, without brackets; else NULL */
    int master_port;               /* static: 0..65535; 0 takes a free port (one node only) */
    int node_rank;
    bool is_placed; /* by the program that has started the agent, which has other nodes */
    /* What a program that has an agent tells workers, whatever the rendezvous says. */
    char *told_master_host;           /* or NULL */
    int told_master_port;             /* or 0 */
    struct text_list *rank_variables; /* by local rank, `worker_count` lists; or NULL */
    struct text_list *rank_arguments; /* the same, in place of script_arguments */
    char *local_address;              /* --local-addr, or NULL */
    /* Static: how long to wait for the other nodes (rdzv-conf timeout; the default is 900 s). */
    struct duration store_timeout;
    /* Every process of the job is on this machine, as far as the options tell: one node, which is
     * not found from elsewhere. Its stores serve this machine only. */
    bool is_local;
    /* The secret by which the nodes prove themselves to each other's stores: the text, or the file
     * it is in, or NULL both. Never printed. */
    char *job_token;
    char *token_file;
    bool is_store_for_every_user; /* of this machine: the workers' store */
    bool is_store_for_round;      /* of other machines: only those of the round's nodes */
    bool is_store_for_proven;     /* the same where nodes prove themselves */
    enum launch_auth auth;
    char *munge_socket; /* of munge's daemon; NULL: where it listens unless told otherwise */
    /* How much memory a store of this agent may use: bytes, or a percentage of what there is. Both
     * 0: the default of core/store/store_request. */
    uint64_t store_memory_bytes;
    int store_memory_percent;
    /* Of the directory in memory for what workers keep between restarts; 0: none. */
    uint64_t scratch_bytes;
    struct text_list rdzv_conf; /* KEY=VALUE as given; of duplicates the last one holds */

    /* what to run */
    enum launch_entry entry;
    char *script;
    struct text_list script_arguments; /* macros are not substituted yet */
    char *python;                      /* $PYTHON_EXEC; NULL: found on PATH */
    char *role;
    int max_restarts;
    /* After so many attempts in a row that bring the job no further it fails; 0: never. */
    int no_progress_restarts;
    struct duration restart_window;  /* restarts that are older are given back; zero: none are */
    struct duration restart_backoff; /* the longest pause after such an attempt; zero: none */
    char *node_check;                /* the command that says whether a node is fit; or NULL */
    struct duration node_check_timeout;
    /* Between looks at facts that the kernel does not report by itself. */
    struct duration monitor_interval;
    struct duration stuck_timeout; /* how long a worker may hang in the kernel; zero: no limit */
    bool serves_timers;            /* workers may set timers that end them at a deadline */
    char *timer_file;              /* the FIFO for their requests; NULL: a new one */
    enum launch_timer_expiry on_timer_expiry;
    bool serves_health;             /* the agent reports its health over HTTP */
    int health_port;                /* its port; 0: a free port */
    char *health_address;           /* its address; NULL: all addresses */
    char *health_hosts;             /* names by which it may be asked for, besides; or NULL */
    struct duration health_timeout; /* how long a timer may be overdue */
    enum launch_evidence evidence;
    struct duration evidence_timeout; /* how long collecting evidence may delay a kill */
    /* On which Python workers say their stacks where there are standby workers; 0: none. */
    int evidence_signal;
    enum launch_standby standby;
    struct duration
        standby_timeout;           /* for which a new node warms before it joins a running world */
    struct duration standby_after; /* how long no worker may have imported anything before that */
    bool has_progress;             /* workers tell of their steps */
    struct launch_hang hang;
    bool has_standby_parent; /* which forks standby workers, where it can */
    double standby_rest;     /* how many times as long as it has worked a standby worker rests */
    bool is_virtual_local_rank;
    /* OMP_NUM_THREADS was unset, and becomes 1 when a node has several workers. */
    bool sets_omp_num_threads;
    enum launch_numa_binding numa_binding;

    /* stopping */
    int signals[LAUNCH_MAXIMUM_SIGNALS]; /* the agent handles them and forwards them to the workers
                                          */
    size_t signal_count;
    bool names_signals;      /* the user does, so that they are handled even if they were ignored */
    char *signals_to_handle; /* the same, as given; for $TORCHELASTIC_SIGNALS_TO_HANDLE */
    bool is_signalled_by_slurm; /* which may signal the workers, too */
    struct duration shutdown_timeout;
    /* How long a node whose workers are done waits for the other nodes. */
    struct duration exit_barrier_timeout;
    /* How long the workers run on after another node was told to end by a signal, which may still
     * reach this node. With a register this is for rounds that too few nodes are left for, unless
     * it was given. */
    struct duration settling_time;
    bool has_settling_time; /* --settling-time was given */
    enum launch_exit_code exit_code;
    struct launch_exit_on exit_on;

    /* logs */
    char *log_dir; /* NULL: a new temporary directory; "/dev/null": none */
    struct launch_streams redirects;
    struct launch_streams tee;
    char *log_line_prefix_template; /* NULL: [${role_name}${local_rank}]: */
    char *shown_node; /* one console shows several nodes, and this is this one's name; or NULL */
    bool has_local_ranks_filter;
    int *local_ranks_filter; /* sorted */
    size_t local_ranks_filter_count;
    struct text_list duplicate_stdout_filters;
    struct text_list duplicate_stderr_filters;

    /* events */
    enum launch_event_handler event_handler;
    char *event_file; /* LAUNCH_EVENTS_FILE: its path; LAUNCH_EVENTS_PROGRAM: the program; else NULL
                       */
    char *chronicle;  /* a file, "off", or NULL: beside the logs */
    char *metrics_file; /* or NULL */

    char *notice; /* one line for the user, which the first node prints; or NULL */
    /* warnings about that place, which concern all nodes alike: one of them gives them */
    struct text_list meeting_warnings;
    /* the warnings that torchrun gives too; main prints them */
    struct text_list warnings;
};

void launch_config_clear(struct launch_config *config);

/* The LAUNCH_STREAM_* bits for one local rank. */
int launch_streams_for(const struct launch_streams *streams, int local_rank);

#endif
