/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/launch_options.h"

#include <stdlib.h>

#include "options/launch/config_builder.h"
#include "options/launch/launch_table.h"
#include "options/argparse/option_parser.h"

void launch_options_parse(const char *program, const struct text_list *arguments,
    const struct text_list *environment, struct launch_options *out_options) {
    struct option_result result;
    struct launch_options options = {0};
    option_parse(&launch_table, program, arguments, environment, &result);
    bool is_ready = result.outcome == OPTION_OUTCOME_VALUES &&
                    config_build(&result, environment, &options.config) == FAILURE_NONE;
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
