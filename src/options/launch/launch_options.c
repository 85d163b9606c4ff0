/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/launch_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/argparse/option_parser.h"
#include "options/argparse/option_table.h"
#include "options/launch/config_builder.h"

static const char *const start_methods[] = {"spawn", "fork", "forkserver", NULL};
static const char *const numa_bindings[] = {"node", "socket", "exclusive", "core-complex", NULL};

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
            "How many workers to start on this node: a number; or cpu, gpu, xpu, or a device that "
            "PyTorch knows, such as npu, to count what is here; or auto for GPUs if there are any, "
            "else other devices, else CPUs. Default: 1.",
    },
    {
        .destination = "rdzv_backend",
        .names = {"--rdzv-backend", "--rdzv_backend"},
        .reads_environment = true,
        .default_text = "static",
        .help = "How nodes find each other: static (ranks and master are given), c10d (nodes may "
                "come and go), dir, etcd or k8s (the same, and any node may die). Default: static.",
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
            "With static it takes the place of --master-addr and --master-port. With dir it is a "
            "directory that every node sees, with etcd the HOST:PORT,... of its members, with k8s "
            "the [NAMESPACE/]NAME of a ConfigMap.",
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
            "silence_timeout, calm_after, exit_barrier_timeout, read_timeout, is_host, store_type, "
            "delegation (default true with more than 32 nodes); see muster(1).",
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
            "nowhere; console, stderr; file:PATH, the end of this file; or exec:PROGRAM, the "
            "standard input of this program. Default: null.",
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
                "Default: a new one in the temporary directory. /dev/null: no files at all. "
                "${hostname} becomes the name of this host.",
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
            "${rank}, ${hostname} and ${host} are put in. Default: [${role_name}${local_rank}]:",
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
        .destination = "virtual_local_rank",
        .names = {"--virtual-local-rank", "--virtual_local_rank"},
        .kind = OPTION_FLAG,
        .reads_environment = true,
        .help = "Every worker sees LOCAL_RANK 0 and, in CUDA_VISIBLE_DEVICES, its own GPU only.",
    },
/* clang-format off */
#include "options/launch/launch_additions.def"
    /* clang-format on */
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

/* mpirun and srun, accelerate, DeepSpeed, horovodrun. */
static const struct option_stranger strangers[] = {
    {"-n", "--nproc-per-node"},
    {"-np", "--nproc-per-node"},
    {"--np", "--nproc-per-node"},
    {"-ppn", "--nproc-per-node"},
    {"--ppn", "--nproc-per-node"},
    {"--npernode", "--nproc-per-node"},
    {"--nproc", "--nproc-per-node"}, /* of variables: as an option it is short for the same */
    {"--nprocs", "--nproc-per-node"},
    {"--ntasks-per-node", "--nproc-per-node"},
    {"--num-processes", "--nproc-per-node"},
    {"--num_processes", "--nproc-per-node"},
    {"--num-gpus", "--nproc-per-node"},
    {"--num_gpus", "--nproc-per-node"},
    {"--gpus", "--nproc-per-node"},
    {"--gpus-per-node", "--nproc-per-node"},
    {"-N", "--nnodes"},
    {"--nodes", "--nnodes"},
    {"--num-nodes", "--nnodes"},
    {"--num_nodes", "--nnodes"},
    {"--num-machines", "--nnodes"},
    {"--num_machines", "--nnodes"},
    {"--rank", "--node-rank"},
    {"--machine-rank", "--node-rank"},
    {"--machine_rank", "--node-rank"},
    {"--main-process-ip", "--master-addr"},
    {"--main_process_ip", "--master-addr"},
    {"--main-process-port", "--master-port"},
    {"--main_process_port", "--master-port"},
    {NULL, NULL},
};

