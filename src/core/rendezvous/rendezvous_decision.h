/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node does next by torchrun's rules. An operation looks at the record and names an action
 * (core/rendezvous_action); the caller carries it out and writes the changed record. The code can
 * be compared line by line with _RendezvousExitOp, _RendezvousJoinOp, _RendezvousCloseOp,
 * _RendezvousKeepAliveOp and _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. This module compares no clocks: the
 * caller says which deadlines have passed and what is due. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DECISION_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DECISION_H

#include <stdbool.h>

#include "core/rendezvous/node_identity.h"
#include "core/rendezvous/rendezvous_action.h"
#include "core/launch/rendezvous_settings.h"
#include "core/rendezvous/rendezvous_state.h"

struct rendezvous_context {
    const struct node_identity *node;
    const struct rendezvous_state *state;
    const struct rendezvous_settings *settings;
    bool is_late; /* the operation's own deadline has passed */
    /* the 5 s after that deadline, in which a node still takes itself out, have passed too */
    bool is_too_late;
    bool is_last_call_over; /* the record's deadline has passed */
    /* this node's heartbeat is at least one interval old; false if it has none */
    bool is_keep_alive_due;
};

enum rendezvous_action rendezvous_decide_exit(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_join(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_close(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_keep_alive(const struct rendezvous_context *context);

#endif
