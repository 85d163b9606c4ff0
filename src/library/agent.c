/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <muster/agent.h>
#include <muster/rendezvous.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/rendezvous/agent_node_settings.h"
#include "agent/telling/agent_audience.h"
#include "agent/workers/agent_workers.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/launch/launch_config.h"
#include "core/telling/event_record.h"
#include "host/failure/death_evidence.h"
#include "host/loop/clock.h"
#include "host/loop/event_loop.h"
#include "host/network/network_address.h"
#include "host/process/process_apart.h"
#include "host/telling/program_channel.h"
#include "library/agent_reading.h"
#include "library/library_settings.h"
#include "library/rendezvous_object.h"
#include "options/launch/launch_options.h"
#include "options/launch/rendezvous_options.h"
#include "wire/failure/failure_json.h"
#include "wire/telling/agent_line.h"

/* What an agent calls of the program that has started it: hooks at moments of its life, and the
 * backend that keeps the record of its job. */

#define TEXT_MAXIMUM 65536

/* Begin with zero. What the settings point to is borrowed: the process of an agent has a copy. */
struct agent_calls {
    const struct muster_agent_settings *settings;
    bool has_record;                                 /* the job's is kept by … */
    const struct muster_rendezvous_backend *backend; /* … this, or … */
    const struct rendezvous_registered *registered;  /* … what this creates */
    struct muster_rendezvous_parameters parameters;  /* for that */
    const struct launch_config *lent; /* of the rendezvous; NULL: there is none, … */
    char *configs;                    /* … and of what the settings say instead */
    struct agent_kept_record record;
};

/* The store of a job of one node, where nothing is said of it. */
#define OWN_STORE "localhost:0"
/* The agent itself makes such a job's record nowhere else. */
#define STORE_BACKEND "c10d"
#define FILE_STORE "store_type=file"

_Static_assert((int)MUSTER_WORKER_STATE_HEALTHY == (int)RUN_GROUP_STATE_HEALTHY &&
                   (int)MUSTER_WORKER_STATE_INIT == (int)RUN_GROUP_STATE_INIT &&
                   (int)MUSTER_WORKER_STATE_FAILED == (int)RUN_GROUP_STATE_FAILED,
    "one list of states");

static enum muster_error take_rendezvous(struct muster_agent_settings *settings,
    struct agent_calls *calls, struct muster_failure *failure) {
    enum muster_error error =
        rendezvous_lend(settings->rendezvous, &calls->lent, &calls->backend, failure);
    if (error == MUSTER_OK && (settings->rdzv_backend != NULL || settings->run_id != NULL ||
                                  settings->min_nodes != 1 || settings->max_nodes != 1)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a rendezvous, which has a run id and numbers of nodes; leave rdzv_backend, "
            "run_id, min_nodes and max_nodes out");
    }
    if (error == MUSTER_OK) {
        settings->run_id = calls->lent->run_id;
        settings->min_nodes = calls->lent->minimum_nodes;
        settings->max_nodes = calls->lent->maximum_nodes;
    }
    return error;
}

/* Of what the settings say, what is for the store and for rounds: the rest is for whom the program
 * has registered. What makes no sense is refused later. */
static char *choose_configs(const struct muster_agent_settings *settings, bool is_registered) {
    struct text_list given = {0};
    struct text_list unknown = {0};
    struct text chosen = {0};
    struct text reason = {0};
    if (settings->rdzv_configs != NULL &&
        rendezvous_conf_parse(settings->rdzv_configs, &given, &reason) != FAILURE_NONE) {
        text_append(&chosen, settings->rdzv_configs);
    }
    for (size_t i = 0; i < given.count; i++) {
        const struct text_list one = {.items = &given.items[i], .count = 1};
        text_list_clear(&unknown);
        rendezvous_conf_warn_of_unknown(&one, STORE_BACKEND, &unknown);
        if (!is_registered || unknown.count == 0) {
            text_append_format(&chosen, "%s%s", chosen.length > 0 ? "," : "", given.items[i]);
        }
    }
    if (*settings->rdzv_endpoint == '/') {
        text_append_format(&chosen, "%s" FILE_STORE, chosen.length > 0 ? "," : "");
    }
    text_list_clear(&given);
    text_list_clear(&unknown);
    text_clear(&reason);
    char *text = chosen.length > 0 ? memory_duplicate_string(text_string(&chosen)) : NULL;
    text_clear(&chosen);
    return text;
}

/* The nodes meet at a store as with c10d, but for the record. */
static enum muster_error place_store(struct muster_agent_settings *settings,
    struct agent_calls *calls, struct muster_failure *failure) {
    const char *place =
        settings->rdzv_store != NULL ? settings->rdzv_store : settings->rdzv_endpoint;
    if (place == NULL && settings->max_nodes > 1) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "rdzv_store is missing: HOST:PORT, or the path of a file that every node sees, where "
            "the nodes keep what they tell each other besides the record");
    }
    settings->rdzv_backend = STORE_BACKEND;
    settings->rdzv_endpoint = place != NULL ? place : OWN_STORE;
    calls->configs = choose_configs(settings, calls->registered != NULL);
    settings->rdzv_configs = calls->configs;
    return MUSTER_OK;
}

/* Checks what the settings have of a rendezvous of the program's own. Where they have one, they are
 * changed to those of a job whose store is at `rdzv_store`. `settings` outlive the calls. */
static enum muster_error agent_calls_read(struct muster_agent_settings *settings,
    struct agent_calls *out_calls, struct muster_failure *failure) {
    struct agent_calls calls = {.settings = settings,
        .registered = rendezvous_registered_find(settings->rdzv_backend),
        .parameters = {settings->rdzv_backend, settings->rdzv_endpoint, settings->run_id,
            settings->min_nodes, settings->max_nodes, NULL, settings->rdzv_configs}};
    enum muster_error error = MUSTER_OK;
    calls.has_record = settings->rendezvous != NULL || calls.registered != NULL;
    if (settings->rdzv_store != NULL) {
        error = library_utf8_check("rdzv_store", settings->rdzv_store, TEXT_MAXIMUM, failure);
    }
    if (error == MUSTER_OK && settings->rdzv_store != NULL && !calls.has_record) {
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "rdzv_store is for a rendezvous of the program's own; give rdzv_endpoint");
    }
    if (error == MUSTER_OK && settings->rendezvous != NULL) {
        error = take_rendezvous(settings, &calls, failure);
    }
    if (error == MUSTER_OK && calls.has_record) {
        error = place_store(settings, &calls, failure);
    }
    if (error == MUSTER_OK) {
        *out_calls = calls;
    }
    return error;
}

