/* SPDX-License-Identifier: BSD-3-Clause */
/* What the node machine is to know, from what the user asked for and what this machine is. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_NODE_SETTINGS_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_NODE_SETTINGS_H

#include "agent/workers/agent_preparation.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/node/node_machine.h"
#include "core/standby/standby_plan.h"

/* Owns the address, the name of the store and the claim; the rest is borrowed from what it was made
 * of. */
struct agent_node_settings {
    struct node_settings node;
    char *address;
    char *address_leads_to; /* the addresses of that name, each with a blank after it */
    char *where;
    char *claim; /* of a fixed node, see core/round/round_fixed; else NULL */
    enum standby_choice standby;
    int cpu_count; /* of those on which this process may run */
};

/* Fails where this node's address for other nodes cannot be found; then there is nothing to clear.
 */
__attribute__((warn_unused_result)) enum failure_code agent_node_settings_make(
    const struct launch_config *config, const struct agent_preparation *preparation,
    const struct text_list *environment, struct agent_node_settings *out_settings,
    struct failure *failure);
void agent_node_settings_clear(struct agent_node_settings *settings);

#endif