#define GROUP(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct option_group groups[] = {
    {"what torchrun has, too",
        GROUP("nnodes", "nproc_per_node", "rdzv_backend", "rdzv_endpoint", "rdzv_id", "rdzv_conf",
            "standalone", "max_restarts", "monitor_interval", "start_method", "role", "module",
            "no_python", "run_path", "node_rank", "master_addr", "master_port", "local_addr",
            "numa_binding", "signals_to_handle", "shutdown_timeout", "virtual_local_rank")},
    {"logs (torchrun has these, too)",
        GROUP("log_dir", "redirects", "tee", "log_line_prefix_template", "local_ranks_filter",
            "duplicate_stdout_filters", "duplicate_stderr_filters", "event_log_handler",
            "logs_specs", "chronicle", "metrics_file")},
    {"nodes", GROUP("slurm", "on_node_loss", "scale_up", "settling_time", "host_timeout",
                  "exit_barrier_timeout", "store_memory", "scratch")},
    {"failures",
        GROUP("restart_window", "no_progress_restarts", "restart_backoff", "exclude_after",
            "node_check", "node_check_timeout", "exit_code", "exit_on", "on_timer_expiry",
            "evidence", "evidence_timeout", "evidence_signal", "hang_after", "hang_action")},
    {"standby", GROUP("standby", "standby_parent", "standby_after", "standby_timeout",
                    "standby_rest", "progress")},
    {"security", GROUP("token_file", "auth", "worker_store_from")},
    {"about muster", GROUP("help", "version", "print_completion")},
    {NULL, NULL},
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
    .strangers = strangers,
    .groups = groups,
    .examples =
        "  muster run --nproc-per-node 4 --max-restarts 3 train.py\n"
        "      four workers on this machine, started again up to three times\n"
        "  muster run --nnodes 2:4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node0 "
        "train.py\n"
        "      the same line on each of two to four machines; the workers go on when one is lost\n",
};

/* Options. */

static char *upper_name(const struct option_definition *definition) {
    char *name = memory_duplicate_string(definition->destination);
    for (char *each = name; *each != '\0'; each++) {
        *each = *each >= 'a' && *each <= 'z' ? (char)(*each - 'a' + 'A') : *each;
    }
    return name;
}

static const char *long_name(const struct option_definition *definition) {
    return text_starts_with(definition->names[0], "--") ? definition->names[0]
                                                        : definition->names[1];
}

/* Whether `word`, an option, would be called `name` as a variable. */
static bool is_called(const char *word, const char *name, size_t length) {
    const char *rest = word + strspn(word, "-");
    for (size_t i = 0; i < length; i++) {
        char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
        if (rest[i] == '\0' || c != (rest[i] == '-' ? '_' : rest[i])) {
            return false;
        }
    }
    return rest[length] == '\0';
}

/* What others call so, or NULL. */
static const struct option_definition *of_others(const char *name, size_t length) {
    for (const struct option_stranger *each = strangers; each->word != NULL; each++) {
        for (size_t i = 0; i < launch_table.definition_count && is_called(each->word, name, length);
             i++) {
            const struct option_definition *definition = &launch_table.definitions[i];
            if (!option_is_positional(definition) &&
                text_equals(long_name(definition), each->name)) {
                return definition;
            }
        }
    }
    return NULL;
}

/* PET_NPROC_PERNODE, PET_NUMA_BINDING. `name` is without the prefix. */
static void warn_of_variable(const char *name, size_t length, struct text_list *warnings) {
    const struct option_definition *found = NULL;
    size_t best = 0;
    for (size_t i = 0; i < launch_table.definition_count; i++) {
        const struct option_definition *definition = &launch_table.definitions[i];
        char *known = upper_name(definition);
        bool is_this = strlen(known) == length && strncmp(name, known, length) == 0;
        bool is_like = !option_is_positional(definition) &&
                       option_suggestion_is_better(name, length, definition->destination, &best);
        free(known);
        if (is_this && definition->reads_environment) {
            return;
        }
        found = is_this || is_like ? definition : found;
    }
    found = found != NULL ? found : of_others(name, length);
    char *meant = found == NULL              ? memory_duplicate_string("")
                  : found->reads_environment ? option_variable_name(&launch_table, found)
                                             : memory_duplicate_string(long_name(found));
    text_list_add_taken(
        warnings, text_format("%s%.*s is no option's variable and has no effect%s%s%s",
                      launch_table.environment_prefix, (int)length, name,
                      found != NULL ? " (did you mean " : "", meant, found != NULL ? "?)" : ""));
    free(meant);
}

#define OWN_PREFIX "MUSTER_"

