/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one node's dynamic rendezvous: events go through its machine one after the other, effects
 * are carried out, and what the machines tell is put into the agent's terms. A part of
 * agent_dynamic_rendezvous; not for others. */
#ifndef MUSTER_AGENT_AGENT_DYNAMIC_EVENTS_H
#define MUSTER_AGENT_AGENT_DYNAMIC_EVENTS_H

#include "agent/agent_dynamic_state.h"

/* Fills in the time. What comes from inside a step waits until its other effects are done; strings
 * are copied then. */
void agent_dynamic_take(struct agent_dynamic_rendezvous *rendezvous, struct rendezvous_event event);

/* Goes on with the end, if the agent waits for it and this node has said all it had to say. */
void agent_dynamic_settle_if_ready(struct agent_dynamic_rendezvous *rendezvous);

/* What the parts below report, for them to call. */
struct rendezvous_backend_observer agent_dynamic_backend_events(
    struct agent_dynamic_rendezvous *rendezvous);
struct agent_round_observer agent_dynamic_round_events(struct agent_dynamic_rendezvous *rendezvous);
void agent_dynamic_node_gone(
    void *context, const struct node_identity *identity, bool has_finished);
void agent_dynamic_record_written(void *context);
void agent_dynamic_root_cause_learnt(void *context, const struct failure_account *account);
void agent_dynamic_timer_fired(void *context);

#endif