static void agent_calls_clear(struct agent_calls *calls) {
    free(calls->configs);
    *calls = (struct agent_calls){0};
}

static void take_times(
    const struct rendezvous_settings *lent, struct rendezvous_settings *out_settings) {
    out_settings->join_timeout = lent->join_timeout;
    out_settings->last_call_timeout = lent->last_call_timeout;
    out_settings->close_timeout = lent->close_timeout;
    out_settings->keep_alive_interval = lent->keep_alive_interval;
    out_settings->keep_alive_max_attempt = lent->keep_alive_max_attempt;
}

/* What is kept elsewhere is written by each node for itself. */
static void agent_calls_apply(const struct agent_calls *calls, struct launch_config *config) {
    if (!calls->has_record) {
        return;
    }
    const char *name = calls->registered != NULL ? calls->registered->name : calls->backend->name;
    free(config->rdzv_backend);
    config->rdzv_backend = memory_duplicate_string(name != NULL ? name : "the program's");
    config->dynamic.settings.delegates = false;
    if (calls->lent != NULL) {
        take_times(&calls->lent->dynamic.settings, &config->dynamic.settings);
        if (calls->lent->local_address != NULL) {
            free(config->local_address);
            config->local_address = memory_duplicate_string(calls->lent->local_address);
        }
    }
}

/* A descriptor of the program's that the agent needs, or -1. */
static int agent_calls_descriptor(const struct agent_calls *calls) {
    return calls->backend != NULL && calls->backend->has_watch ? calls->backend->watch_fd : -1;
}

/* The record, in the agent's process. */

static enum failure_code create(const struct agent_calls *calls,
    struct muster_rendezvous_backend *out_backend, struct failure *failure) {
    struct muster_rendezvous_backend given = MUSTER_RENDEZVOUS_BACKEND;
    struct muster_failure told = {0};
    const struct rendezvous_registered *registered = calls->registered;
    enum muster_error error =
        registered->create(registered->context, &calls->parameters, &given, &told);
    if (error == MUSTER_OK) {
        error = rendezvous_backend_read(&given, out_backend, &told);
    }
    told.message[sizeof told.message - 1] = '\0';
    return error == MUSTER_OK
               ? FAILURE_NONE
               : failure_set(failure, FAILURE_INVALID, "the rendezvous backend '%s': %s",
                     registered->name,
                     told.message[0] != '\0' ? told.message : muster_error_text(error));
}

static enum failure_code open_record(void *context, struct event_loop *loop, const struct log *log,
    void (*told)(void *context, const struct rendezvous_event *event), void *told_context,
    void **out_kept, struct failure *failure) {
    const struct agent_calls *calls = context;
    const struct rendezvous_own_audience audience = {told, told_context};
    struct muster_rendezvous_backend backend;
    struct rendezvous_own_backend *own = NULL;
    enum failure_code code = FAILURE_NONE;
    if (calls->registered != NULL) {
        code = create(calls, &backend, failure);
    } else {
        backend = *calls->backend;
    }
    if (code == FAILURE_NONE) {
        code = rendezvous_own_backend_new(loop, &backend, &audience, log, &own, failure);
    }
    *out_kept = own;
    return code;
}

static void perform(void *kept, const struct rendezvous_effect *effect) {
    rendezvous_own_backend_perform(kept, effect);
}

static void close_record(void *kept) {
    rendezvous_own_backend_silence(kept);
    rendezvous_own_backend_free(kept);
}

/* Hooks. */

/* A worker group in the words of muster/agent.h; its texts are those of `group`, and the caller
 * frees its workers, which are the result. */
static struct muster_worker *agent_calls_word_group(
    const struct run_group *group, struct muster_worker_group *out_group) {
    struct muster_worker *workers = memory_allocate(group->worker_count * sizeof *workers);
    for (size_t i = 0; i < group->worker_count; i++) {
        workers[i] = (struct muster_worker){(int)i, group->base_rank + (int)i,
            group->role_base_rank + (int)i, group->world_size, group->role_world_size,
            (long)group->pids[i]};
    }
    *out_group = (struct muster_worker_group){
        .state = (enum muster_worker_state)group->state,
        .group_rank = group->group_rank,
        .group_world_size = group->group_world_size,
        .restarts = group->restarts,
        .run_id = group->run_id,
        .role = group->role,
        .master_addr = group->master_host,
        .master_port = group->master_port,
        .workers = workers,
        .worker_count = group->worker_count,
    };
    return workers;
}

static void take_reason(struct muster_failure *told, enum muster_error error, struct text *out) {
    told->message[sizeof told->message - 1] = '\0';
    text_append(out, told->message[0] != '\0' ? told->message : muster_error_text(error));
}

static bool ask(const struct agent_calls *calls,
    enum muster_error (*hook)(
        void *context, const struct muster_worker_group *group, struct muster_failure *failure),
    const struct run_group *run, struct text *out_reason) {
    struct muster_worker_group group;
    struct muster_failure told = {0};
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    enum muster_error error = hook(calls->settings->context, &group, &told);
    free(workers);
    if (error != MUSTER_OK) {
        take_reason(&told, error, out_reason);
    }
    return error == MUSTER_OK;
}

static bool start_workers(void *context, const struct run_group *group, struct text *out_reason) {
    const struct agent_calls *calls = context;
    return ask(calls, calls->settings->start_workers, group, out_reason);
}

static bool restart_workers(void *context, const struct run_group *group, struct text *out_reason) {
    const struct agent_calls *calls = context;
    return ask(calls, calls->settings->restart_workers, group, out_reason);
}

/* What a program has filled in. */
static enum muster_error take_path(
    const char *what, const char *given, char **out_path, struct muster_failure *failure) {
    enum muster_error error = given == NULL ? MUSTER_OK : library_path_check(what, given, failure);
    if (error == MUSTER_OK) {
        *out_path = memory_duplicate_string(given);
    }
    return error;
}

