/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of this process, from its configuration to its exit status: what the command and programs
 * that have an agent share. It makes the log, says what the options have to say, and keeps the
 * job's token to itself. */
#ifndef MUSTER_AGENT_AGENT_JOB_H
#define MUSTER_AGENT_AGENT_JOB_H

#include "agent/agent.h"

/* As agent_run_for, with a log on stderr. $MUSTER_JOB_TOKEN goes from this process's own variables,
 * too. */
int agent_job_run(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment);

#endif
