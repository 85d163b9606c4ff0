/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's memory: two reserves (base/spare_memory). The first is what the agent lives on when
 * the system has no more. It then has some seconds in which it may come back. After them, or when
 * the second is needed, too, the agent is told to end, for which it has what is left. */
#ifndef MUSTER_AGENT_AGENT_MEMORY_H
#define MUSTER_AGENT_AGENT_MEMORY_H

#include "base/failure.h"
#include "host/loop/event_loop.h"

/* Why an agent ends then, for people. */
#define AGENT_MEMORY_SENTENCE                                                                      \
    "there is no memory for the agent, so this node ends (see ulimit -v, and the memory limit of " \
    "the cgroup)"

struct agent_memory;

/* `exhausted` is called on the loop, and again every second, as long as there is no memory.
 * FAILURE_SYSTEM where there is none now. */
__attribute__((warn_unused_result)) enum failure_code agent_memory_new(struct event_loop *loop,
    void (*exhausted)(void *context), void *context, struct agent_memory **out_memory,
    struct failure *failure);

/* Gives the second reserve up. Accepts NULL. */
void agent_memory_free(struct agent_memory *memory);

#endif