static enum muster_error take_logs(const struct muster_worker_logs *logs,
    struct attempt_own_files *out_files, struct muster_failure *failure) {
    enum muster_error error =
        take_path("stdout_file", logs->stdout_file, &out_files->paths[ATTEMPT_STDOUT], failure);
    if (error == MUSTER_OK) {
        error =
            take_path("stderr_file", logs->stderr_file, &out_files->paths[ATTEMPT_STDERR], failure);
    }
    return error != MUSTER_OK
               ? error
               : take_path("error_file", logs->error_file, &out_files->error_file, failure);
}

static bool reify_logs(void *context, const struct run_group *run,
    struct attempt_own_files *out_files, struct text *out_reason) {
    const struct agent_calls *calls = context;
    struct muster_worker_group group;
    struct muster_failure told = {0};
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    struct muster_worker_logs *logs = memory_allocate(run->worker_count * sizeof *logs);
    enum muster_error error =
        calls->settings->reify_logs(calls->settings->context, &group, logs, &told);
    for (size_t i = 0; i < run->worker_count && error == MUSTER_OK; i++) {
        error = take_logs(&logs[i], &out_files[i], &told);
    }
    if (error != MUSTER_OK) {
        take_reason(&told, error, out_reason);
    }
    free(logs);
    free(workers);
    return error == MUSTER_OK;
}

static int monitor_workers(void *context, const struct run_group *run, struct text *out_reason) {
    const struct agent_calls *calls = context;
    struct muster_worker_group group;
    struct muster_failure told = {0};
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    int rank = calls->settings->monitor_workers(calls->settings->context, &group, &told);
    free(workers);
    take_reason(&told, MUSTER_ERROR_CANCELLED, out_reason);
    return rank;
}

static void tell(const struct agent_calls *calls,
    void (*hook)(void *context, const struct muster_worker_group *group, int signal),
    const struct run_group *run, int signal) {
    struct muster_worker_group group;
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    hook(calls->settings->context, &group, signal);
    free(workers);
}

static void stop_workers(void *context, const struct run_group *group, int signal) {
    const struct agent_calls *calls = context;
    tell(calls, calls->settings->stop_workers, group, signal);
}

static void shut_down(void *context, const struct run_group *group, int signal) {
    const struct agent_calls *calls = context;
    tell(calls, calls->settings->shutdown, group, signal);
}

#define SECONDS_MAXIMUM (INT64_MAX / NANOSECONDS_PER_SECOND)

/* What is no time is the beginning or the end of time. */
static struct wall_time last_progress(void *context) {
    const struct agent_calls *calls = context;
    int64_t seconds = calls->settings->alive_callback(calls->settings->context);
    seconds = seconds < 0 ? 0 : seconds > SECONDS_MAXIMUM ? SECONDS_MAXIMUM : seconds;
    return (struct wall_time){seconds * NANOSECONDS_PER_SECOND};
}

/* The program is to be called. It borrows the calls. */
static void agent_calls_give(struct agent_calls *calls, struct agent_program *program) {
    const struct muster_agent_settings *settings = calls->settings;
    program->hooks = (struct agent_hooks){
        .start_workers = settings->start_workers != NULL ? start_workers : NULL,
        .restart_workers = settings->restart_workers != NULL ? restart_workers : NULL,
        .reify_logs = settings->reify_logs != NULL ? reify_logs : NULL,
        .stop_workers = settings->stop_workers != NULL ? stop_workers : NULL,
        .monitor_workers = settings->monitor_workers != NULL ? monitor_workers : NULL,
        .shutdown = settings->shutdown != NULL ? shut_down : NULL,
        .last_progress = settings->alive_callback != NULL ? last_progress : NULL,
        .context = calls,
    };
    calls->record = (struct agent_kept_record){open_record, perform, close_record, calls};
    program->kept_record = calls->has_record ? &calls->record : NULL;
}

/* Order. */

/* Owns its lists and the configuration; the rest is the program's. */
struct agent_order {
    struct muster_agent_settings settings; /* callbacks, contexts, descriptors */
    struct launch_config config;
    struct text_list environment; /* of the workers */
    struct agent_calls calls;
    const char *placed_by; /* what the program calls its rendezvous that places the node, or NULL */
};

static void agent_order_clear(struct agent_order *order);

/* What a program asks of an agent, turned into the launch configuration that the options of
 * `muster run` would give. */

#define LIST_MAXIMUM 65536
/* What the kernel takes in one string of a command line. */
#define WORD_MAXIMUM 131071
#define HOST_MAXIMUM 255
/* What programs give that were made with the header of 0.2. */
#define OLDEST_SETTINGS offsetof(struct muster_agent_settings, master_addr)

static const char agent_settings_program[] = "agent";
static const char log_dir_option[] = "--log-dir";
/* Events name the function so, and reports. */
static const char function_name[] = "function";

static enum muster_error copy_list(const char *what, const char *const *words,
    struct text_list *out_list, struct muster_failure *failure) {
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        if (i >= LIST_MAXIMUM) {
            return library_fail(
                failure, MUSTER_ERROR_LIMIT, "there are more than %d %s", LIST_MAXIMUM, what);
        }
        if (strnlen(words[i], WORD_MAXIMUM + 1) > WORD_MAXIMUM) {
            return library_fail(failure, MUSTER_ERROR_LIMIT,
                "one of the %s is longer than %d bytes", what, WORD_MAXIMUM);
        }
        text_list_add(out_list, words[i]);
    }
    return MUSTER_OK;
}

/* An option with the text of a setting, where that is given. The texts are told to others as JSON,
 * but for the path. */
static enum muster_error add_text(struct text_list *arguments, const char *option, const char *what,
    const char *value, struct muster_failure *failure) {
    if (value == NULL) {
        return MUSTER_OK;
    }
    enum muster_error error = text_equals(option, log_dir_option)
                                  ? library_path_check(what, value, failure)
                                  : library_utf8_check(what, value, TEXT_MAXIMUM, failure);
    if (error == MUSTER_OK) {
        text_list_add_taken(arguments, text_format("%s=%s", option, value));
    }
    return error;
}

