/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of one process that runs the program of a worker: its environment, its command line,
 * its CPUs and limits. What becomes of the process is agent_workers'. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_START_H
#define MUSTER_AGENT_WORKERS_WORKER_START_H

#include "agent/workers/agent_workers.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/workers/worker_command.h"
#include "host/process/process_spawn.h"

/* The environment of a worker; the caller clears it. `error_file` and `timer_file` may be NULL. */
__attribute__((warn_unused_result)) enum failure_code worker_start_environment(
    const struct agent_workers_settings *settings, const struct node_placement *placement,
    int local_rank, const char *error_file, const char *timer_file,
    struct text_list *out_environment, struct failure *failure);

/* What the process is started with. `descriptors` are standard input, output and error, and the
 * fourth; -1: the agent's own, and no fourth. All stay the caller's, and so do the arguments, which
 * are empty before; the request borrows them. */
void worker_start_request(const struct agent_workers_settings *settings, int local_rank,
    const struct text_list *environment, const int descriptors[4], struct text_list *out_arguments,
    struct process_request *out_request);

/* Starts it. */
__attribute__((warn_unused_result)) enum failure_code worker_start_process(
    const struct agent_workers_settings *settings, int local_rank,
    const struct text_list *environment, const int descriptors[4], struct process *out_process,
    struct failure *failure);

/* The environment that a worker will have, as far as it is known before the node has a place in the
 * job; the caller clears it. */
__attribute__((warn_unused_result)) enum failure_code worker_start_foresee(
    const struct agent_workers_settings *settings, int worker_count, int local_rank,
    const char *timer_file, struct text_list *out_environment, struct failure *failure);

/* Starts the interpreter of the workers as it is started for them, but with an empty program. */
__attribute__((warn_unused_result)) enum failure_code worker_start_probe(
    const struct agent_workers_settings *settings, const struct text_list *environment,
    const int descriptors[4], struct process *out_process, struct failure *failure);

#endif
