/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program asks of an agent, turned into the launch configuration that the options of
 * `muster run` would give. */
#ifndef MUSTER_LIBRARY_AGENT_SETTINGS_H
#define MUSTER_LIBRARY_AGENT_SETTINGS_H

#include <muster/agent.h>

#include "base/text.h"
#include "core/launch/launch_config.h"

/* Owns its lists and the configuration; the rest is the program's. */
struct agent_order {
    struct muster_agent_settings settings; /* callbacks, contexts, descriptors */
    struct launch_config config;
    struct text_list environment; /* of the workers */
};

/* Checks and copies `settings`. */
enum muster_error agent_order_read(const struct muster_agent_settings *settings,
    struct agent_order *out_order, struct muster_failure *failure);
void agent_order_clear(struct agent_order *order);

#endif