static enum muster_error add_texts(struct text_list *arguments,
    const struct muster_agent_settings *settings, struct muster_failure *failure) {
    const struct {
        const char *option;
        const char *what;
        const char *value;
    } texts[] = {
        {"--role", "role", settings->role},
        {"--rdzv-backend", "rdzv_backend", settings->rdzv_backend},
        {"--rdzv-endpoint", "rdzv_endpoint", settings->rdzv_endpoint},
        {"--rdzv-id", "run_id", settings->run_id},
        {"--rdzv-conf", "rdzv_configs", settings->rdzv_configs},
        {log_dir_option, "log_dir", settings->log_dir},
        {"--redirects", "redirects", settings->redirects},
        {"--tee", "tee", settings->tee},
    };
    enum muster_error error = MUSTER_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && error == MUSTER_OK; i++) {
        error = add_text(arguments, texts[i].option, texts[i].what, texts[i].value, failure);
    }
    return error;
}

/* The options have the program, too. */
static bool has_command_line(const struct muster_agent_settings *settings) {
    return settings->entrypoint == NULL && settings->function == NULL && settings->options != NULL;
}

static void add_numbers(const struct muster_agent_settings *settings, struct text_list *arguments) {
    text_list_add_taken(
        arguments, text_format("--nnodes=%d:%d", settings->min_nodes, settings->max_nodes));
    text_list_add_taken(arguments, text_format("--nproc-per-node=%d", settings->local_world_size));
    text_list_add_taken(arguments, text_format("--max-restarts=%d", settings->max_restarts));
    text_list_add_taken(
        arguments, text_format("--monitor-interval=%.17g", settings->monitor_interval));
}

/* The command line that asks for the same; its script is put in later, since an entrypoint may be
 * any text. */
static enum muster_error make_arguments(const struct muster_agent_settings *settings,
    struct text_list *out_arguments, struct muster_failure *failure) {
    if (!has_command_line(settings)) {
        add_numbers(settings, out_arguments);
    }
    bool is_alone = settings->rdzv_backend == NULL && settings->rdzv_endpoint == NULL &&
                    settings->max_nodes == 1;
    if (is_alone && settings->options == NULL) {
        text_list_add(out_arguments, "--standalone");
    }
    enum muster_error error = add_texts(out_arguments, settings, failure);
    if (error == MUSTER_OK) {
        error = copy_list("options", settings->options, out_arguments, failure);
    }
    if (!has_command_line(settings)) {
        text_list_add(out_arguments, "--no-python");
        text_list_add(out_arguments, function_name);
    }
    return error;
}

/* Of what the options say when they refuse, the sentence. */
static enum muster_error refuse(
    const struct launch_options *options, struct muster_failure *failure) {
    const char *sentence = options->text == NULL ? NULL : strstr(options->text, ": error: ");
    if (options->outcome != OPTION_OUTCOME_MISTAKE || sentence == NULL) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "the options ask for a text, not for a job");
    }
    sentence += strlen(": error: ");
    return library_fail(
        failure, MUSTER_ERROR_INVALID, "%.*s", (int)strcspn(sentence, "\n"), sentence);
}

/* The settings say everything: $PET_... are for the command. */
static void take_pet_out(const struct text_list *environment, struct text_list *out_list) {
    for (size_t i = 0; i < environment->count; i++) {
        if (!text_starts_with(environment->items[i], "PET_")) {
            text_list_add(out_list, environment->items[i]);
        }
    }
}

static enum muster_error parse(
    const struct text_list *arguments, struct agent_order *order, struct muster_failure *failure) {
    struct text_list environment = {0};
    struct launch_options options;
    if (has_command_line(&order->settings)) {
        text_list_add_all(&environment, &order->environment);
    } else {
        take_pet_out(&order->environment, &environment);
    }
    launch_options_parse(agent_settings_program, arguments, &environment, &options);
    text_list_clear(&environment);
    enum muster_error error = MUSTER_OK;
    if (options.outcome == OPTION_OUTCOME_VALUES) {
        order->config = options.config;
        options.config = (struct launch_config){0};
    } else {
        error = refuse(&options, failure);
    }
    launch_options_clear(&options);
    return error;
}

static enum muster_error set_program(struct agent_order *order, struct muster_failure *failure) {
    struct launch_config *config = &order->config;
    if (has_command_line(&order->settings)) {
        order->settings.local_world_size = config->worker_count > 0 ? config->worker_count : 1;
        return MUSTER_OK;
    }
    if (config->script_arguments.count > 0 || config->entry != LAUNCH_ENTRY_PROGRAM) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "the options have a program; it is to be in entrypoint and args");
    }
    free(config->script);
    config->script = memory_duplicate_string(
        order->settings.function != NULL ? function_name : order->settings.entrypoint);
    return copy_list("args", order->settings.args, &config->script_arguments, failure);
}

static enum muster_error check_numbers(
    const struct muster_agent_settings *settings, struct muster_failure *failure) {
    if (settings->local_world_size < 1 ||
        settings->local_world_size > LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "local_world_size is %d; 1 to %d workers are possible", settings->local_world_size,
            LAUNCH_MAXIMUM_WORKERS_PER_NODE);
    }
    if (settings->min_nodes < 1 || settings->max_nodes < settings->min_nodes ||
        settings->max_nodes > LAUNCH_MAXIMUM_NODES) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "min_nodes is %d and max_nodes %d; 1 to %d nodes are possible", settings->min_nodes,
            settings->max_nodes, LAUNCH_MAXIMUM_NODES);
    }
    if (settings->max_restarts < 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "max_restarts is %d; 0 or more are possible", settings->max_restarts);
    }
    if (!(settings->monitor_interval > 0)) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "monitor_interval has to be more than 0 s");
    }
    return MUSTER_OK;
}

static enum muster_error check_entrypoint(
    const struct muster_agent_settings *settings, struct muster_failure *failure) {
    if (has_command_line(settings)) {
        return settings->args == NULL ? MUSTER_OK
                                      : library_fail(failure, MUSTER_ERROR_INVALID,
                                            "there are args, but no entrypoint");
    }
    if (settings->function == NULL) {
        return library_text_check("entrypoint", settings->entrypoint, TEXT_MAXIMUM, failure);
    }
    if (settings->entrypoint != NULL || settings->args != NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a function and a program; one of them is to be run");
    }
    return MUSTER_OK;
}

/* A list for each local rank; NULL in the place of one stands for `otherwise`. */
static enum muster_error copy_ranks(const char *what, const char *const *const *given,
    const struct text_list *otherwise, int count, struct text_list **out_lists,
    struct muster_failure *failure) {
    enum muster_error error = MUSTER_OK;
    if (given == NULL) {
        return MUSTER_OK;
    }
    *out_lists = memory_allocate((size_t)count * sizeof **out_lists);
    for (int i = 0; i < count && error == MUSTER_OK; i++) {
        if (given[i] != NULL) {
            error = copy_list(what, given[i], &(*out_lists)[i], failure);
        } else {
            text_list_add_all(&(*out_lists)[i], otherwise);
        }
    }
    return error;
}

