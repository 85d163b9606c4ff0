/* SPDX-License-Identifier: BSD-3-Clause */
/* The options about the workers' output: log files, redirection, the console's line prefix, and
 * filters. They are combined as in run.py config_from_args and multiprocessing/api.py
 * DefaultLogsSpecs. Opens nothing. */
#ifndef MUSTER_OPTIONS_LAUNCH_LOG_OPTIONS_H
#define MUSTER_OPTIONS_LAUNCH_LOG_OPTIONS_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "options/argparse/option_result.h"

/* Fills the log part of `config` (log_dir to duplicate_stderr_filters) and adds warnings.
 * FAILURE_INVALID: `options` has become a mistake. The caller clears `config` in every case. */
__attribute__((warn_unused_result)) enum failure_code log_options_apply(
    struct option_result *options, const struct text_list *environment,
    struct launch_config *config);

#endif
