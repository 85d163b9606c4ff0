/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of one worker. Matches config_from_args in torch/distributed/run.py, and
 * replace_macros in torch/distributed/elastic/utils/api.py: `${local_rank}` and `$local_rank` in
 * arguments (never in argv[0]) become the local rank, `$$` a dollar, everything else stays. */
#ifndef MUSTER_CORE_WORKER_COMMAND_H
#define MUSTER_CORE_WORKER_COMMAND_H

#include "base/text.h"
#include "core/launch_config.h"

/* Appends argv to `out_arguments`. argv[0] is to be looked up on the worker's PATH. `python` is the
 * interpreter to use; config->python if there is one, else what was found on PATH.
 *
 * --run-path has no function to call in this process: the script runs under runpy.run_path in a
 * fresh interpreter, under torch's @record where torch is importable, so that an uncaught exception
 * leaves an error file like torchrun's wrapper does. */
void worker_command_build(const struct launch_config *config, const char *python, int local_rank,
    struct text_list *out_arguments);

/* What the failure report calls the job: the script or module, the program of --no-python, and
 * "run_script_path" with --run-path. Matches _get_entrypoint_name in
 * torch/distributed/launcher/api.py. Belongs to `config`. */
const char *worker_command_display_name(const struct launch_config *config);

#endif
