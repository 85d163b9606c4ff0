/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the command line of one worker. Matches config_from_args in torch/distributed/run.py, and
 * replace_macros in torch/distributed/elastic/utils/api.py: in arguments, but not in argv[0],
 * `${local_rank}` and `$local_rank` become the local rank, and `$$` becomes a dollar. All other
 * text stays. */
#ifndef MUSTER_CORE_WORKERS_WORKER_COMMAND_H
#define MUSTER_CORE_WORKERS_WORKER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/worker_group.h"

/* Builds the environment of one worker: the environment of the agent, and the variables from which
 * a script learns its place in the job. Names and spellings are TorchElastic's, see
 * LocalElasticAgent._start_workers in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */

/* The place of this node in the job, for one start of its workers. */
struct node_placement {
    const char *run_id;
    const char *node;           /* its identity in a dynamic rendezvous, else NULL */
    const char *master_address; /* MASTER_ADDR, without brackets */
    int master_port;
    int group_rank;
    int group_world_size;
    int local_world_size;
    struct rank_assignment ranks;
    int attempt;   /* restarts that the job has used: TORCHELASTIC_RESTART_COUNT */
    int64_t round; /* of a dynamic rendezvous, else 0; a new round may have the same attempt */
};

/* Fills `out_environment`: a copy of `inherited`, in which the variables are set. `error_file` is
 * the path to which the worker may write its error file; NULL or "" for none. FAILURE_INVALID when
 * the configuration asks for virtual local ranks and CUDA_VISIBLE_DEVICES names too few devices. */
__attribute__((warn_unused_result)) enum failure_code worker_environment_build(
    const struct launch_config *config, const struct node_placement *placement, int local_rank,
    const char *error_file, const struct text_list *inherited, struct text_list *out_environment);

/* Appends argv to `out_arguments`. The caller looks argv[0] up on the worker's PATH. `python` is
 * the interpreter: config->python if it is set, else the one that was found on PATH.
 *
 * With --run-path the script runs under runpy.run_path in a new interpreter. Where torch can be
 * imported it also runs under torch's @record, so that an uncaught exception leaves an error file,
 * as with torchrun. */
void worker_command_build(const struct launch_config *config, const char *python, int local_rank,
    struct text_list *out_arguments);

/* The name of the job in the failure report: the script or module, the program of --no-python, or
 * "run_script_path" with --run-path. Matches _get_entrypoint_name in
 * torch/distributed/launcher/api.py. The text belongs to `config`. */
const char *worker_command_display_name(const struct launch_config *config);

/* Whether the workers are Python's: a script, a module, or a --no-python program that is called
 * python…. */
bool worker_command_is_python(const struct launch_config *config);

#endif
