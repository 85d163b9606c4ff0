/* SPDX-License-Identifier: BSD-3-Clause */
/* The one door of this floor for `muster run` and `torchrun`: command line and environment in, a
 * launch configuration or a text to print out. Prints and exits nothing itself. */
#ifndef MUSTER_OPTIONS_LAUNCH_OPTIONS_H
#define MUSTER_OPTIONS_LAUNCH_OPTIONS_H

#include "base/text.h"
#include "core/launch_config.h"
#include "options/option_result.h"

struct launch_options {
    enum option_outcome outcome; /* OPTION_OUTCOME_VALUES: `config` is ready to run */
    char *text;                  /* else: for stdout and exit 0, or for stderr and exit 2 */
    struct launch_config config;
};

/* `program` is "torchrun" or "muster run", as the user called it; `arguments` are those after it;
 * `environment` holds NAME=VALUE. Clear the result in every case. */
void launch_options_parse(const char *program, const struct text_list *arguments,
    const struct text_list *environment, struct launch_options *out_options);

void launch_options_clear(struct launch_options *options);

#endif
