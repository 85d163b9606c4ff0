/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch_options.h"

#include <stdlib.h>

#include "base/memory.h"

void launch_options_parse(const char *program, const struct text_list *arguments,
    const struct text_list *environment, struct launch_options *out_options) {
    (void)arguments;
    (void)environment;
    *out_options = (struct launch_options){.outcome = OPTION_OUTCOME_MISTAKE,
        .text = text_format("%s: error: the command line is not read yet\n", program)};
}

void launch_options_clear(struct launch_options *options) {
    free(options->text);
    launch_config_clear(&options->config);
    *options = (struct launch_options){0};
}
