/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory a store of this agent may use, from --store-memory and from what there is. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_STORE_MEMORY_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_STORE_MEMORY_H

#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/store/store_limits.h"

/* The limits for one store. Warns when more was asked for than there is. */
struct store_limits agent_store_memory_limits(
    const struct launch_config *config, const struct log *log);

#endif
