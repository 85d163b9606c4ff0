/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of this floor for `muster run` and `torchrun`. The input is the command line and
 * the environment; the output is a launch configuration or a text to print. It prints nothing and
 * never exits. */
#ifndef MUSTER_OPTIONS_LAUNCH_LAUNCH_OPTIONS_H
#define MUSTER_OPTIONS_LAUNCH_LAUNCH_OPTIONS_H

#include "base/text.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"
#include "options/argparse/option_table.h"

/* Every option of `muster run` and `torchrun`: those of torch/distributed/run.py get_args_parser
 * (PyTorch 2.14) in its order and spelling, and Muster's own `--on-node-loss`, `--scale-up`,
 * `--exit-code` and `--version`. */

extern const struct option_table launch_table;

struct launch_options {
    enum option_outcome outcome; /* OPTION_OUTCOME_VALUES: `config` is ready to run */
    char *text; /* otherwise: the text for stdout and exit 0, or for stderr and exit 2 */
    struct launch_config config;
};

/* `program` is "torchrun" or "muster run", as the user called it. `arguments` are the arguments
 * after it. `environment` holds NAME=VALUE. The caller clears the result in every case. */
void launch_options_parse(const char *program, const struct text_list *arguments,
    const struct text_list *environment, struct launch_options *out_options);

void launch_options_clear(struct launch_options *options);

#endif
