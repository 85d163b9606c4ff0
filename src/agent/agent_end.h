/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an agent: what is said of it on stderr, in the launcher's own error file and to other
 * programs, and the exit status that follows from it. Decides nothing: the outcome is the agent
 * machine's. */
#ifndef MUSTER_AGENT_AGENT_END_H
#define MUSTER_AGENT_AGENT_END_H

#include "agent/agent_state.h"

/* There is no memory to go on with: the agent begins to end. As agent_memory_new says. */
void agent_memory_exhausted(void *context);

/* Says how the job has ended for this node, and returns the exit status. */
int agent_end_report(struct agent *agent);
/* The same of an agent that a signal has ended before it had a job. */
int agent_end_by_signal(struct agent *agent);
/* The same where something kept the agent itself from going on; `error` is what Python calls the
 * like. */
int agent_end_of_itself(struct agent *agent, const char *error, const char *message);

/* The same where a part of the agent could not be made, for that reason. */
int agent_end_unbegun(struct agent *agent, const struct failure *failure);

/* Tells the event log. */
void agent_end_record(struct agent *agent);

/* Tells the program that has started the agent, after one of those with a status. */
void agent_end_tell(struct agent *agent, int status);

#endif
