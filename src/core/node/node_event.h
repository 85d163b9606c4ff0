/* SPDX-License-Identifier: BSD-3-Clause */
/* An event for one of the machines of a node. A queued event owns everything to which it points, so
 * the poster may free its own at once. */
#ifndef MUSTER_CORE_NODE_NODE_EVENT_H
#define MUSTER_CORE_NODE_NODE_EVENT_H

#include <stddef.h>

#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/node/node_membership.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/round/round_exchange.h"
#include "core/standby/standby_plan.h"
#include "core/succession/succession_machine.h"

/* Appends one line without a newline, for example "look_for_root_cause round=3" or "agent:
 * round_over", as core/agent/agent_transcript has them for the agent. */
void membership_effect_describe(const struct membership_effect *effect, struct text *out);

enum node_part {
    NODE_AGENT,
    NODE_MEMBERSHIP,
    NODE_RENDEZVOUS, /* of nodes that come and go */
    NODE_ROUND,      /* of several nodes */
    NODE_STANDBY,    /* where standby workers are wanted */
    NODE_SUCCESSION, /* where another node may come to host the store */
    NODE_PART_COUNT,
};

struct node_event {
    enum node_part part; /* the machine that takes it */
    union {
        struct agent_event agent;
        struct membership_event membership;
        struct rendezvous_event rendezvous;
        struct round_event round;
        struct standby_event standby;
        struct succession_event succession;
    };
};

/* An event that owns everything to which it points. */
struct node_event_owned {
    struct node_event event;
    void **blocks; /* memory that it owns */
    size_t block_count;
    size_t block_capacity;
    struct rendezvous_state state;  /* owned too, where the event points to a record */
    struct failure_account account; /* owned too, where the event points to an account */
};

/* Copies `event`, which is borrowed for the call. The caller clears the copy with
 * node_event_owned_clear, and must not move it in memory. */
void node_event_own(const struct node_event *event, struct node_event_owned *out_owned);
void node_event_owned_clear(struct node_event_owned *owned);

/* Sets the time at which the event happened. */
void node_event_set_now(struct node_event *event, struct instant now, struct wall_time wall_now);

/* Appends one line for transcripts, as the machine's own transcript has it. */
void node_event_describe(const struct node_event *event, struct text *out);

#endif
