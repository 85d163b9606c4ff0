/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user asked for, after parsing and validation: plain values, nothing left to interpret
 * but what only the machine can tell (counts of devices). Built by options/config_builder, read by
 * everybody above. Matches torch/distributed/launcher/api.py LaunchConfig and
 * torch/distributed/run.py config_from_args. */
#ifndef MUSTER_CORE_LAUNCH_CONFIG_H
#define MUSTER_CORE_LAUNCH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/rendezvous_settings.h"

/* Ceilings of what a command line may ask for. */
#define LAUNCH_MAXIMUM_NODES 65536
#define LAUNCH_MAXIMUM_WORKERS_PER_NODE 4096
#define LAUNCH_MAXIMUM_RESTARTS 1000000000
#define LAUNCH_MAXIMUM_SIGNALS 64
/* Bytes of a dynamic rendezvous's run id: every key of its store begins with it. torchrun ends a
 * little earlier, where the id no longer makes a directory's name. */
#define LAUNCH_MAXIMUM_RUN_ID 256

enum launch_rendezvous {
    LAUNCH_RENDEZVOUS_SINGLE, /* this node alone: nothing to agree on; workers' store on a free port
                               */
    LAUNCH_RENDEZVOUS_STATIC, /* fixed master and node ranks; workers' store at the master's
                                 endpoint */
    LAUNCH_RENDEZVOUS_DYNAMIC, /* several nodes agree on each round through a shared record; see
                                  struct launch_dynamic */
};

/* Where the record of a dynamic rendezvous is kept. */
enum launch_record_store {
    LAUNCH_RECORD_TCP_STORE,
    LAUNCH_RECORD_FILE_STORE,
};

/* Whether this node hosts the TCP store of a dynamic rendezvous (rdzv-conf is_host). */
enum launch_is_host {
    LAUNCH_IS_HOST_UNSET, /* whoever finds the endpoint to be its own machine, unless another node
                             there already does */
    LAUNCH_IS_HOST_YES,
    LAUNCH_IS_HOST_NO,
};

/* A dynamic rendezvous; matches the parameters that create_backend and create_handler read in
 * elastic/rendezvous/c10d_rendezvous_backend.py and dynamic_rendezvous.py. */
struct launch_dynamic {
    struct rendezvous_settings settings; /* its sizes are minimum_nodes and maximum_nodes */
    enum launch_record_store store;
    char *host; /* TCP store: without brackets; else NULL */
    int port;   /* TCP store: 1..65535 */
    char *file; /* file store: path of the file; else NULL */
    enum launch_is_host is_host;
    struct duration read_timeout; /* for one answer of the TCP store, 60 s */
};

/* How many workers: a number, or what to count. */
enum launch_worker_count {
    LAUNCH_COUNT_NUMBER,
    LAUNCH_COUNT_CPU,
    LAUNCH_COUNT_GPU,
    LAUNCH_COUNT_XPU,
    LAUNCH_COUNT_AUTO, /* GPUs if there are any, else CPUs */
};

enum launch_entry {
    LAUNCH_ENTRY_SCRIPT,   /* python -u SCRIPT ARG… */
    LAUNCH_ENTRY_MODULE,   /* python -u -m MODULE ARG… */
    LAUNCH_ENTRY_PROGRAM,  /* PROGRAM ARG… (--no-python) */
    LAUNCH_ENTRY_RUN_PATH, /* runpy.run_path(SCRIPT, run_name="__main__") in a fresh interpreter
                              (--run-path) */
};

enum launch_numa_binding {
    LAUNCH_NUMA_NONE,
    LAUNCH_NUMA_NODE,
    LAUNCH_NUMA_SOCKET,
    LAUNCH_NUMA_EXCLUSIVE,
    LAUNCH_NUMA_CORE_COMPLEX,
};

enum launch_exit_code {
    LAUNCH_EXIT_CODE_TORCHRUN, /* 1 whenever the job failed */
    LAUNCH_EXIT_CODE_WORKER,   /* the first failed worker's own: its code, or 128 + signal */
};

/* Where records of what happens to the job go (core/event_record). */
enum launch_event_handler {
    LAUNCH_EVENTS_NULL,
    LAUNCH_EVENTS_CONSOLE, /* stderr */
    LAUNCH_EVENTS_FILE,
};

/* What is looked at before a worker is killed that does not end by itself. */
enum launch_evidence {
    LAUNCH_EVIDENCE_OFF,
    LAUNCH_EVIDENCE_BASIC, /* what can be seen without touching it */
    LAUNCH_EVIDENCE_FULL,  /* also what debuggers say, which stop it meanwhile */
};

