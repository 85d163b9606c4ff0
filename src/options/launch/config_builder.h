/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds a launch configuration from the values of one command line. It checks the rules between
 * options, adds values from the environment, and decides what is refused and what only causes a
 * warning. Matches torch/distributed/run.py config_from_args and launcher/api.py LaunchConfig, with
 * one difference throughout: where torchrun ends with an exception and exit status 1, this is a
 * mistake in the command line, with usage and exit status 2. */
#ifndef MUSTER_OPTIONS_LAUNCH_CONFIG_BUILDER_H
#define MUSTER_OPTIONS_LAUNCH_CONFIG_BUILDER_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"

/* `options` must come from launch_table and hold values. FAILURE_INVALID (a value cannot be used)
 * or FAILURE_UNSUPPORTED (this version does not support a value): `options` has then become a
 * mistake that can be printed. The caller clears the configuration in every case. */
__attribute__((warn_unused_result)) enum failure_code config_build(struct option_result *options,
    const struct text_list *environment, struct launch_config *out_config);

#endif