/* What Muster or its Python package reads, and what workers are given, who may start a launcher. */
static const char *const own_variables[] = {
    "MUSTER_HEALTH_CHECK_ADDRESS",
    "MUSTER_HEALTH_CHECK_HOSTS",
    "MUSTER_HEALTH_CHECK_TIMEOUT",
    "MUSTER_JOB_TOKEN",
    "MUSTER_LIBRARY",
    "MUSTER_MUNGE_SOCKET",
    "MUSTER_RUNTIME_DIR",
    "MUSTER_SCRATCH",
    "MUSTER_SCRATCH_BYTES",
    "MUSTER_STANDBY",
    "MUSTER_STANDBY_NOBODY",
    "MUSTER_WORKER",
};

/* Kubernetes gives each pod the addresses of services; one of them may be called "muster". */
static bool is_of_service(const char *name) {
    return strstr(name, "_SERVICE_HOST") != NULL || strstr(name, "_SERVICE_PORT") != NULL ||
           strstr(name, "_PORT_") != NULL ||
           text_equals(name + strlen(name) - strlen("_PORT"), "_PORT");
}

/* MUSTER_NNODES: what its option is called in the environment, or NULL. */
static char *variable_of_option(const char *name) {
    for (size_t i = 0; i < launch_table.definition_count; i++) {
        const struct option_definition *definition = &launch_table.definitions[i];
        char *known = upper_name(definition);
        bool is_this = definition->reads_environment && text_equals(known, name);
        free(known);
        if (is_this) {
            return option_variable_name(&launch_table, definition);
        }
    }
    return NULL;
}

static void warn_of_own_variable(const char *name, struct text_list *warnings) {
    const char *word = name + strlen(OWN_PREFIX);
    const char *found = NULL;
    size_t best = 0;
    for (size_t i = 0; i < sizeof own_variables / sizeof *own_variables; i++) {
        if (text_equals(name, own_variables[i])) {
            return;
        }
        const char *known = own_variables[i] + strlen(OWN_PREFIX);
        bool is_like = option_suggestion_is_better(word, strlen(word), known, &best);
        bool is_part = strstr(known, word) != NULL || strstr(word, known) != NULL;
        found = is_like || (found == NULL && is_part) ? own_variables[i] : found;
    }
    if (is_of_service(name)) {
        return;
    }
    char *meant = variable_of_option(word);
    meant = meant != NULL || found == NULL ? meant : memory_duplicate_string(found);
    text_list_add_taken(warnings, text_format("%s is no variable that Muster reads%s%s%s", name,
                                      meant != NULL ? " (did you mean " : "",
                                      meant != NULL ? meant : "", meant != NULL ? "?)" : ""));
    free(meant);
}

static void warn_of_variables(const struct text_list *environment, struct text_list *warnings) {
    size_t prefix = strlen(launch_table.environment_prefix);
    for (size_t i = 0; i < environment->count; i++) {
        const char *variable = environment->items[i];
        if (text_starts_with(variable, launch_table.environment_prefix)) {
            warn_of_variable(variable + prefix, strcspn(variable + prefix, "="), warnings);
        } else if (text_starts_with(variable, OWN_PREFIX)) {
            char *name = text_format("%.*s", (int)strcspn(variable, "="), variable);
            warn_of_own_variable(name, warnings);
            free(name);
        }
    }
}

void launch_options_parse(const char *program, const struct text_list *arguments,
    const struct text_list *environment, struct launch_options *out_options) {
    struct option_result result;
    struct launch_options options = {0};
    option_parse(&launch_table, program, arguments, environment, &result);
    bool is_ready = result.outcome == OPTION_OUTCOME_VALUES &&
                    config_build(&result, environment, &options.config) == FAILURE_NONE;
    if (is_ready) {
        warn_of_variables(environment, &options.config.warnings);
    }
    options.outcome = is_ready ? OPTION_OUTCOME_VALUES : result.outcome;
    options.text = result.text;
    result.text = NULL;
    option_result_clear(&result);
    *out_options = options;
}

void launch_options_clear(struct launch_options *options) {
    free(options->text);
    launch_config_clear(&options->config);
    *options = (struct launch_options){0};
}
