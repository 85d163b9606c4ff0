/* SPDX-License-Identifier: BSD-3-Clause */
/* What the search for a host of the job's store means for the node's part in the rendezvous. */
#ifndef MUSTER_CORE_NODE_NODE_SUCCESSION_H
#define MUSTER_CORE_NODE_NODE_SUCCESSION_H

#include <stdbool.h>

#include "core/rendezvous/rendezvous_machine.h"
#include "core/succession/succession_machine.h"

/* Sets `out_event` to what the rendezvous machine is told. Its strings are the effect's, or
 * constant. Returns false when the effect is for the performer. */
bool node_succession_event(const struct succession_machine *succession,
    const struct succession_effect *effect, struct rendezvous_event *out_event);

/* Lets the succession machine take the event. When this node leaves its store, the machine is given
 * the record that is known now, which says who stays. */
void node_succession_step(struct succession_machine *succession,
    const struct rendezvous_machine *rendezvous, const struct succession_event *event,
    struct succession_effects *effects);

#endif
