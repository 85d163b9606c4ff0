/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/launch_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/argparse/option_parser.h"
#include "options/launch/config_builder.h"
#include "options/launch/launch_table.h"

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
    char *meant = found == NULL              ? memory_duplicate_string("")
                  : found->reads_environment ? option_variable_name(&launch_table, found)
                                             : memory_duplicate_string(long_name(found));
    text_list_add_taken(
        warnings, text_format("%s%.*s is no option's variable and has no effect%s%s%s",
                      launch_table.environment_prefix, (int)length, name,
                      found != NULL ? " (did you mean " : "", meant, found != NULL ? "?)" : ""));
    free(meant);
}

static void warn_of_variables(const struct text_list *environment, struct text_list *warnings) {
    size_t prefix = strlen(launch_table.environment_prefix);
    for (size_t i = 0; i < environment->count; i++) {
        const char *variable = environment->items[i];
        if (text_starts_with(variable, launch_table.environment_prefix)) {
            warn_of_variable(variable + prefix, strcspn(variable + prefix, "="), warnings);
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
