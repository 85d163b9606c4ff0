/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node that delegates wishes follows from what it does: from its goal, its place, and what
 * failed on it. This module says it, and takes what the host of the store tells. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_WISHING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_WISHING_H

#include "core/rendezvous/rendezvous_step.h"

/* The connection stands. Takes the offer of the host, where there is one and this node may. */
void rendezvous_wishing_begin(struct rendezvous_step *step);
/* Takes the event STANDING. A node that is to write the record itself begins to do so. */
void rendezvous_wishing_take_standing(struct rendezvous_step *step);
/* A node whose time to join is over, and whom the host does not answer, writes the record itself
 * from now on. The machine calls it in every step, before it decides. */
void rendezvous_wishing_let_time_pass(struct rendezvous_step *step);
/* Says what this node wishes, if that has changed. The machine calls it after every event. */
void rendezvous_wishing_say(struct rendezvous_step *step);

#endif
