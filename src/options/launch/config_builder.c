/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/config_builder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/standby/standby_plan.h"
#include "core/telling/health.h"
#include "core/workers/log_plan.h"
#include "core/workers/restart_history.h"
#include "options/launch/option_values.h"
#include "options/launch/rendezvous_options.h"
#include "options/slurm/slurm_step.h"

/* The options about the workers' output: log files, redirection, the console's line prefix, and
 * filters. They are combined as in run.py config_from_args and multiprocessing/api.py
 * DefaultLogsSpecs. Opens nothing. */

#define PREFIX_TEMPLATE_MAXIMUM 4096

static bool asks_for_files(const struct launch_streams *streams) {
    bool asks = streams->for_all != 0;
    for (size_t i = 0; i < streams->rank_count; i++) {
        asks = asks || streams->by_rank[i] > 0;
    }
    return asks;
}

/* With --log-dir /dev/null there are no files, so options that need files are refused. */
static enum failure_code check_log_files(
    struct option_result *options, struct launch_config *config) {
    if (log_plan_has_directory(config)) {
        return FAILURE_NONE;
    }
    bool filters_stdout = config->duplicate_stdout_filters.count > 0;
    if (filters_stdout || config->duplicate_stderr_filters.count > 0) {
        option_result_reject(options,
            filters_stdout ? "duplicate_stdout_filters" : "duplicate_stderr_filters",
            "needs a log file, and --log-dir /dev/null asks for none; give another directory");
        return FAILURE_INVALID;
    }
    if (asks_for_files(&config->redirects) || asks_for_files(&config->tee)) {
        text_list_add(&config->warnings,
            "--redirects and --tee have no effect: --log-dir /dev/null asks for no log "
            "files, so workers write to the console");
    }
    return FAILURE_NONE;
}

static enum failure_code apply_streams(
    struct option_result *options, struct launch_config *config) {
    struct text reason = {0};
    enum failure_code code =
        option_parse_streams(option_result_text(options, "redirects"), &config->redirects, &reason);
    if (code != FAILURE_NONE) {
        return option_result_settle(options, "redirects", code, &reason);
    }
    code = option_parse_streams(option_result_text(options, "tee"), &config->tee, &reason);
    return option_result_settle(options, "tee", code, &reason);
}

static enum failure_code apply_ranks_filter(
    struct option_result *options, struct launch_config *config) {
    const char *filter = option_result_text(options, "local_ranks_filter");
    if (*filter == '\0') {
        return FAILURE_NONE;
    }
    struct text reason = {0};
    enum failure_code code = option_parse_rank_list(
        filter, &config->local_ranks_filter, &config->local_ranks_filter_count, &reason);
    config->has_local_ranks_filter = code == FAILURE_NONE;
    return option_result_settle(options, "local_ranks_filter", code, &reason);
}

static enum failure_code apply_files(struct option_result *options, struct launch_config *config) {
    config->log_dir = option_copy_unless_empty(option_result_text(options, "log_dir"));
    text_list_add_all(&config->duplicate_stdout_filters,
        &option_result_value(options, "duplicate_stdout_filters")->list);
    text_list_add_all(&config->duplicate_stderr_filters,
        &option_result_value(options, "duplicate_stderr_filters")->list);
    return check_log_files(options, config);
}