static enum muster_error check_variables(
    const struct launch_config *config, struct muster_failure *failure) {
    for (int rank = 0; config->rank_variables != NULL && rank < config->worker_count; rank++) {
        const struct text_list *list = &config->rank_variables[rank];
        for (size_t i = 0; i < list->count; i++) {
            const char *sign = strchr(list->items[i], '=');
            if (sign == NULL || sign == list->items[i]) {
                return library_fail(failure, MUSTER_ERROR_INVALID,
                    "rank_env[%d] has '%.100s', which is no NAME=VALUE", rank, list->items[i]);
            }
        }
    }
    return MUSTER_OK;
}

/* What workers are told whatever the rendezvous says, and each for itself. */
static enum muster_error set_told(struct agent_order *order, struct muster_failure *failure) {
    const struct muster_agent_settings *settings = &order->settings;
    struct launch_config *config = &order->config;
    static const struct text_list none;
    enum muster_error error = MUSTER_OK;
    if (settings->master_addr != NULL) {
        error = library_host_check("master_addr", settings->master_addr, HOST_MAXIMUM, failure);
    }
    if (error == MUSTER_OK && (settings->master_port < 0 || settings->master_port > 65535)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "master_port is %d; 1 to 65535 are ports, and 0 is that of the rendezvous",
            settings->master_port);
    }
    if (error == MUSTER_OK && settings->function != NULL && settings->rank_args != NULL) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "a function has no rank_args");
    }
    if (error == MUSTER_OK) {
        config->told_master_host = memory_duplicate_string(settings->master_addr);
        config->told_master_port = settings->master_port;
        error = copy_ranks("variables of a rank", settings->rank_env, &none, config->worker_count,
            &config->rank_variables, failure);
    }
    if (error == MUSTER_OK) {
        error = copy_ranks("args of a rank", settings->rank_args, &config->script_arguments,
            config->worker_count, &config->rank_arguments, failure);
    }
    return error == MUSTER_OK ? check_variables(config, failure) : error;
}

static enum muster_error set_placement(struct agent_order *order, struct muster_failure *failure) {
    const struct muster_agent_settings *settings = &order->settings;
    struct launch_config *config = &order->config;
    if (settings->next_rendezvous == NULL) {
        return settings->exit_barrier == NULL
                   ? MUSTER_OK
                   : library_fail(failure, MUSTER_ERROR_INVALID,
                         "there is an exit_barrier, but no next_rendezvous");
    }
    if (config->rendezvous != LAUNCH_RENDEZVOUS_SINGLE) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a next_rendezvous, and the options have another rendezvous");
    }
    config->is_placed = true;
    if (order->placed_by != NULL) {
        free(config->rdzv_backend);
        config->rdzv_backend = memory_duplicate_string(order->placed_by);
    }
    if (settings->run_id != NULL) {
        free(config->run_id);
        config->run_id = memory_duplicate_string(settings->run_id);
    }
    return MUSTER_OK;
}

static enum muster_error build(struct agent_order *order, struct muster_failure *failure) {
    struct text_list arguments = {0};
    const char *const *variables = order->settings.env;
    if (variables == NULL) {
        variables = (const char *const *)environ;
    }
    enum muster_error error = copy_list("variables", variables, &order->environment, failure);
    if (error == MUSTER_OK) {
        error = make_arguments(&order->settings, &arguments, failure);
    }
    if (error == MUSTER_OK) {
        error = parse(&arguments, order, failure);
    }
    if (error == MUSTER_OK) {
        error = set_program(order, failure);
    }
    if (error == MUSTER_OK) {
        error = set_told(order, failure);
    }
    if (error == MUSTER_OK) {
        error = set_placement(order, failure);
    }
    text_list_clear(&arguments);
    struct text_list inherited = agent_job_environment(&order->environment);
    text_list_clear(&order->environment);
    order->environment = inherited;
    return error;
}

/* The job is one of a single node to the options, which know no backend of the program's name. */
static enum muster_error take_name(struct agent_order *order, struct muster_failure *failure) {
    struct muster_agent_settings *settings = &order->settings;
    if (settings->max_nodes != 1 || settings->rdzv_endpoint != NULL ||
        settings->rdzv_configs != NULL || settings->rendezvous != NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a next_rendezvous, so the program says where this node is; leave min_nodes, "
            "max_nodes, rdzv_endpoint, rdzv_configs and rendezvous out");
    }
    order->placed_by = settings->rdzv_backend;
    settings->rdzv_backend = STORE_BACKEND;
    settings->rdzv_endpoint = OWN_STORE;
    return order->placed_by == NULL
               ? MUSTER_OK
               : library_utf8_check("rdzv_backend", order->placed_by, TEXT_MAXIMUM, failure);
}

/* Checks and copies `settings`. Nothing is left to be cleared after an error. */
static enum muster_error agent_order_read(const struct muster_agent_settings *settings,
    struct agent_order *order, struct muster_failure *failure) {
    *order = (struct agent_order){0};
    enum muster_error error = library_settings_read(
        settings, OLDEST_SETTINGS, &order->settings, sizeof order->settings, failure);
    if (error == MUSTER_OK) {
        error = check_entrypoint(&order->settings, failure);
    }
    if (error == MUSTER_OK) {
        error = check_numbers(&order->settings, failure);
    }
    if (error == MUSTER_OK && order->settings.next_rendezvous != NULL) {
        error = take_name(order, failure);
    }
    if (error == MUSTER_OK) {
        error = agent_calls_read(&order->settings, &order->calls, failure);
    }
    if (error == MUSTER_OK) {
        error = build(order, failure);
    }
    if (error != MUSTER_OK) {
        agent_order_clear(order);
        return error;
    }
    agent_calls_apply(&order->calls, &order->config);
    return MUSTER_OK;
}

static void agent_order_clear(struct agent_order *order) {
    launch_config_clear(&order->config);
    text_list_clear(&order->environment);
    agent_calls_clear(&order->calls);
    *order = (struct agent_order){0};
}

/* Agent. */

