/* SPDX-License-Identifier: BSD-3-Clause */
/* One agent, from its first event to its exit status: the event loop on which core/agent_machine
 * decides and the host's shells perform. Matches LocalElasticAgent.run in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */
#ifndef MUSTER_AGENT_AGENT_H
#define MUSTER_AGENT_AGENT_H

#include <stdbool.h>

#include "agent/agent_events.h"
#include "agent/rendezvous/agent_node_settings.h"
#include "agent/telling/agent_audience.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "host/log/log_sink.h"
#include "host/process/process_spawn.h"

/* A program that has started an agent. */
struct agent_program {
    struct agent_hooks hooks;
    const struct agent_kept_record *kept_record; /* NULL: the job's store has it */
    const struct process_function *function;     /* what workers run; NULL: what `config` says */
    struct agent_audience_settings audience;     /* `asked` and its context are the agent's own */
    bool *out_has_no_memory; /* becomes true where it has ended for want of memory; or NULL */
};

/* A job of this process, from its configuration to its exit status: what the command and programs
 * that have an agent share. It makes the log, says what the options have to say, and keeps the
 * job's token from workers. */

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
