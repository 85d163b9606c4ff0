/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether this node is fit for workers, as a command of the user's says (--node-check): its exit
 * status is the answer, and the last line that it writes is the reason. It runs beside everything
 * else, and is ended when it takes too long. One that cannot be ended since it hangs in the kernel,
 * as with a broken device, is left behind. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_NODE_CHECK_H
#define MUSTER_AGENT_FAILURE_AGENT_NODE_CHECK_H

#include <stdbool.h>

#include "agent/workers/agent_workers.h"
#include "base/duration.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

struct agent_node_check;

struct agent_node_check_settings {
    const char *command;                 /* for /bin/sh; borrowed, as all of this */
    struct duration timeout;             /* from its start on */
    const struct text_list *environment; /* the whole environment of the command */
    struct agent_workers *workers;       /* to whom the command does not belong */
    long descriptor_limit;               /* as agent_workers_settings has it */
    /* The check is over. `reason`: one line, why the node is not fit; NULL: it is. Never called
     * from within agent_node_check_begin. */
    void (*answered)(void *context, const char *reason);
    void *context;
};

/* The functions below accept NULL, where nobody wants a check. */
struct agent_node_check *agent_node_check_new(
    struct event_loop *loop, const struct agent_node_check_settings *settings);
/* A command that runs is ended, and there is no answer. */
void agent_node_check_free(struct agent_node_check *check);

/* Starts the command. None may run. */
void agent_node_check_begin(struct agent_node_check *check);

#endif