#define NO_MEMORY "there is no memory for the agent"
#define CHUNK_SIZE 65536
/* One call of muster_agent_process takes no more, so that a busy agent does not keep the program's
 * own loop waiting. */
#define MOST_CHUNKS 16
#define SIGNAL_MAXIMUM 64
/* A line that is read takes no more than so many times its length. */
#define LINE_FACTOR 8

struct muster_agent {
    struct muster_agent_settings settings; /* callbacks and contexts */
    pid_t owner;
    struct process_apart process;
    struct agent_reading reading;
    struct run_group group;           /* as the program has asked for it last … */
    struct muster_worker_group asked; /* … in its words … */
    struct muster_worker *workers;    /* … with these */
    struct text line;                 /* the beginning of one that has not come whole */
    bool is_line_too_long;
    bool has_ended;
    bool is_busy;
    bool is_freed;
};

_Static_assert(MUSTER_RETURN_VALUE_MAXIMUM == RUN_RETURN_VALUE_MAXIMUM, "one limit for both");

/* In a worker. */

static void say_why(const struct failure *failure) {
    const char *path = getenv("TORCHELASTIC_ERROR_FILE");
    struct failure_account account = {
        .message = memory_duplicate_string(failure->message), .seconds = time(NULL)};
    struct text content = {0};
    error_file_json_write(&account, &content);
    (void)fprintf(stderr, "%s\n", failure->message);
    if (path != NULL) {
        (void)!error_file_write(path, slice_from_string(text_string(&content)), NULL);
    }
    text_clear(&content);
    free(account.message);
}

static int run_function(void *context, int fd) {
    const struct muster_agent_settings *settings = context;
    struct muster_return_value value = {NULL, 0};
    struct failure failure = {0};
    agent_job_hide_token();
    int status = settings->function(settings->function_context, &value);
    if (status == 0 && worker_value_write(fd, (struct slice){value.data, value.length}, &failure) !=
                           FAILURE_NONE) {
        say_why(&failure);
        return EXIT_FAILURE;
    }
    return status;
}

/* `descriptors` are not for workers. */
static enum failure_code run_order(struct agent_order *order,
    const struct agent_audience_settings *audience, const int descriptors[2], int *out_status,
    bool *out_has_no_memory, struct failure *failure) {
    struct process_function function = {run_function, &order->settings, {0}};
    struct agent_program program = {.audience = *audience, .out_has_no_memory = out_has_no_memory};
    agent_calls_give(&order->calls, &program);
    if (order->settings.function != NULL) {
        enum failure_code code =
            process_function_keep(&function, descriptors[0], descriptors[1], failure);
        if (code != FAILURE_NONE) {
            return code;
        }
        program.function = &function;
    }
    *out_status = agent_job_run(&program, &order->config, &order->environment);
    number_list_clear(&function.kept);
    return FAILURE_NONE;
}

/* In the process apart. */

/* What the program hears where the agent has no memory even to end in order. A line may be under
 * way, which is lost then. */
static void write_last_words(struct text *out) {
    struct run_result result = {.state = RUN_STATE_UNKNOWN,
        .exit_status = EXIT_FAILURE,
        .message = memory_duplicate_string(NO_MEMORY)};
    text_append(out, "\n");
    agent_line_write_result(&result, out);
    run_result_clear(&result);
}

/* What the copy of the program is to do, and what it has to know from before. */
struct errand_apart {
    struct agent_order *order;
    struct clock_zone zone;
};

/* No thread of the program's is here, but what one of them had locked in libc stays locked. So the
 * agent asks libc for no local time, no translation and no name, and changes no variable. */
static int run_apart(void *context, int fd, int program) {
    struct errand_apart *errand = context;
    struct agent_order *order = errand->order;
    const struct agent_audience_settings audience = {.channel = fd, .program = program};
    const int descriptors[] = {fd, program};
    int status = EXIT_FAILURE;
    struct text last_words = {0};
    write_last_words(&last_words);
    abort_notice_install();
    abort_notice_tell(fd, text_string(&last_words));
    agent_job_hide_token();
    clock_zone_keep(&errand->zone);
    name_lookup_use_getent();
    environ = order->environment.items;
    (void)!run_order(order, &audience, descriptors, &status, NULL, NULL);
    return status;
}

/* In the program. */

static enum muster_error check_descriptors(
    const struct muster_agent_settings *settings, struct muster_failure *failure) {
    if (settings->stdout_fd < -1 || settings->stderr_fd < -1) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "%d is no descriptor",
            settings->stdout_fd < -1 ? settings->stdout_fd : settings->stderr_fd);
    }
    return MUSTER_OK;
}

enum muster_error muster_agent_start(const struct muster_agent_settings *settings,
    struct muster_agent **out_agent, struct muster_failure *out_failure) {
    struct agent_order order;
    struct failure failure = {0};
    if (out_agent == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the agent");
    }
    enum muster_error error = library_memory_check(out_failure);
    if (error == MUSTER_OK) {
        error = agent_order_read(settings, &order, out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    error = check_descriptors(&order.settings, out_failure);
    struct muster_agent *agent = memory_allocate(sizeof *agent);
    struct errand_apart errand = {.order = &order};
    const struct process_apart_settings apart = {order.settings.stdout_fd, order.settings.stderr_fd,
        run_apart, &errand, agent_calls_descriptor(&order.calls)};
    clock_zone_learn(&errand.zone);
    if (error == MUSTER_OK &&
        process_apart_start(&apart, &agent->process, &failure) != FAILURE_NONE) {
        error = library_pass_on(out_failure, &failure);
    }
    agent->settings = order.settings;
    agent->owner = getpid();
    agent->reading.settings = &agent->settings;
    agent_order_clear(&order);
    if (error != MUSTER_OK) {
        free(agent);
        return error;
    }
    *out_agent = agent;
    return MUSTER_OK;
}

static enum muster_error check_agent(
    const struct muster_agent *agent, struct muster_failure *failure) {
    if (agent == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the agent is NULL");
    }
    if (agent->owner != getpid()) {
        return library_fail(
            failure, MUSTER_ERROR_FORKED, "the agent belongs to the process that has made it");
    }
    if (agent->is_freed) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent is being freed");
    }
    return MUSTER_OK;
}

static enum muster_error check_running(
    const struct muster_agent *agent, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error == MUSTER_OK && agent->has_ended) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended");
    }
    return error;
}

/* Another process that was forked from the program may hold the socket, too, so to close it would
 * not be seen by the agent. */
