/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/config_builder.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/telling/health.h"
#include "options/launch/endpoint.h"
#include "options/launch/log_options.h"
#include "options/launch/option_values.h"
#include "options/launch/rendezvous_options.h"
#include "options/launch/slurm_options.h"
#include "options/launch/timeout_pairs.h"

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
    config->standby = text_equals(standby, "on")     ? LAUNCH_STANDBY_ON
                      : text_equals(standby, "auto") ? LAUNCH_STANDBY_AUTO
                                                     : LAUNCH_STANDBY_OFF;
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
        build_events, build_store_memory, build_scratch, build_standby};
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
