/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/launch_table.h"

#include "options/argparse/option_completion.h"

static const char *const start_methods[] = {"spawn", "fork", "forkserver", NULL};
static const char *const numa_bindings[] = {"node", "socket", "exclusive", "core-complex", NULL};
static const char *const node_losses[] = {"restart", "wait", "torchrun", NULL};
static const char *const timer_expiries[] = {"restart-worker", "exit-agent", NULL};
static const char *const evidences[] = {"off", "basic", "full", NULL};
static const char *const standbys[] = {"off", "auto", "on", NULL};
static const char *const store_clients[] = {"user", "round", "any", NULL};
static const char *const auths[] = {"token", "none", NULL};
static const char *const exit_codes[] = {"torchrun", "worker", NULL};

static const struct option_definition definitions[] = {
    {
        .destination = "help",
        .names = {"-h", "--help"},
        .kind = OPTION_HELP,
        .help = "Show this page and exit.",
    },
    {
        .destination = "nnodes",
        .names = {"--nnodes"},
        .reads_environment = true,
        .default_text = "1:1",
        .help = "How many nodes take part: a number, or MIN:MAX. Default: 1.",
    },
    {
        .destination = "nproc_per_node",
        .names = {"--nproc-per-node", "--nproc_per_node"},
        .reads_environment = true,
        .default_text = "1",
        .help =
            "How many workers to start on this node: a number, or cpu, gpu, xpu to count what is "
            "here, or auto for GPUs if there are any and else CPUs. Default: 1.",
    },
    {
        .destination = "rdzv_backend",
        .names = {"--rdzv-backend", "--rdzv_backend"},
        .reads_environment = true,
        .default_text = "static",
        .help = "How nodes find each other: static (ranks and master are given), c10d (nodes may "
                "come and "
                "go), etcd or etcd-v2 (one node only in this version). Default: static.",
    },
    {
        .destination = "rdzv_endpoint",
        .names = {"--rdzv-endpoint", "--rdzv_endpoint"},
        .reads_environment = true,
        .default_text = "",
        .help =
            "Where nodes meet: HOST:PORT, with an IPv6 address in brackets. With c10d the node "
            "that "
            "HOST names hosts the store, port 0 is a free one, and the default is localhost:29400. "
            "With static it takes the place of --master-addr and --master-port.",
    },
    {
        .destination = "rdzv_id",
        .names = {"--rdzv-id", "--rdzv_id"},
        .reads_environment = true,
        .default_text = "none",
        .help =
            "A name for this job, the same on all its nodes. Default: none; with --standalone a "
            "random one.",
    },
    {
        .destination = "rdzv_conf",
        .names = {"--rdzv-conf", "--rdzv_conf"},
        .reads_environment = true,
        .default_text = "",
        .help =
            "Settings of the rendezvous: KEY=VALUE,KEY=VALUE. For static: timeout, the seconds to "
            "wait for the other nodes (default 900). For c10d: join_timeout, last_call_timeout, "
            "close_timeout, heartbeat_timeout, keep_alive_interval, keep_alive_max_attempt, "
            "silence_timeout, exit_barrier_timeout, read_timeout, is_host, store_type; see "
            "muster(1).",
    },
    {
        .destination = "standalone",
        .names = {"--standalone"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "Run on this node alone, on a free port and under a random job name, whatever the "
                "rendezvous options say.",
    },
    {
        .destination = "max_restarts",
        .names = {"--max-restarts", "--max_restarts"},
        .kind = OPTION_INTEGER,
        .reads_environment = true,
        .default_text = "0",
        .help = "How often the workers are started again after one of them failed. Default: 0.",
    },
    {
        .destination = "monitor_interval",
        .names = {"--monitor-interval", "--monitor_interval"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .default_text = "0.1",
        .help =
            "Seconds between looks for workers that hang in the kernel, see "
            "$TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT. Exits are told at once. Default: 0.1.",
    },
    {
        .destination = "start_method",
        .names = {"--start-method", "--start_method"},
        .reads_environment = true,
        .default_text = "spawn",
        .choices = start_methods,
        .help = "How --run-path workers come to be. Accepted for compatibility: every worker is a "
                "fresh process, as with spawn.",
    },
    {
        .destination = "event_log_handler",
        .names = {"--event-log-handler", "--event_log_handler"},
        .reads_environment = true,
        .default_text = "null",
        .help =
            "Where records of what happens to the job go, one JSON object on a line each: null, "
            "nowhere; console, stderr; or file:PATH, the end of this file. Default: null.",
    },
    {
        .destination = "role",
        .names = {"--role"},
        .reads_environment = true,
        .default_text = "default",
        .help = "A name for what these workers do; it begins their log lines. Default: default.",
    },
    {
        .destination = "module",
        .names = {"-m", "--module"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "The script is a Python module, run as by python -m.",
    },
    {
        .destination = "no_python",
        .names = {"--no-python", "--no_python"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "The script is a program of any kind, run without Python.",
    },
    {
        .destination = "run_path",
        .names = {"--run-path", "--run_path"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "Run the script by runpy.run_path in a fresh interpreter. Goes before --module and "
                "--no-python.",
    },
    {
        .destination = "log_dir",
        .names = {"--log-dir", "--log_dir"},
        .reads_environment = true,
        .help = "Directory for log files; each run makes its own below it, named after the job. "
                "Default: a new one in the temporary directory. /dev/null: no files at all.",
    },
    {
        .destination = "redirects",
        .names = {"-r", "--redirects"},
        .reads_environment = true,
        .default_text = "0",
        .help =
            "Write workers' output to log files instead of the console: 1 for stdout, 2 for "
            "stderr, 3 for both, 0 for none; or by local rank, RANK:VALUE,RANK:VALUE. Default: 0.",
    },
    {
        .destination = "tee",
        .names = {"-t", "--tee"},
        .reads_environment = true,
        .default_text = "0",
        .help = "Write workers' output to log files and to the console, given as for --redirects. "
                "Default: 0.",
    },
    {
        .destination = "log_line_prefix_template",
        .names = {"--log-line-prefix-template", "--log_line_prefix_template"},
        .reads_environment = true,
        .default_text = "",
        .help =
            "What stands before each line of --tee on the console; ${role_name}, ${local_rank}, "
            "${rank} and ${hostname} are put in. Default: [${role_name}${local_rank}]:",
    },
    {
        .destination = "local_ranks_filter",
        .names = {"--local-ranks-filter", "--local_ranks_filter"},
        .reads_environment = true,
        .default_text = "",
        .help =
            "Local ranks whose output the console shows: RANK,RANK. Log files are not affected. "
            "Default: all.",
    },
    {
        .destination = "duplicate_stdout_filters",
        .names = {"--duplicate-stdout-filters", "--duplicate_stdout_filters"},
        .kind = OPTION_COMMA_LIST,
        .reads_environment = true,
        .help =
            "Texts between commas, two commas for one: lines of stdout that hold one of them also "
            "go to one file for all ranks. Needs --tee.",
    },
    {
        .destination = "duplicate_stderr_filters",
        .names = {"--duplicate-stderr-filters", "--duplicate_stderr_filters"},
        .kind = OPTION_COMMA_LIST,
        .reads_environment = true,
        .help = "The same for stderr.",
    },
    {
        .destination = "node_rank",
        .names = {"--node-rank", "--node_rank"},
        .kind = OPTION_INTEGER,
        .reads_environment = true,
        .default_text = "0",
        .help =
            "This node's number among all, from 0. Only with the static rendezvous. Default: 0.",
    },
    {
        .destination = "master_addr",
        .names = {"--master-addr", "--master_addr"},
        .reads_environment = true,
        .default_text = "127.0.0.1",
        .help = "Host name or address of node 0. Only with the static rendezvous. Default: "
                "127.0.0.1.",
    },
    {
        .destination = "master_port",
        .names = {"--master-port", "--master_port"},
        .kind = OPTION_INTEGER,
        .reads_environment = true,
        .help = "Port the job's store listens on at node 0. Only with the static rendezvous. "
                "Default: 29500; one node alone takes a free port.",
    },
    {
        .destination = "local_addr",
        .names = {"--local-addr", "--local_addr"},
        .reads_environment = true,
        .help = "Address under which other nodes reach this one. Default: its full host name.",
    },
    {
        .destination = "token_file",
        .names = {"--token-file", "--token_file"},
        .reads_environment = true,
        .is_addition = true,
        .help = "File with the job's token, a secret of at least 16 bytes that is the same on all "
                "nodes. With a token nodes prove themselves to the job's store, and others are "
                "turned away. Only this user may read it (mode 0600). Default: the token in "
                "$MUSTER_JOB_TOKEN, which the workers do not get.",
    },
    {
        .destination = "auth",
        .names = {"--auth"},
        .reads_environment = true,
        .choices = auths,
        .is_addition = true,
        .help = "How nodes prove themselves: token, or none, as where nodes of torchrun take part. "
                "Default: token where one is given.",
    },
    {
        .destination = "worker_store_from",
        .names = {"--worker-store-from", "--worker_store_from"},
        .reads_environment = true,
        .default_text = "user",
        .choices = store_clients,
        .is_addition = true,
        .help = "Who may use the workers' store: user (on this machine processes of this user and "
                "of root; on others everybody), round (on other machines only those of the "
                "round's nodes; for all nodes alike), or any. Default: user.",
    },
    {
        .destination = "logs_specs",
        .names = {"--logs-specs", "--logs_specs"},
        .help =
            "Name of a Python plug-in for logs: default, which is built in. No other is offered, "
            "there is no Python here.",
    },
    {
        .destination = "numa_binding",
        .names = {"--numa-binding", "--numa_binding"},
        .choices = numa_bindings,
        .help =
            "Keep each worker on the CPUs near its GPU: those of the same memory node or socket, "
            "cores of its own, or those sharing one cache. Without GPUs workers spread over "
            "the CPUs.",
    },
    {
        .destination = "signals_to_handle",
        .names = {"--signals-to-handle", "--signals_to_handle"},
        .reads_environment = true,
        .default_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        .help = "Signals that are passed on to the workers and end the job. Default: "
                "SIGTERM,SIGINT,SIGHUP,SIGQUIT. Batch systems often want SIGUSR1 or SIGUSR2 too.",
    },
    {
        .destination = "shutdown_timeout",
        .names = {"--shutdown-timeout", "--shutdown_timeout"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .help = "Seconds, also fractions, that workers have between being asked to end and being "
                "killed. Default: $TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30.",
    },
    {
        .destination = "exit_barrier_timeout",
        .names = {"--exit-barrier-timeout", "--exit_barrier_timeout"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .is_addition = true,
        .help =
            "Seconds that a node whose workers are done waits for the other nodes; then it ends "
            "with "
            "status 0. The node that hosts the job's store stays as long as others work. Default: "
            "$TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT, else 300.",
    },
    {
        .destination = "virtual_local_rank",
        .names = {"--virtual-local-rank", "--virtual_local_rank"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "Every worker sees LOCAL_RANK 0 and, in CUDA_VISIBLE_DEVICES, its own GPU only.",
    },
    {
        .destination = "on_node_loss",
        .names = {"--on-node-loss", "--on_node_loss"},
        .reads_environment = true,
        .default_text = "restart",
        .choices = node_losses,
        .is_addition = true,
        .help =
            "What the others do when a node is lost (c10d): restart at once without it, if enough "
            "are left; wait for another to take its place, until join_timeout; or do as torchrun "
            "does and notice when a worker fails. Default: restart.",
    },
    {
        .destination = "scale_up",
        .names = {"--scale-up", "--scale_up"},
        .reads_environment = true,
        .default_text = "immediate",
        .is_addition = true,
        .help =
            "When nodes beyond the present ones join a running job (c10d), which restarts its "
            "workers: immediate, never, or the seconds that have to lie between two such restarts. "
            "Default: immediate.",
    },
    {
        .destination = "settling_time",
        .names = {"--settling-time", "--settling_time"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .default_text = "2",
        .is_addition = true,
        .help =
            "With c10d: seconds for which this node's workers run on when another node was told to "
            "end by a signal, since the same signal may be on its way to this node. Default: 2.",
    },
    {
        .destination = "host_timeout",
        .names = {"--host-timeout", "--host_timeout"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .is_addition = true,
        .help =
            "With c10d: seconds for which a node that has lost the host of the job's store looks "
            "for it, before the node ends. Default: the host_timeout of --rdzv-conf, otherwise 30.",
    },
    {
        .destination = "store_memory",
        .names = {"--store-memory", "--store_memory"},
        .reads_environment = true,
        .default_text = "",
        .is_addition = true,
        .help = "How much memory each store that this agent serves may use: bytes, as 512M, or a "
                "percentage of what the agent's cgroup or the machine has. Default: a quarter of "
                "that, but not more than 4 GiB.",
    },
    {
        .destination = "scratch",
        .names = {"--scratch"},
        .reads_environment = true,
        .default_text = "",
        .is_addition = true,
        .help = "Give this node's workers a private directory in memory, $MUSTER_SCRATCH, that "
                "outlives their restarts and goes with the job; they may put this much into it: "
                "bytes, as 2G. Default: 0, none.",
    },
    {
        .destination = "on_timer_expiry",
        .names = {"--on-timer-expiry", "--on_timer_expiry"},
        .reads_environment = true,
        .default_text = "restart-worker",
        .choices = timer_expiries,
        .is_addition = true,
        .help = "When a worker's timer expired and the worker was ended: treat it as any other "
                "failure, or end this agent too, as torchrun does. Default: restart-worker.",
    },
    {
        .destination = "evidence",
        .names = {"--evidence"},
        .reads_environment = true,
        .default_text = "basic",
        .choices = evidences,
        .is_addition = true,
        .help = "What to look at before a worker is killed that hangs: off, basic for its threads, "
                "files, sockets and Python stacks, full for debuggers (py-spy, gdb) too, which "
                "stop it. It goes to hang_evidence.txt beside the worker's logs. Default: basic.",
    },
    {
        .destination = "evidence_timeout",
        .names = {"--evidence-timeout", "--evidence_timeout"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .default_text = "2",
        .is_addition = true,
        .help = "Seconds, also fractions, by which that may delay a kill. Default: 2.",
    },
    {
        .destination = "evidence_signal",
        .names = {"--evidence-signal", "--evidence_signal"},
        .reads_environment = true,
        .default_text = "50",
        .is_addition = true,
        .help = "Signal on which Python workers say their stacks, 34 to 64 or off. Default: 50.",
    },
    {
        .destination = "standby",
        .names = {"--standby"},
        .reads_environment = true,
        .default_text = "off",
        .choices = standbys,
        .is_addition = true,
        .help = "Keep one process for each worker that has imported what the workers import, and "
                "takes a worker's place when all are started again: off, on, or auto where there "
                "is room for them. Default: off.",
    },
    {
        .destination = "standby_after",
        .names = {"--standby-after", "--standby_after"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .default_text = "2.5",
        .is_addition = true,
        .help = "Seconds, also fractions, for which no worker has imported anything before such "
                "processes are started. Default: 2.5.",
    },
    {
        .destination = "standby_timeout",
        .names = {"--standby-timeout", "--standby_timeout"},
        .kind = OPTION_FLOAT,
        .reads_environment = true,
        .default_text = "30",
        .is_addition = true,
        .help = "Seconds by which a new node may join later to have them ready. Default: 30.",
    },
    {
        .destination = "exit_code",
        .names = {"--exit-code", "--exit_code"},
        .reads_environment = true,
        .default_text = "torchrun",
        .choices = exit_codes,
        .is_addition = true,
        .help = "Exit status of a failed job: torchrun for 1 always, worker for that of the worker "
                "that failed first (128 + N for signal N, also for one that ended the agent). "
                "Default: torchrun.",
    },
    {
        .destination = "print_completion",
        .names = {"--print-completion", "--print_completion"},
        .kind = OPTION_COMPLETION,
        .choices = option_completion_shells,
        .help = "Print a completion script for this shell and exit.",
    },
    {
        .destination = "version",
        .names = {"--version"},
        .kind = OPTION_VERSION,
        .is_addition = true,
        .help = "Print Muster's version and exit.",
    },
    {
        .destination = "training_script",
        .help = "The script, module or program every worker runs.",
    },
    {
        .destination = "training_script_args",
        .arity = OPTION_ARITY_REMAINDER,
        .help = "Its arguments, passed on as they are but for ${local_rank}.",
    },
};

const struct option_table launch_table = {
    .description =
        "Start the workers of a training job on this node, watch them, and start them again when "
        "one "
        "dies. Options come before the script. Those that describe the job can be set in the "
        "environment too: PET_ and the name in capitals, as in PET_MAX_RESTARTS=3.",
    .environment_prefix = "PET_",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof *definitions,
};