static void destroy(struct muster_agent *agent) {
    (void)shutdown(agent->process.fd, SHUT_RDWR);
    close(agent->process.fd);
    if (agent->process.pidfd >= 0) {
        close(agent->process.pidfd);
    }
    agent_reading_clear(&agent->reading);
    run_group_clear(&agent->group);
    free(agent->workers);
    text_clear(&agent->line);
    free(agent);
}

static bool ask_to_end(const struct muster_agent *agent, int signal) {
    const unsigned char request = (unsigned char)signal;
    return send(agent->process.fd, &request, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void muster_agent_free(struct muster_agent *agent) {
    if (check_agent(agent, NULL) != MUSTER_OK) {
        return;
    }
    if (!agent->has_ended) {
        (void)ask_to_end(agent, SIGTERM);
    }
    agent->is_freed = true;
    if (!agent->is_busy) {
        destroy(agent);
    }
}

int muster_agent_fd(const struct muster_agent *agent) {
    return check_agent(agent, NULL) == MUSTER_OK ? agent->process.fd : -1;
}

enum muster_error muster_agent_pid(
    const struct muster_agent *agent, long *out_pid, struct muster_failure *failure) {
    enum muster_error error = check_running(agent, failure);
    if (error == MUSTER_OK && out_pid == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the pid");
    }
    if (error == MUSTER_OK) {
        *out_pid = (long)agent->process.pid;
    }
    return error;
}

enum muster_error muster_agent_stop(
    struct muster_agent *agent, int signal, struct muster_failure *failure) {
    enum muster_error error = check_running(agent, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (signal < 0 || signal > SIGNAL_MAXIMUM) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no signal; 0 to %d are", signal, SIGNAL_MAXIMUM);
    }
    if (!ask_to_end(agent, signal == 0 ? SIGTERM : signal)) {
        return errno == EAGAIN
                   ? library_fail(failure, MUSTER_ERROR_LIMIT,
                         "the agent has not taken earlier requests yet; ask again later")
                   : library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended");
    }
    return MUSTER_OK;
}

enum muster_error muster_agent_kill(struct muster_agent *agent, struct muster_failure *failure) {
    enum muster_error error = check_running(agent, failure);
    if (error == MUSTER_OK && !process_apart_signal(&agent->process, SIGKILL)) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended");
    }
    return error;
}

enum muster_error muster_agent_worker_group(struct muster_agent *agent,
    const struct muster_worker_group **out_group, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error == MUSTER_OK && out_group == NULL) {
        error = library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the group");
    }
    if (error == MUSTER_OK && !agent->reading.has_group) {
        error = library_fail(failure, MUSTER_ERROR_STATE, "the agent has no workers yet");
    }
    if (error != MUSTER_OK) {
        return error;
    }
    run_group_clear(&agent->group);
    free(agent->workers);
    run_group_copy(&agent->reading.group, &agent->group);
    agent->workers = agent_calls_word_group(&agent->group, &agent->asked);
    *out_group = &agent->asked;
    return MUSTER_OK;
}

/* Placing the node. */

static enum muster_error send_order(const struct muster_agent *agent,
    const struct agent_audience_order *order, struct muster_failure *failure) {
    unsigned char message[1 + sizeof *order] = {PROGRAM_CHANNEL_MESSAGE};
    memcpy(message + 1, order, sizeof *order);
    ssize_t length = send(agent->process.fd, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (length == (ssize_t)sizeof message) {
        return MUSTER_OK;
    }
    return length < 0 && errno != EAGAIN
               ? library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended")
               : library_fail(failure, MUSTER_ERROR_LIMIT,
                     "the agent has not taken earlier requests yet; ask again later");
}

#define MOST_WORKERS (LAUNCH_MAXIMUM_NODES * LAUNCH_MAXIMUM_WORKERS_PER_NODE)

/* What a node of this many workers can be. */
static enum muster_error check_ranks(
    const char *what, int rank, int world_size, int worker_count, struct muster_failure *failure) {
    return rank >= 0 && world_size >= worker_count && world_size <= MOST_WORKERS &&
                   rank <= world_size - worker_count
               ? MUSTER_OK
               : library_fail(failure, MUSTER_ERROR_INVALID,
                     "%s is %d, with %d workers here and %d in all", what, rank, worker_count,
                     world_size);
}

static enum muster_error check_round(
    const struct muster_agent_round *round, int worker_count, struct muster_failure *failure) {
    if (round->group_world_size < 1 || round->group_world_size > LAUNCH_MAXIMUM_NODES ||
        round->group_rank < 0 || round->group_rank >= round->group_world_size) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "group_rank is %d of %d; 0 to %d of 1 to %d are possible", round->group_rank,
            round->group_world_size, LAUNCH_MAXIMUM_NODES - 1, LAUNCH_MAXIMUM_NODES);
    }
    if (round->master_port < 1 || round->master_port > 65535) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "master_port is %d; 1 to 65535 are ports", round->master_port);
    }
    enum muster_error error =
        check_ranks("global_rank", round->global_rank, round->world_size, worker_count, failure);
    if (error == MUSTER_OK) {
        error = check_ranks(
            "role_rank", round->role_rank, round->role_world_size, worker_count, failure);
    }
    if (error == MUSTER_OK) {
        error = library_host_check("master_addr", round->master_addr, HOST_MAXIMUM, failure);
    }
    return error;
}

