/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/agent_settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/memory.h"
#include "library/library_failure.h"
#include "library/library_settings.h"
#include "options/launch/launch_options.h"

#define TEXT_MAXIMUM 65536
#define LIST_MAXIMUM 65536
/* What the kernel takes in one string of a command line. */
#define WORD_MAXIMUM 131071

static const char program[] = "agent";
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

/* The command line that asks for the same; its script is put in later, since an entrypoint may be
 * any text. */
static enum muster_error make_arguments(const struct muster_agent_settings *settings,
    struct text_list *out_arguments, struct muster_failure *failure) {
    text_list_add_taken(
        out_arguments, text_format("--nnodes=%d:%d", settings->min_nodes, settings->max_nodes));
    text_list_add_taken(
        out_arguments, text_format("--nproc-per-node=%d", settings->local_world_size));
    text_list_add_taken(out_arguments, text_format("--max-restarts=%d", settings->max_restarts));
    text_list_add_taken(
        out_arguments, text_format("--monitor-interval=%.17g", settings->monitor_interval));
    bool is_alone = settings->rdzv_backend == NULL && settings->rdzv_endpoint == NULL &&
                    settings->max_nodes == 1;
    if (is_alone && settings->options == NULL) {
        text_list_add(out_arguments, "--standalone");
    }
    enum muster_error error = add_texts(out_arguments, settings, failure);
    if (error == MUSTER_OK) {
        error = copy_list("options", settings->options, out_arguments, failure);
    }
    text_list_add(out_arguments, "--no-python");
    text_list_add(out_arguments, function_name);
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
    take_pet_out(&order->environment, &environment);
    launch_options_parse(program, arguments, &environment, &options);
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
    if (settings->function == NULL) {
        return library_text_check("entrypoint", settings->entrypoint, TEXT_MAXIMUM, failure);
    }
    if (settings->entrypoint != NULL || settings->args != NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a function and a program; one of them is to be run");
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
    text_list_clear(&arguments);
    struct text_list inherited = agent_job_environment(&order->environment);
    text_list_clear(&order->environment);
    order->environment = inherited;
    return error;
}

enum muster_error agent_order_read(const struct muster_agent_settings *settings,
    struct agent_order *out_order, struct muster_failure *failure) {
    struct agent_order order = {0};
    enum muster_error error = library_settings_read(
        settings, sizeof order.settings, &order.settings, sizeof order.settings, failure);
    if (error == MUSTER_OK) {
        error = check_entrypoint(&order.settings, failure);
    }
    if (error == MUSTER_OK) {
        error = check_numbers(&order.settings, failure);
    }
    if (error == MUSTER_OK) {
        error = build(&order, failure);
    }
    if (error != MUSTER_OK) {
        agent_order_clear(&order);
        return error;
    }
    *out_order = order;
    return MUSTER_OK;
}

void agent_order_clear(struct agent_order *order) {
    launch_config_clear(&order->config);
    text_list_clear(&order->environment);
    *order = (struct agent_order){0};
}
