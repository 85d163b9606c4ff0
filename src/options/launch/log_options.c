/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/log_options.h"

#include <string.h>

#include "core/workers/log_plan.h"
#include "options/launch/option_values.h"

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

enum failure_code log_options_apply(struct option_result *options,
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