/* Bits of a redirect or tee value. */
#define LAUNCH_STREAM_STDOUT 1
#define LAUNCH_STREAM_STDERR 2

/* -r / -t: one value for all ranks, or values for some. */
struct launch_streams {
    int for_all;  /* 0-3; used for ranks that `by_rank` does not reach */
    int *by_rank; /* by local rank, -1 where not mentioned (then 0 applies); NULL when one value
                     serves all */
    size_t rank_count; /* entries of by_rank */
};

/* What happens when a worker was ended because its timer expired. */
enum launch_timer_expiry {
    LAUNCH_TIMER_EXPIRY_RESTART_WORKER, /* as after any other failure */
    LAUNCH_TIMER_EXPIRY_EXIT_AGENT,     /* the agent ends too, as when it gets SIGTERM */
};

struct launch_config {
    /* size */
    int minimum_nodes;
    int maximum_nodes;
    enum launch_worker_count worker_count_kind;
    int worker_count; /* with LAUNCH_COUNT_NUMBER, 1..LAUNCH_MAXIMUM_WORKERS_PER_NODE; else 0 until
                         resolved */

    /* rendezvous */
    enum launch_rendezvous rendezvous;
    char *rdzv_backend; /* as given, after torchrun's rewriting ("static", "c10d", …) */
    char *run_id;       /* NULL: a random one is to be made (standalone); dynamic: any 1 to
                           LAUNCH_MAXIMUM_RUN_ID bytes */
    struct launch_dynamic dynamic; /* with LAUNCH_RENDEZVOUS_DYNAMIC; else zero */
    char *master_host; /* static: host the store listens on or is found at, without brackets; else
                          NULL */
    int master_port;   /* static: 0..65535, 0 takes a free one (one node only) */
    int node_rank;
    char *local_address; /* --local-addr, or NULL */
    struct duration
        store_timeout; /* static: how long to wait for the other nodes (rdzv-conf timeout, 900 s) */
    struct text_list rdzv_conf; /* KEY=VALUE as given, later duplicates winning */

    /* what to run */
    enum launch_entry entry;
    char *script;
    struct text_list script_arguments; /* macros not yet substituted */
    char *python;                      /* $PYTHON_EXEC, or NULL: to be found on PATH */
    char *role;
    int max_restarts;
    struct duration monitor_interval; /* between looks at what the kernel does not tell of */
    struct duration stuck_timeout;    /* how long a worker may hang in the kernel; zero: for ever */
    bool serves_timers;               /* workers may ask to be ended at a deadline … */
    char *timer_file;                 /* … through this FIFO; NULL: a fresh one */
    enum launch_timer_expiry on_timer_expiry;
    bool serves_health;             /* over HTTP … */
    int health_port;                /* … here; 0: a free port */
    char *health_address;           /* … at this address; NULL: all of them */
    struct duration health_timeout; /* how long a timer may be overdue */
    enum launch_evidence evidence;
    struct duration evidence_timeout; /* the most by which that may delay a kill */
    bool is_virtual_local_rank;
    bool sets_omp_num_threads; /* OMP_NUM_THREADS was unset: becomes 1 when there are several
                                  workers */
    enum launch_numa_binding numa_binding;

    /* stopping */
    int signals[LAUNCH_MAXIMUM_SIGNALS]; /* to handle and forward */
    size_t signal_count;
    char *signals_to_handle; /* the same as given, for $TORCHELASTIC_SIGNALS_TO_HANDLE */
    struct duration shutdown_timeout;
    enum launch_exit_code exit_code;

    /* logs */
    char *log_dir; /* NULL: a fresh temporary directory; "/dev/null": none */
    struct launch_streams redirects;
    struct launch_streams tee;
    char *log_line_prefix_template; /* NULL: [${role_name}${local_rank}]: */
    bool has_local_ranks_filter;
    int *local_ranks_filter; /* sorted */
    size_t local_ranks_filter_count;
    struct text_list duplicate_stdout_filters;
    struct text_list duplicate_stderr_filters;

    /* events */
    enum launch_event_handler event_handler;
    char *event_file; /* with LAUNCH_EVENTS_FILE */

    /* things worth telling the user, as torchrun warns; printed by main */
    struct text_list warnings;
};

void launch_config_clear(struct launch_config *config);

/* The LAUNCH_STREAM_* bits for one local rank. */
int launch_streams_for(const struct launch_streams *streams, int local_rank);

#endif