/* It stands before every line, so a long one is a mistake. */
static enum failure_code check_prefix(
    struct option_result *options, const char *template, bool is_option) {
    size_t length = template == NULL ? 0 : strlen(template);
    if (length <= PREFIX_TEMPLATE_MAXIMUM) {
        return FAILURE_NONE;
    }
    struct text reason = {0};
    text_append_format(&reason,
        "the template has %zu bytes, and %d are the most; it stands before each line", length,
        PREFIX_TEMPLATE_MAXIMUM);
    if (is_option) {
        option_result_reject(options, "log_line_prefix_template", "%s", text_string(&reason));
    } else {
        option_result_reject(
            options, NULL, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE: %s", text_string(&reason));
    }
    text_clear(&reason);
    return FAILURE_INVALID;
}

static enum failure_code apply_prefix(struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    const char *template = option_result_text(options, "log_line_prefix_template");
    bool is_option = *template != '\0';
    if (!is_option) {
        template = text_list_variable(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
    }
    enum failure_code code = check_prefix(options, template, is_option);
    if (code != FAILURE_NONE) {
        return code;
    }
    config->log_line_prefix_template = option_copy_unless_empty(template);
    struct text_list unknown = {0};
    log_plan_unknown_names(config, &unknown);
    for (size_t i = 0; i < unknown.count; i++) {
        text_list_add_taken(&config->warnings,
            text_format("log line prefix template: ${%s} is left as it is; the macros are "
                        "${role_name}, ${local_rank}, ${rank} and ${hostname}",
                unknown.items[i]));
    }
    text_list_clear(&unknown);
    return FAILURE_NONE;
}

/* Fills the log part of `config` (log_dir to duplicate_stderr_filters) and adds warnings.
 * FAILURE_INVALID: `options` has become a mistake. The caller clears `config` in every case. */
static enum failure_code log_options_apply(struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    enum failure_code code = apply_streams(options, config);
    if (code == FAILURE_NONE) {
        code = apply_ranks_filter(options, config);
    }
    if (code == FAILURE_NONE) {
        code = apply_files(options, config);
    }
    if (code == FAILURE_NONE) {
        code = apply_prefix(options, environment, config);
    }
    return code;
}

/* Times of a job of changing nodes that cannot work together, though each of them could work with
 * others. Only times that the user has given are compared: a default gives way. torchrun accepts
 * all of them, and its job then never begins, or does not survive the loss of a node. */

static bool is_conf(const struct launch_config *config, const char *key) {
    return text_list_variable(&config->rdzv_conf, key) != NULL;
}

static bool is_option(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT;
}

static bool is_longer(struct duration left, struct duration right) {
    return left.nanoseconds > right.nanoseconds;
}

/* Where all nodes are needed there is no last call. */
static bool check_last_call(struct option_result *options, const struct launch_config *config) {
    const struct rendezvous_settings *times = &config->dynamic.settings;
    if (config->minimum_nodes == config->maximum_nodes || !is_conf(config, "last_call_timeout") ||
        !is_conf(config, "join_timeout") ||
        !is_longer(times->last_call_timeout, times->join_timeout)) {
        return true;
    }
    option_result_reject(options, "rdzv_conf",
        "join_timeout=%g is shorter than last_call_timeout=%g: the nodes would give up before they "
        "have waited for more than %d of them; give a longer join_timeout or a shorter "
        "last_call_timeout",
        duration_seconds(times->join_timeout), duration_seconds(times->last_call_timeout),
        config->minimum_nodes);
    return false;
}

static bool check_keep_alive(struct option_result *options, const struct launch_config *config) {
    const struct rendezvous_settings *times = &config->dynamic.settings;
    struct duration silence = {
        times->keep_alive_interval.nanoseconds * times->keep_alive_max_attempt};
    bool is_given =
        is_conf(config, "keep_alive_interval") || is_conf(config, "keep_alive_max_attempt");
    if (!is_given || !is_conf(config, "join_timeout") || !is_longer(silence, times->join_timeout)) {
        return true;
    }
    option_result_reject(options, "rdzv_conf",
        "keep_alive_interval=%g times keep_alive_max_attempt=%d is longer than join_timeout=%g: "
        "when a node is lost, the others would give up before they know of it; give shorter signs "
        "of life or a longer join_timeout",
        duration_seconds(times->keep_alive_interval), times->keep_alive_max_attempt,
        duration_seconds(times->join_timeout));
    return false;
}

static bool check_host_timeout(struct option_result *options, const struct launch_config *config) {
    const struct rendezvous_settings *times = &config->dynamic.settings;
    bool is_by_option = is_option(options, "host_timeout");
    if (is_by_option && times->host_timeout.nanoseconds == 0) {
        option_result_reject(options, "host_timeout", "invalid value 0: give seconds, more than 0");
        return false;
    }
    if ((!is_by_option && !is_conf(config, "host_timeout")) || !is_conf(config, "join_timeout") ||
        !is_longer(times->host_timeout, times->join_timeout)) {
        return true;
    }
    option_result_reject(options, is_by_option ? "host_timeout" : "rdzv_conf",
        "host_timeout=%g is longer than join_timeout=%g, and no node looks for the store for "
        "longer "
        "than that; give a shorter host_timeout or a longer join_timeout",
        duration_seconds(times->host_timeout), duration_seconds(times->join_timeout));
    return false;
}

static bool check_settling(struct option_result *options, const struct launch_config *config) {
    struct duration join = config->dynamic.settings.join_timeout;
    if (!is_option(options, "settling_time") || !is_conf(config, "join_timeout") ||
        is_longer(join, config->settling_time)) {
        return true;
    }
    option_result_reject(options, "settling_time",
        "%g s are not shorter than join_timeout=%g (--rdzv-conf): nodes that do not settle would "
        "give up before this node joins them; give a shorter time or a longer join_timeout",
        duration_seconds(config->settling_time), duration_seconds(join));
    return false;
}

/* `config` has all its times. FAILURE_INVALID: the mistake in `options` names both times. */
static enum failure_code timeout_pairs_check(
    struct option_result *options, const struct launch_config *config) {
    bool is_right = config->rendezvous != LAUNCH_RENDEZVOUS_DYNAMIC ||
                    (check_last_call(options, config) && check_keep_alive(options, config) &&
                        check_host_timeout(options, config) && check_settling(options, config));
    return is_right ? FAILURE_NONE : FAILURE_INVALID;
}

/* What a job takes from Slurm where the command line says nothing about its nodes: how many there
 * are, where they meet, the job's name, and how many workers each has. `srun muster run train.py`
 * needs no more. It fills in options that were not given, so all rules for given ones hold for
 * them, too. Under the name of torchrun nothing is taken, as torchrun takes nothing; a warning says
 * what to write. */

/* Ports at which nodes meet are drawn from these, by job and step: below those that the kernel
 * gives to clients, and below torchrun's own 29400 and 29500. */
#define SLURM_FIRST_PORT 20000

#define SLURM_PORT_COUNT 9391

/* Jobs that follow each other, and the steps of one job, get ports apart from each other. */
#define PORTS_OF_A_JOB 97
/* How much of the list of nodes is repeated. */
#define SHOWN_LENGTH 60

static bool is_given(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT &&
           option_result_value(options, destination)->is_set;
}

/* Whether the command line says where nodes meet, or that there are none to meet. */
static bool says_where_to_meet(const struct option_result *options) {
    static const char *const destinations[] = {"rdzv_backend", "rdzv_endpoint", "rdzv_id",
        "rdzv_conf", "node_rank", "master_addr", "master_port"};
    for (size_t i = 0; i < sizeof destinations / sizeof *destinations; i++) {
        if (is_given(options, destinations[i])) {
            return true;
        }
    }
    return option_result_value(options, "standalone")->flag;
}

/* Whether the command line asks for one node, or for what is refused later. */
static bool asks_for_one_node(const struct option_result *options) {
    int minimum = 0;
    int maximum = 0;
    struct text ignored = {0};
    enum failure_code code = option_parse_node_range(
        option_result_text(options, "nnodes"), &minimum, &maximum, &ignored);
    text_clear(&ignored);
    return is_given(options, "nnodes") && (code != FAILURE_NONE || maximum == 1);
}

static int port_of(const struct slurm_step *step) {
    return SLURM_FIRST_PORT + (int)((step->job * PORTS_OF_A_JOB + step->step) % SLURM_PORT_COUNT);
}

/* "2 nodes (node[1-2])", with a long list cut. The caller frees it. */
static char *nodes_of(const struct slurm_step *step) {
    bool is_long = strlen(step->node_list) > SHOWN_LENGTH;
    return text_format(
        "%zu nodes (%.*s%s)", step->hosts.count, SHOWN_LENGTH, step->node_list, is_long ? "…" : "");
}

/* Tells what was taken. One node does, since a job may have thousands. */
static void tell(const struct option_result *options, const struct slurm_step *step, bool is_first,
    struct launch_config *config) {
    char *nodes = nodes_of(step);
    const char *workers = option_result_text(options, "nproc_per_node");
    if (is_first) {
        config->notice = text_format("%s: Slurm's step %lld.%lld has %s; they meet at %s; "
                                     "workers on this one: %s (--slurm off takes nothing "
                                     "from Slurm)",
            options->program, (long long)step->job, (long long)step->step, nodes,
            option_result_text(options, "rdzv_endpoint"),
            text_equals(workers, "auto") ? "one for each GPU, or for each CPU where there is none"
                                         : workers);
    }
    free(nodes);
}

static void supply_taken(struct option_result *options, const char *destination, char *text_taken) {
    option_result_supply(options, destination, text_taken);
    free(text_taken);
}

static void take_from(
    const struct slurm_step *step, struct option_result *options, struct launch_config *config) {
    const char *first = step->hosts.items[0];
    bool is_first = step->node != NULL && text_equals(step->node, first);
    if (!is_given(options, "nnodes")) {
        supply_taken(options, "nnodes", text_format("%zu", step->hosts.count));
    }
    option_result_supply(options, "rdzv_backend", "c10d");
    supply_taken(options, "rdzv_endpoint", text_format("%s:%d", first, port_of(step)));
    supply_taken(
        options, "rdzv_id", text_format("%lld.%lld", (long long)step->job, (long long)step->step));
    if (step->node != NULL) { /* surer than what this machine knows about names */
        option_result_supply(options, "rdzv_conf", is_first ? "is_host=true" : "is_host=false");
    }
    if (!is_given(options, "nproc_per_node")) {
        supply_taken(options, "nproc_per_node",
            step->gpus > 0 ? text_format("%lld", (long long)step->gpus)
                           : memory_duplicate_string("auto"));
    }
    tell(options, step, is_first, config);
}

static enum failure_code refuse_tasks(
    struct option_result *options, const struct slurm_step *step) {
    option_result_reject(options, NULL,
        "Slurm starts %lld tasks on a node (step %lld.%lld), and each of them would be an agent "
        "with workers of its own; write srun --ntasks-per-node=1, and --nproc-per-node %lld for "
        "as many workers, or --slurm off",
        (long long)step->tasks_per_node, (long long)step->job, (long long)step->step,
        (long long)step->tasks_per_node);
    return FAILURE_INVALID;
}

static void warn_torchrun(const struct option_result *options, const struct slurm_step *step,
    struct launch_config *config) {
    char *nodes = nodes_of(step);
    text_list_add_taken(&config->warnings,
        text_format("Slurm's step %lld.%lld has %s, and torchrun takes nothing from Slurm: without "
                    "a place to meet each of them is a job of its own; write muster run in the "
                    "place of torchrun, or %s --nnodes %zu --rdzv-backend c10d --rdzv-endpoint "
                    "%s:%d --rdzv-id %lld.%lld",
            (long long)step->job, (long long)step->step, nodes, options->program, step->hosts.count,
            step->hosts.items[0], port_of(step), (long long)step->job, (long long)step->step));
    free(nodes);
}

/* A step of several nodes, whose variables can be read. */
static enum failure_code apply_step(
    struct option_result *options, const struct slurm_step *step, struct launch_config *config) {
    if (text_equals(options->program, "torchrun")) {
        warn_torchrun(options, step, config);
        return FAILURE_NONE;
    }
    if (step->tasks_per_node > 1) {
        return refuse_tasks(options, step);
    }
    take_from(step, options, config);
    return FAILURE_NONE;
}

static void warn_of_tasks(const struct slurm_step *step, struct launch_config *config) {
    text_list_add_taken(&config->warnings,
        text_format("Slurm starts %lld tasks on a node (step %lld.%lld), and each of them is a job "
                    "of its own, with a world of its own; write srun --ntasks-per-node=1, and "
                    "--nproc-per-node %lld for as many workers",
            (long long)step->tasks_per_node, (long long)step->job, (long long)step->step,
            (long long)step->tasks_per_node));
}

/* Where nothing is taken, several tasks are several jobs all the same. */
static void warn_of_several_jobs(
    const struct text_list *environment, struct launch_config *config) {
    struct slurm_step step;
    struct text ignored = {0};
    (void)!slurm_step_read(environment, &step, &ignored);
    if (step.tasks_per_node > 1) {
        warn_of_tasks(&step, config);
    }
    text_clear(&ignored);
    slurm_step_clear(&step);
}

/* A step of one node meets nobody, so it only has to be one task. What else its variables say
 * wrongly does not matter. */
static enum failure_code apply_one_node(struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    struct slurm_step step;
    struct text ignored = {0};
    enum failure_code code = FAILURE_NONE;
    (void)!slurm_step_read(environment, &step, &ignored);
    if (text_equals(options->program, "torchrun")) {
        if (step.tasks_per_node > 1) {
            warn_of_tasks(&step, config);
        }
    } else if (step.tasks_per_node > 1) {
        code = refuse_tasks(options, &step);
    } else if (step.gpus > 0 && !is_given(options, "nproc_per_node")) {
        supply_taken(options, "nproc_per_node", text_format("%lld", (long long)step.gpus));
        config->notice = text_format("%s: Slurm's step %lld.%lld has one node; workers: %lld, one "
                                     "for each GPU (--slurm off takes nothing from Slurm)",
            options->program, (long long)step.job, (long long)step.step, (long long)step.gpus);
    }
    text_clear(&ignored);
    slurm_step_clear(&step);
    return code;
}

/* In a batch script or on a terminal: this process is the only one, however many nodes there are.
 */
static void warn_without_step(const struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    long long nodes = slurm_job_node_count(environment);
    if (nodes > 1) {
        text_list_add_taken(&config->warnings,
            text_format("Slurm's job has %lld nodes, and this process runs on one of them alone; "
                        "write srun --ntasks-per-node=1 %s, or --standalone if one is meant",
                nodes, options->program));
    }
}

static enum failure_code apply(struct option_result *options, const struct text_list *environment,
    struct launch_config *config) {
    struct slurm_step step;
    struct text reason = {0};
    if (slurm_job_is_heterogeneous(environment)) {
        text_list_add(&config->warnings,
            "Slurm's job has parts of several kinds, of which --slurm auto takes nothing: give "
            "--nnodes, --rdzv-backend c10d, --rdzv-endpoint and --rdzv-id");
        return FAILURE_NONE;
    }
    enum failure_code code = slurm_step_read(environment, &step, &reason);
    if (code == FAILURE_NONE) {
        code = apply_step(options, &step, config);
    } else if (text_equals(options->program, "torchrun")) {
        code = FAILURE_NONE;
    } else {
        option_result_reject(options, NULL,
            "what Slurm says about this step cannot be used: %s; give --nnodes, --rdzv-backend "
            "c10d, --rdzv-endpoint and --rdzv-id, or --slurm off",
            text_string(&reason));
    }
    text_clear(&reason);
    slurm_step_clear(&step);
    return code;
}

/* srun brings together what all tasks of a step write. The prefix that others parse stays. */
static void name_node(const struct option_result *options, const struct text_list *environment,
    struct launch_config *config) {
    const char *node = text_list_variable(environment, "SLURMD_NODENAME");
    if (node != NULL && *node != '\0' && slurm_step_node_count(environment) > 1 &&
        !text_equals(options->program, "torchrun")) {
        config->shown_node = memory_duplicate_string(node);
    }
}

/* Fills in what Slurm says, and adds the line that says so, or warnings, to `config`.
 * FAILURE_INVALID: `options` has become a mistake. */
static enum failure_code slurm_options_apply(struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    bool is_off = text_equals(option_result_text(options, "slurm"), "off");
    config->is_signalled_by_slurm =
        !is_off && text_list_variable(environment, "SLURM_JOB_ID") != NULL;
    /* a worker inherits Slurm's variables, and may start jobs of its own */
    bool is_worker = text_list_variable(environment, "TORCHELASTIC_RUN_ID") != NULL;
    if (!is_worker) {
        name_node(options, environment, config);
    }
    if (is_off || is_worker || says_where_to_meet(options)) {
        return FAILURE_NONE;
    }
    if (asks_for_one_node(options)) {
        warn_of_several_jobs(environment, config);
        return FAILURE_NONE;
    }
    if (slurm_step_node_count(environment) > 1) {
        return apply(options, environment, config);
    }
    if (slurm_step_node_count(environment) == 1) {
        return apply_one_node(options, environment, config);
    }
    if (slurm_step_node_count(environment) == 0) {
        warn_without_step(options, environment, config);
    }
    return FAILURE_NONE;
}

/* Config builder. */

#define DEFAULT_SHUTDOWN_SECONDS 30
#define DEFAULT_EXIT_BARRIER_SECONDS 300
/* Real-time signals, less those that glibc takes for itself. */
#define EVIDENCE_SIGNAL_LOWEST 34
#define EVIDENCE_SIGNAL_HIGHEST 64

/* The state shared by the steps below. Each step handles one group of options; the first failure
 * ends the build. */
struct building {
    struct option_result *options;
    const struct text_list *environment;
    struct launch_config *config;
};

static const char *text_of(const struct building *building, const char *destination) {
    return option_result_text(building->options, destination);
}

static bool flag_of(const struct building *building, const char *destination) {
    return option_result_value(building->options, destination)->flag;
}

static void warn(struct building *building, const char *warning) {
    text_list_add(&building->config->warnings, warning);
}

static void warn_of_value(
    struct building *building, const char *name, const char *value, const char *expected) {
    text_list_add_taken(&building->config->warnings,
        text_format("%s='%s' has no effect: give %s", name, value, expected));
}

static enum failure_code build_rendezvous(struct building *building) {
    enum failure_code code =
        slurm_options_apply(building->options, building->environment, building->config);
    if (code == FAILURE_NONE) {
        code = rendezvous_options_apply(building->options, building->config);
    }
    if (code == FAILURE_NONE) {
        building->config->local_address = option_copy_unless_empty(text_of(building, "local_addr"));
    }
    return code;
}

static void build_store_clients(struct building *building) {
    struct launch_config *config = building->config;
    const char *whom = text_of(building, "worker_store_from");
    config->is_store_for_proven = *whom == '\0';
    config->is_store_for_every_user = text_equals(whom, "any");
    config->is_store_for_round = text_equals(whom, "round");
}

/* Nodes that are all found at a loopback address are all on this machine. A node that is told to
 * host the store may be known to others by another name. */
static bool has_other_machines(const struct launch_config *config) {
    if (config->is_local || config->maximum_nodes == 1 || config->dynamic.file != NULL) {
        return false;
    }
    bool is_fixed = config->rendezvous == LAUNCH_RENDEZVOUS_STATIC;
    const char *host = is_fixed ? config->master_host : config->dynamic.host;
    bool may_be_elsewhere = !is_fixed && config->dynamic.is_host != LAUNCH_IS_HOST_UNSET;
    return host != NULL && (may_be_elsewhere || !endpoint_is_loopback(host));
}

static void take_token(struct building *building, const char *token, const char *file) {
    struct launch_config *config = building->config;
    config->auth = LAUNCH_AUTH_TOKEN;
    if (file != NULL) {
        config->token_file = memory_duplicate_string(file);
    } else {
        config->job_token = memory_duplicate_string(token);
    }
}

/* `wanted` is empty without --auth. */
static enum failure_code choose_auth(
    struct building *building, const char *wanted, const char *token, const char *file) {
    struct launch_config *config = building->config;
    bool has_token = token != NULL || file != NULL;
    bool is_munge = text_equals(wanted, "munge");
    if (text_equals(wanted, "token") && !has_token) {
        option_result_reject(building->options, "auth",
            "token: there is none; set MUSTER_JOB_TOKEN or give --token-file");
        return FAILURE_INVALID;
    }
    if (config->dynamic.file != NULL && (has_token || is_munge)) {
        warn(building, is_munge ? "--auth munge is not used: with store_type=file whoever may "
                                  "write the file can join the job"
                                : "the job token is not used: with store_type=file whoever may "
                                  "write the file can join the job");
    } else if (is_munge) {
        config->auth = LAUNCH_AUTH_MUNGE;
    } else if (has_token) {
        take_token(building, token, file);
    } else if (has_other_machines(config)) {
        config->auth = LAUNCH_AUTH_MUNGE_HERE;
    }
    return FAILURE_NONE;
}

/* A token that is given and cannot be used must not leave a job open without a word. */
static enum failure_code build_auth(struct building *building) {
    struct launch_config *config = building->config;
    const char *file = text_of(building, "token_file");
    const char *wanted = text_of(building, "auth");
    build_store_clients(building);
    config->munge_socket =
        option_copy_unless_empty(text_list_variable(building->environment, "MUSTER_MUNGE_SOCKET"));
    if (!text_equals(wanted, "none")) {
        return choose_auth(building, wanted,
            text_list_variable(building->environment, "MUSTER_JOB_TOKEN"),
            *file != '\0' ? file : NULL);
    }
    config->auth = LAUNCH_AUTH_NONE;
    if (!config->is_local) {
        warn(building, "--auth none: the nodes of this job do not prove themselves to each other");
    }
    return FAILURE_NONE;
}

static enum failure_code build_logs(struct building *building) {
    return log_options_apply(building->options, building->environment, building->config);
}

static enum failure_code build_worker_count(struct building *building) {
    struct text reason = {0};
    enum failure_code code = option_parse_worker_count(text_of(building, "nproc_per_node"),
        &building->config->worker_count_kind, &building->config->worker_count, &reason);
    if (code == FAILURE_NONE && building->config->worker_count_kind == LAUNCH_COUNT_NAMED) {
        building->config->device_name =
            memory_duplicate_string(text_of(building, "nproc_per_node"));
    }
    building->config->sets_omp_num_threads =
        text_list_variable(building->environment, "OMP_NUM_THREADS") == NULL;
    building->config->is_virtual_local_rank = flag_of(building, "virtual_local_rank");
    return option_result_settle(building->options, "nproc_per_node", code, &reason);
}

static enum failure_code build_supervision(struct building *building) {
    int64_t restarts = option_result_value(building->options, "max_restarts")->integer;
    double interval = option_result_value(building->options, "monitor_interval")->number;
    if (restarts < 0 || restarts > LAUNCH_MAXIMUM_RESTARTS) {
        option_result_reject(building->options, "max_restarts",
            "invalid value %lld: give a number of restarts from 0 to %d", (long long)restarts,
            LAUNCH_MAXIMUM_RESTARTS);
        return FAILURE_INVALID;
    }
    if (!(interval > 0)) {
        option_result_reject(building->options, "monitor_interval",
            "invalid value %s: give seconds above 0", text_of(building, "monitor_interval"));
        return FAILURE_INVALID;
    }
    building->config->max_restarts = (int)restarts;
    building->config->monitor_interval = duration_from_seconds(interval);
    if (flag_of(building, "run_path") && !text_equals(text_of(building, "start_method"), "spawn")) {
        warn(building, "--start-method makes no difference: each worker is a fresh process");
    }
    return FAILURE_NONE;
}

/* A node that pauses is awaited by the others. */
static struct duration patience_of_others(const struct launch_config *config) {
    return config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC ? config->dynamic.settings.join_timeout
                                                           : config->store_timeout;
}

static enum failure_code build_fruitless(struct building *building) {
    struct launch_config *config = building->config;
    int64_t attempts = option_result_value(building->options, "no_progress_restarts")->integer;
    double backoff = option_result_value(building->options, "restart_backoff")->number;
    if (attempts < 0 || attempts > LAUNCH_MAXIMUM_RESTARTS) {
        option_result_reject(building->options, "no_progress_restarts",
            "invalid value %lld: give a number of attempts from 1 to %d, or 0 for no limit",
            (long long)attempts, LAUNCH_MAXIMUM_RESTARTS);
        return FAILURE_INVALID;
    }
    double most = config->maximum_nodes > 1 ? duration_seconds(patience_of_others(config)) / 2
                                            : LAUNCH_MAXIMUM_BACKOFF_SECONDS;
    if (!(backoff >= 0 && backoff <= most)) {
        option_result_reject(building->options, "restart_backoff",
            "invalid value %s: give seconds from 0 to %g%s", text_of(building, "restart_backoff"),
            most,
            config->maximum_nodes > 1 ? ", half of the time for which nodes wait for each other "
                                        "(--rdzv-conf)"
                                      : "");
        return FAILURE_INVALID;
    }
    config->no_progress_restarts = (int)attempts;
    config->restart_backoff = duration_from_seconds(backoff);
    return FAILURE_NONE;
}

static enum failure_code build_restart_window(struct building *building) {
    struct launch_config *config = building->config;
    double seconds = option_result_value(building->options, "restart_window")->number;
    if (!(seconds >= 0)) {
        option_result_reject(building->options, "restart_window",
            "invalid value %s: give seconds above 0, or 0 for no window",
            text_of(building, "restart_window"));
        return FAILURE_INVALID;
    }
    config->restart_window = duration_from_seconds(seconds);
    config->dynamic.settings.restart_window = config->restart_window;
    if (seconds > 0 && config->max_restarts > RESTART_HISTORY_MAXIMUM) {
        option_result_reject(building->options, "restart_window",
            "counts no more than %d restarts, and --max-restarts is %d; give fewer, or leave the "
            "window out",
            RESTART_HISTORY_MAXIMUM, config->max_restarts);
        return FAILURE_INVALID;
    }
    return FAILURE_NONE;
}

static enum failure_code build_exclusion(struct building *building) {
    int64_t failures = option_result_value(building->options, "exclude_after")->integer;
    if (failures < 0 || failures > LAUNCH_MAXIMUM_RESTARTS) {
        option_result_reject(building->options, "exclude_after",
            "invalid value %lld: give a number of failures from 1 to %d, or 0 for no limit",
            (long long)failures, LAUNCH_MAXIMUM_RESTARTS);
        return FAILURE_INVALID;
    }
    if (failures > 0 && building->config->rendezvous != LAUNCH_RENDEZVOUS_DYNAMIC) {
        warn(building, "--exclude-after has no effect: the nodes of this job cannot come and go "
                       "(--rdzv-backend)");
    }
    building->config->dynamic.settings.exclude_after = (int)failures;
    return FAILURE_NONE;
}

static enum failure_code build_node_check(struct building *building) {
    struct launch_config *config = building->config;
    double seconds = option_result_value(building->options, "node_check_timeout")->number;
    if (!(seconds > 0)) {
        option_result_reject(building->options, "node_check_timeout",
            "invalid value %s: give seconds above 0", text_of(building, "node_check_timeout"));
        return FAILURE_INVALID;
    }
    config->node_check = option_copy_unless_empty(text_of(building, "node_check"));
    config->node_check_timeout = duration_from_seconds(seconds);
    return FAILURE_NONE;
}

/* As in torchrun, a value that cannot be read switches the feature off. Unlike there, a warning
 * says so. */
static enum failure_code build_watching(struct building *building) {
    struct launch_config *config = building->config;
    const char *timers =
        text_list_variable(building->environment, "TORCHELASTIC_ENABLE_FILE_TIMER");
    const char *stuck =
        text_list_variable(building->environment, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
    double seconds = 0;
    config->serves_timers = timers != NULL && text_equals(timers, "1");
    config->timer_file = option_copy_unless_empty(
        text_list_variable(building->environment, "TORCHELASTIC_TIMER_FILE"));
    if (stuck != NULL && *stuck != '\0' && text_parse_float(stuck, &seconds) != FAILURE_NONE) {
        warn(building, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT is no number of seconds and has "
                       "no effect");
    }
    config->stuck_timeout = duration_from_seconds(seconds);
    config->on_timer_expiry = text_equals(text_of(building, "on_timer_expiry"), "exit-agent")
                                  ? LAUNCH_TIMER_EXPIRY_EXIT_AGENT
                                  : LAUNCH_TIMER_EXPIRY_RESTART_WORKER;
    return FAILURE_NONE;
}

static void build_health_timeout(struct building *building) {
    static const char name[] = "MUSTER_HEALTH_CHECK_TIMEOUT";
    const char *text = text_list_variable(building->environment, name);
    double seconds = HEALTH_TIMEOUT_SECONDS;
    bool is_valid = text == NULL || *text == '\0' ||
                    (text_parse_float(text, &seconds) == FAILURE_NONE && seconds > 0);
    if (!is_valid) {
        warn_of_value(building, name, text, "a number of seconds more than 0");
        seconds = HEALTH_TIMEOUT_SECONDS;
    }
    building->config->health_timeout = duration_from_seconds(seconds);
}

/* As in torchrun, an invalid port does not stop the launch. */
static enum failure_code build_health(struct building *building) {
    static const char name[] = "TORCHELASTIC_HEALTH_CHECK_PORT";
    struct launch_config *config = building->config;
    const char *port = text_list_variable(building->environment, name);
    int64_t number;
    build_health_timeout(building);
    config->health_address = option_copy_unless_empty(
        text_list_variable(building->environment, "MUSTER_HEALTH_CHECK_ADDRESS"));
    config->health_hosts = option_copy_unless_empty(
        text_list_variable(building->environment, "MUSTER_HEALTH_CHECK_HOSTS"));
    if (port == NULL) {
        return FAILURE_NONE;
    }
    if (text_parse_integer(port, &number) == FAILURE_NONE && number >= 0 && number <= UINT16_MAX) {
        config->serves_health = true;
        config->health_port = (int)number;
    } else {
        warn_of_value(building, name, port, "a port from 0 to 65535");
    }
    return FAILURE_NONE;
}

static enum failure_code build_evidence_signal(struct building *building) {
    struct launch_config *config = building->config;
    const char *signal = text_of(building, "evidence_signal");
    int64_t number = 0;
    bool is_off = text_equals(signal, "off");
    if (!is_off && (text_parse_integer(signal, &number) != FAILURE_NONE ||
                       number < EVIDENCE_SIGNAL_LOWEST || number > EVIDENCE_SIGNAL_HIGHEST)) {
        option_result_reject(building->options, "evidence_signal",
            "invalid value %s: give the number of a real-time signal, %d to %d, or off", signal,
            EVIDENCE_SIGNAL_LOWEST, EVIDENCE_SIGNAL_HIGHEST);
        return FAILURE_INVALID;
    }
    config->evidence_signal = config->evidence == LAUNCH_EVIDENCE_OFF ? 0 : (int)number;
    return FAILURE_NONE;
}

static enum failure_code build_evidence(struct building *building) {
    struct launch_config *config = building->config;
    const char *evidence = text_of(building, "evidence");
    double seconds = option_result_value(building->options, "evidence_timeout")->number;
    if (seconds < 0) {
        option_result_reject(building->options, "evidence_timeout",
            "invalid value %s: give seconds, 0 or more", text_of(building, "evidence_timeout"));
        return FAILURE_INVALID;
    }
    config->evidence_timeout = duration_from_seconds(seconds);
    if (config->evidence_timeout.nanoseconds == 0 || text_equals(evidence, "off")) {
        config->evidence = LAUNCH_EVIDENCE_OFF;
    } else {
        config->evidence =
            text_equals(evidence, "full") ? LAUNCH_EVIDENCE_FULL : LAUNCH_EVIDENCE_BASIC;
    }
    return build_evidence_signal(building);
}

/* By the steps that workers take. */
static bool judges_attempts(const struct launch_config *config) {
    return config->no_progress_restarts > 0 || config->restart_backoff.nanoseconds > 0;
}

static enum failure_code build_standby(struct building *building) {
    struct launch_config *config = building->config;
    const char *standby = text_of(building, "standby");
    double seconds = option_result_value(building->options, "standby_after")->number;
    if (!(seconds > 0)) {
        option_result_reject(building->options, "standby_after",
            "invalid value %s: give seconds above 0", text_of(building, "standby_after"));
        return FAILURE_INVALID;
    }
    config->standby_after = duration_from_seconds(seconds);
    double timeout = option_result_value(building->options, "standby_timeout")->number;
    if (!(timeout >= 0)) {
        option_result_reject(building->options, "standby_timeout",
            "invalid value %s: give seconds, 0 or more", text_of(building, "standby_timeout"));
        return FAILURE_INVALID;
    }
    config->standby_timeout = duration_from_seconds(timeout);
    config->standby_rest = option_result_value(building->options, "standby_rest")->number;
    if (!(config->standby_rest >= 0 && config->standby_rest <= LAUNCH_MAXIMUM_STANDBY_REST)) {
        option_result_reject(building->options, "standby_rest",
            "invalid value %s: give a factor from 0 (never rest) to %d",
            text_of(building, "standby_rest"), LAUNCH_MAXIMUM_STANDBY_REST);
        return FAILURE_INVALID;
    }
    config->has_standby_parent = text_equals(text_of(building, "standby_parent"), "on");
    config->standby = text_equals(standby, "on")     ? LAUNCH_STANDBY_ON
                      : text_equals(standby, "auto") ? LAUNCH_STANDBY_AUTO
                                                     : LAUNCH_STANDBY_OFF;
    config->has_progress = is_given(building->options, "progress")
                               ? text_equals(text_of(building, "progress"), "auto")
                               : config->standby == LAUNCH_STANDBY_ON ||
                                     standby_choose(config, 1, INT_MAX) == STANDBY_CHOICE_WANTED ||
                                     judges_attempts(config);
    return FAILURE_NONE;
}

#define HANG_SECONDS_LONGEST 1e6

static enum failure_code build_hang(struct building *building) {
    struct launch_hang *hang = &building->config->hang;
    const char *after = text_of(building, "hang_after");
    double seconds = 0;
    hang->is_learned = text_equals(after, "auto");
    hang->is_wanted = !text_equals(after, "off");
    hang->restarts = text_equals(text_of(building, "hang_action"), "restart");
    if (!hang->is_wanted) {
        if (hang->restarts) {
            text_list_add(&building->config->warnings,
                "--hang-action restart has no effect: --hang-after says when a job hangs, and is "
                "off");
        }
        return FAILURE_NONE;
    }
    if (!hang->is_learned && (text_parse_float(after, &seconds) != FAILURE_NONE || seconds < 1 ||
                                 seconds > HANG_SECONDS_LONGEST)) {
        option_result_reject(building->options, "hang_after",
            "invalid value %s: give seconds from 1 to %d, auto, or off", after,
            (int)HANG_SECONDS_LONGEST);
        return FAILURE_INVALID;
    }
    if (is_given(building->options, "progress") && !building->config->has_progress) {
        option_result_reject(building->options, "hang_after",
            "needs workers that tell of their steps, and --progress off asks for none; leave one "
            "of "
            "the two out");
        return FAILURE_INVALID;
    }
    hang->after = duration_from_seconds(seconds);
    building->config->has_progress = true;
    return FAILURE_NONE;
}

/* PyTorch registers its built-in log handling under the name "default" (entry point
 * torchrun.logs_specs). */
static enum failure_code build_plug_ins(struct building *building) {
    const struct option_value *given = option_result_value(building->options, "logs_specs");
    if (given->is_set && !text_equals(given->text, "default")) {
        option_result_reject(building->options, "logs_specs",
            "%s names a Python plug-in, but Muster has only its built-in logging, which is called "
            "default; use --log-dir, --redirects, --tee and --log-line-prefix-template",
            given->text);
        return FAILURE_UNSUPPORTED;
    }
    return FAILURE_NONE;
}

static enum failure_code build_events(struct building *building) {
    struct text reason = {0};
    building->config->chronicle = option_copy_unless_empty(text_of(building, "chronicle"));
    building->config->metrics_file = option_copy_unless_empty(text_of(building, "metrics_file"));
    enum failure_code code = option_parse_event_handler(text_of(building, "event_log_handler"),
        &building->config->event_handler, &building->config->event_file, &reason);
    return option_result_settle(building->options, "event_log_handler", code, &reason);
}

static enum failure_code build_store_memory(struct building *building) {
    struct launch_config *config = building->config;
    struct text reason = {0};
    const char *text = text_of(building, "store_memory");
    if (*text == '\0') {
        return FAILURE_NONE;
    }
    enum failure_code code = option_parse_memory(
        text, &config->store_memory_bytes, &config->store_memory_percent, &reason);
    return option_result_settle(building->options, "store_memory", code, &reason);
}

static enum failure_code build_scratch(struct building *building) {
    struct text reason = {0};
    const char *text = text_of(building, "scratch");
    if (*text == '\0') {
        return FAILURE_NONE;
    }
    enum failure_code code = option_parse_scratch(text, &building->config->scratch_bytes, &reason);
    return option_result_settle(building->options, "scratch", code, &reason);
}

static enum failure_code build_entry(struct building *building) {
    struct launch_config *config = building->config;
    bool is_module = flag_of(building, "module");
    bool is_program = flag_of(building, "no_python");
    if (*text_of(building, "training_script") == '\0') {
        option_result_reject(building->options, "training_script", "is empty");
        return FAILURE_INVALID;
    }
    if (flag_of(building, "run_path")) {
        config->entry = LAUNCH_ENTRY_RUN_PATH;
    } else if (is_module && is_program) {
        option_result_reject(building->options, "no_python",
            "contradicts -m/--module, which asks for Python; leave one of the two out");
        return FAILURE_INVALID;
    } else {
        config->entry = is_program  ? LAUNCH_ENTRY_PROGRAM
                        : is_module ? LAUNCH_ENTRY_MODULE
                                    : LAUNCH_ENTRY_SCRIPT;
    }
    config->script = memory_duplicate_string(text_of(building, "training_script"));
    text_list_add_all(&config->script_arguments,
        &option_result_value(building->options, "training_script_args")->list);
    config->python =
        option_copy_unless_empty(text_list_variable(building->environment, "PYTHON_EXEC"));
    config->role = memory_duplicate_string(text_of(building, "role"));
    return FAILURE_NONE;
}

static enum failure_code build_binding(struct building *building) {
    static const struct {
        const char *word;
        enum launch_numa_binding binding;
    } bindings[] = {{"node", LAUNCH_NUMA_NODE}, {"socket", LAUNCH_NUMA_SOCKET},
        {"exclusive", LAUNCH_NUMA_EXCLUSIVE}, {"core-complex", LAUNCH_NUMA_CORE_COMPLEX}};
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) {
        if (text_equals(text_of(building, "numa_binding"), bindings[i].word)) {
            building->config->numa_binding = bindings[i].binding;
        }
    }
    return FAILURE_NONE;
}

/* Takes a time from an option, else from a variable (NULL: there is none); else the time stays
 * unchanged. */
static enum failure_code build_timeout(struct building *building, const char *option,
    const char *variable_name_or_null, struct duration *timeout) {
    const struct option_value *given = option_result_value(building->options, option);
    const char *variable = variable_name_or_null == NULL
                               ? NULL
                               : text_list_variable(building->environment, variable_name_or_null);
    double seconds = duration_seconds(*timeout);
    if (given->is_set) {
        seconds = given->number;
        if (seconds < 0) {
            option_result_reject(building->options, option,
                "invalid value %s: give seconds, 0 or more", given->text);
            return FAILURE_INVALID;
        }
    } else if (variable != NULL &&
               (text_parse_float(variable, &seconds) != FAILURE_NONE || seconds < 0)) {
        struct text reason = {0};
        text_append_format(&reason, "environment variable %s: ", variable_name_or_null);
        enum failure_code code = option_refuse_value(&reason, variable, "give seconds, 0 or more");
        return option_result_settle(building->options, NULL, code, &reason);
    }
    *timeout = duration_from_seconds(seconds);
    return FAILURE_NONE;
}

static enum failure_code build_stopping(struct building *building) {
    struct launch_config *config = building->config;
    struct text reason = {0};
    const char *signals = text_of(building, "signals_to_handle");
    enum failure_code code =
        option_parse_signals(signals, config->signals, &config->signal_count, &reason);
    if (code != FAILURE_NONE) {
        return option_result_settle(building->options, "signals_to_handle", code, &reason);
    }
    config->signals_to_handle = memory_duplicate_string(signals);
    config->names_signals = option_result_value(building->options, "signals_to_handle")->source !=
                            OPTION_SOURCE_DEFAULT;
    config->exit_code = text_equals(text_of(building, "exit_code"), "worker")
                            ? LAUNCH_EXIT_CODE_WORKER
                            : LAUNCH_EXIT_CODE_TORCHRUN;
    code = option_parse_exit_on(text_of(building, "exit_on"), &config->exit_on, &reason);
    if (code != FAILURE_NONE) {
        return option_result_settle(building->options, "exit_on", code, &reason);
    }
    config->shutdown_timeout = duration_from_seconds(DEFAULT_SHUTDOWN_SECONDS);
    code = build_timeout(
        building, "shutdown_timeout", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", &config->shutdown_timeout);
    if (code != FAILURE_NONE) {
        return code;
    }
    config->exit_barrier_timeout = config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC
                                       ? config->dynamic.settings.exit_barrier_timeout
                                       : duration_from_seconds(DEFAULT_EXIT_BARRIER_SECONDS);
    code = build_timeout(building, "exit_barrier_timeout", "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT",
        &config->exit_barrier_timeout);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = build_timeout(building, "settling_time", NULL, &config->settling_time);
    config->has_settling_time =
        option_result_value(building->options, "settling_time")->source != OPTION_SOURCE_DEFAULT;
    if (code != FAILURE_NONE) {
        return code;
    }
    code = build_timeout(building, "host_timeout", NULL, &config->dynamic.settings.host_timeout);
    return code == FAILURE_NONE ? timeout_pairs_check(building->options, config) : code;
}

enum failure_code config_build(struct option_result *options, const struct text_list *environment,
    struct launch_config *out_config) {
    static enum failure_code (*const steps[])(struct building *) = {build_plug_ins,
        build_rendezvous, build_auth, build_worker_count, build_supervision, build_watching,
        build_health, build_evidence, build_entry, build_binding, build_stopping, build_logs,
        build_events, build_store_memory, build_scratch, build_restart_window, build_fruitless,
        build_exclusion, build_node_check, build_standby, build_hang};
    struct launch_config config = {0};
    struct building building = {options, environment, &config};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        enum failure_code code = steps[i](&building);
        if (code != FAILURE_NONE) {
            launch_config_clear(&config);
            return code;
        }
    }
    *out_config = config;
    return FAILURE_NONE;
}
