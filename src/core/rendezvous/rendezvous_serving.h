/* SPDX-License-Identifier: BSD-3-Clause */
/* The node that hosts the store writes the record for the nodes that delegate to it. One pass looks
 * at the wishes of all of them and makes one write, by the same rules by which each would write for
 * itself: torchrun's (rendezvous_decision) for a node that comes, Muster's (rendezvous_regroup) for
 * the rest. Afterwards each is told how it stands, if that is news to it. Where a node of torchrun
 * is in the record, and when this node's part is over and the record is not closed, the delegates
 * are told to write the record themselves. Where another node comes to host the store then, this
 * one serves them until it ends. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_SERVING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_SERVING_H

#include "core/rendezvous/rendezvous_step.h"

/* Hears the wish of the event WISH. Returns whether it says anything new. */
bool rendezvous_serving_hear(struct rendezvous_step *step);
/* Whether nodes that have come wait until more of them have. */
bool rendezvous_serving_gathers(const struct rendezvous_step *step);
/* Writes what the delegates wish. Returns whether it has written. */
bool rendezvous_serve(struct rendezvous_step *step);
/* Where the draft begins a round of nodes that all delegate, and have said their roles: computes
 * their ranks, and marks the round so. Unless all of them wait for their first world, it is held:
 * they are told their ranks when all are ready, which is their barrier. Of every other round the
 * nodes exchange what they need. */
void rendezvous_serving_rank(struct rendezvous_step *step);
/* Whether this node has ranked the round seen, and holds it until all its nodes are ready. */
bool rendezvous_serving_holds(const struct rendezvous_machine *machine);
/* Whether this node serves others on, although its own part is over: another node will host the
 * store only when this one has ended. */
bool rendezvous_serving_outlasts(const struct rendezvous_machine *machine);
/* Whether this node, which leaves, stays for others that leave with it: else each of them would
 * need a next host. */
bool rendezvous_serving_holds_back(const struct rendezvous_step *step);

/* Tells the delegates what is new since they were told last. */
void rendezvous_serving_tell(struct rendezvous_step *step);

#endif
