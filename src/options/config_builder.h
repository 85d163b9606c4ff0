/* SPDX-License-Identifier: BSD-3-Clause */
/* From the values of one command line to a launch configuration: which rules hold between options,
 * what the environment adds, what is refused and what is only warned about. Matches
 * torch/distributed/run.py config_from_args and launcher/api.py LaunchConfig, with one difference
 * throughout: what ends in an exception and exit status 1 there is a mistake in the command line
 * here, with usage and exit status 2. */
#ifndef MUSTER_OPTIONS_CONFIG_BUILDER_H
#define MUSTER_OPTIONS_CONFIG_BUILDER_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch_config.h"
#include "options/option_result.h"

/* `options` come from launch_table and hold values. FAILURE_INVALID (a value cannot be used) or
 * FAILURE_UNSUPPORTED (it could, but not by this version): then `options` has become a mistake,
 * ready to be printed. The configuration is the caller's to clear. */
__attribute__((warn_unused_result)) enum failure_code config_build(struct option_result *options,
    const struct text_list *environment, struct launch_config *out_config);

#endif
