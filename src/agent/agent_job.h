/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of this process, from its configuration to its exit status: what the command and programs
 * that have an agent share. It makes the log, says what the options have to say, and keeps the
 * job's token from workers. */
#ifndef MUSTER_AGENT_AGENT_JOB_H
#define MUSTER_AGENT_AGENT_JOB_H

#include "agent/agent.h"

#define AGENT_JOB_TOKEN_VARIABLE "MUSTER_JOB_TOKEN"

/* Wipes the job's token where `ps e` and /proc show the variables that this process was started
 * with. It is for processes that are Muster's own: a program's variables stay as they are. */
void agent_job_hide_token(void);

/* These variables without the job's token, which is the agents' alone: the options have a copy.
 * The caller clears the list. */
struct text_list agent_job_environment(const struct text_list *environment);

/* As agent_run_for, with a log on stderr. */
int agent_job_run(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment);

#endif
