/* SPDX-License-Identifier: BSD-3-Clause */
/* When the host of the store lets nodes that delegate into the record. Each write has the whole
 * record, so that of many nodes that come one after the other each would cost as much as all before
 * it. So the host lets those who come soon after each other in together, and the record of an open
 * round grow by half at a time. Nobody waits for that: the nodes wait until the round is complete,
 * and whoever may complete it, or begin its last call, is let in at once, with all others. A round
 * that runs admits them after a short time anyhow (rendezvous_growth), which is that of gathering
 * them here. The struct is one part of a rendezvous machine. Only this module changes it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_GATHERING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_GATHERING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/launch/rendezvous_settings.h"
#include "core/rendezvous/moment.h"
#include "core/rendezvous/rendezvous_state.h"

/* A zeroed struct is valid. */
struct rendezvous_gathering {
    size_t listed;      /* participants, when the record was news */
    size_t newcomers;   /* that have come since the last pass */
    bool is_urgent;     /* a delegate has wished something else since */
    struct moment soon; /* until then the host waits also for more than half as many */
    struct moment end;
};

/* The record has so many participants. */
void rendezvous_gathering_look(struct rendezvous_gathering *gathering, size_t participants);
/* A node has said that it wants to join, for the first time; or any node has said anything else. */
void rendezvous_gathering_hear(struct rendezvous_gathering *gathering, bool is_newcomer,
    const struct rendezvous_state *seen, struct instant now);
/* Whether the host waits for more of them. */
bool rendezvous_gathering_holds(const struct rendezvous_gathering *gathering,
    const struct rendezvous_state *seen, const struct rendezvous_settings *settings,
    struct instant now);
/* The host looks at all of them. Returns whether it has waited for more, as long as it may. */
bool rendezvous_gathering_end(struct rendezvous_gathering *gathering, struct instant now);
/* Sets `next` to the end of the wait, if that is earlier. */
void rendezvous_gathering_wake(
    const struct rendezvous_gathering *gathering, struct instant now, struct moment *next);

#endif
