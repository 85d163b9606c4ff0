/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node does next as torchrun's nodes decide it: operations look at the record and name an
 * action (core/rendezvous_action), and whoever drives them writes back what it changed. Line by
 * line comparable with _RendezvousExitOp, _RendezvousJoinOp, _RendezvousCloseOp,
 * _RendezvousKeepAliveOp and _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. No clock is compared here: the caller
 * says what is over and what is due. */
#ifndef MUSTER_CORE_RENDEZVOUS_DECISION_H
#define MUSTER_CORE_RENDEZVOUS_DECISION_H

#include <stdbool.h>

#include "core/node_identity.h"
#include "core/rendezvous_action.h"
#include "core/rendezvous_settings.h"
#include "core/rendezvous_state.h"

struct rendezvous_context {
    const struct node_identity *node;
    const struct rendezvous_state *state;
    const struct rendezvous_settings *settings;
    bool is_late;           /* the operation's own deadline has passed */
    bool is_too_late;       /* … and the 5 s after it in which a join may be rolled back */
    bool is_last_call_over; /* the record's deadline has passed */
    bool is_keep_alive_due; /* this node's heartbeat is an interval old; false without one */
};

enum rendezvous_action rendezvous_decide_exit(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_join(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_close(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_keep_alive(const struct rendezvous_context *context);

#endif