enum muster_error muster_agent_set_round(struct muster_agent *agent,
    const struct muster_agent_round *round, struct muster_failure *failure) {
    struct muster_agent_round known;
    enum muster_error error = check_running(agent, failure);
    if (error == MUSTER_OK && agent->reading.waiting != AGENT_WAITS_FOR_ROUND) {
        error = library_fail(failure, MUSTER_ERROR_STATE, "the agent waits for no round");
    }
    if (error == MUSTER_OK) {
        error = library_settings_read(round, sizeof known, &known, sizeof known, failure);
    }
    if (error == MUSTER_OK) {
        error = check_round(&known, agent->settings.local_world_size, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct agent_audience_order order = {.kind = MEMBERSHIP_EVENT_ROUND_TOLD,
        .told = {.group_rank = known.group_rank,
            .group_world_size = known.group_world_size,
            .ranks = {known.global_rank, known.world_size, known.role_rank, known.role_world_size},
            .master_port = known.master_port}};
    snprintf(order.told.text, sizeof order.told.text, "%s", known.master_addr);
    error = send_order(agent, &order, failure);
    if (error == MUSTER_OK) {
        agent->reading.waiting = AGENT_WAITS_FOR_NOTHING;
    }
    return error;
}

enum muster_error muster_agent_end_round(
    struct muster_agent *agent, const char *reason, struct muster_failure *failure) {
    static const enum membership_event_kind kinds[] = {
        [AGENT_WAITS_FOR_NOTHING] = MEMBERSHIP_EVENT_ROUND_ENDED,
        [AGENT_WAITS_FOR_ROUND] = MEMBERSHIP_EVENT_ROUND_REFUSED,
        [AGENT_WAITS_FOR_OTHERS] = MEMBERSHIP_EVENT_BARRIER_TOLD,
    };
    struct agent_audience_order order = {0};
    enum muster_error error = check_running(agent, failure);
    if (error == MUSTER_OK && !agent->reading.has_asked) {
        error = library_fail(failure, MUSTER_ERROR_STATE, "the agent has asked for no round");
    }
    if (error == MUSTER_OK) {
        error = library_utf8_check("reason", reason, sizeof order.told.text - 1, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    order.kind = kinds[agent->reading.waiting];
    snprintf(order.told.text, sizeof order.told.text, "%s", reason);
    utf8_make_line_printable(order.told.text);
    error = send_order(agent, &order, failure);
    if (error == MUSTER_OK) {
        agent->reading.waiting = AGENT_WAITS_FOR_NOTHING;
    }
    return error;
}

/* A program that has nothing to say of it passes the exit barrier. */
static void pass_barrier(struct muster_agent *agent) {
    if (agent->reading.waiting == AGENT_WAITS_FOR_OTHERS && agent->settings.exit_barrier == NULL) {
        (void)!muster_agent_end_round(agent, "the program does not wait for other nodes", NULL);
    }
}

enum muster_error muster_agent_result(const struct muster_agent *agent,
    const struct muster_run_result **out_result, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (out_result == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the result");
    }
    if (!agent->has_ended) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent has not ended");
    }
    *out_result = &agent->reading.result;
    return MUSTER_OK;
}

/* Taking what the agent says. */

static void take_line(struct muster_agent *agent) {
    if (!agent->is_line_too_long) {
        agent_reading_take(&agent->reading, slice_from_string(text_string(&agent->line)));
        pass_barrier(agent);
    }
    text_clear(&agent->line);
    agent->is_line_too_long = false;
}

static void keep(struct muster_agent *agent, const char *bytes, size_t length) {
    if (agent->line.length + length > AGENT_LINE_MAXIMUM) {
        agent->is_line_too_long = true;
        text_clear(&agent->line);
    }
    if (!agent->is_line_too_long) {
        text_append_bytes(&agent->line, bytes, length);
    }
}

static void take_bytes(struct muster_agent *agent, const char *bytes, size_t length) {
    const char *end;
    while (!agent->is_freed && (end = memchr(bytes, '\n', length)) != NULL) {
        size_t taken = (size_t)(end - bytes);
        keep(agent, bytes, taken);
        take_line(agent);
        bytes += taken + 1;
        length -= taken + 1;
    }
    if (!agent->is_freed) {
        keep(agent, bytes, length);
    }
}

static void take_end(struct muster_agent *agent) {
    agent->has_ended = true;
    agent_reading_end(&agent->reading);
}

/* Whether there is memory to take a chunk, and to read a line that ends with it. Else it waits in
 * the socket. */
static bool has_memory(const struct muster_agent *agent) {
    return spare_memory_is_enough_for(agent->line.length + CHUNK_SIZE, LINE_FACTOR);
}

/* False: there is no more for now. */
static bool take_chunk(struct muster_agent *agent, char chunk[CHUNK_SIZE]) {
    ssize_t length = recv(agent->process.fd, chunk, CHUNK_SIZE, MSG_DONTWAIT);
    if (length > 0) {
        take_bytes(agent, chunk, (size_t)length);
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        take_end(agent);
    }
    return length > 0;
}

enum muster_error muster_agent_process(struct muster_agent *agent, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (agent->is_busy) {
        return library_fail(failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    if (!has_memory(agent)) {
        return library_fail(failure, MUSTER_ERROR_MEMORY, "there is no memory for what it says");
    }
    char *chunk = memory_allocate(CHUNK_SIZE);
    agent->is_busy = true;
    for (int i = 0; i < MOST_CHUNKS && !agent->has_ended && !agent->is_freed; i++) {
        if (!has_memory(agent) || !take_chunk(agent, chunk)) {
            break;
        }
    }
    agent->is_busy = false;
    free(chunk);
    if (agent->is_freed) {
        destroy(agent);
    }
    return MUSTER_OK;
}

/* In this process. */

static void take_own_line(void *context, const char *lines) {
    struct agent_reading *reading = context;
    const char *end;
    for (; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        agent_reading_take(
            reading, (struct slice){(const unsigned char *)lines, (size_t)(end - lines)});
    }
}

enum muster_error muster_agent_run(
    const struct muster_agent_settings *settings, int *out_status, struct muster_failure *failure) {
    struct agent_order order;
    enum muster_error error = library_memory_check(failure);
    if (error == MUSTER_OK) {
        error = agent_order_read(settings, &order, failure);
    }
    if (error == MUSTER_OK && order.config.is_placed) {
        agent_order_clear(&order);
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a next_rendezvous; only muster_agent_start has one");
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct agent_reading reading = {.settings = &order.settings};
    const struct agent_audience_settings audience = {
        .tell = take_own_line, .tell_context = &reading};
    static const int none[] = {-1, -1};
    struct failure reason = {0};
    int status;
    bool has_no_memory = false;
    abort_notice_install();
    enum failure_code code = run_order(&order, &audience, none, &status, &has_no_memory, &reason);
    abort_notice_remove();
    if (code != FAILURE_NONE) {
        agent_order_clear(&order);
        return library_pass_on(failure, &reason);
    }
    agent_reading_end(&reading);
    if (out_status != NULL) {
        *out_status = status;
    }
    agent_reading_clear(&reading);
    agent_order_clear(&order);
    return has_no_memory ? library_fail(failure, MUSTER_ERROR_MEMORY, NO_MEMORY) : MUSTER_OK;
}
