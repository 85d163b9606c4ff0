/* SPDX-License-Identifier: BSD-3-Clause */
/* How a node gets from one world into the next by way of the record: it joins by torchrun's rules
 * (rendezvous_decision), waits beside a round that runs, enters a round that is complete, and
 * leaves a round that is over. This module sees all parts of a rendezvous machine.
 * rendezvous_evaluation calls it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_JOINING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_JOINING_H

#include <stdbool.h>

#include "core/rendezvous/rendezvous_step.h"

/* Each function says whether it has written. */

/* This node is not in a complete round. It takes the next step towards one. */
bool rendezvous_join(struct rendezvous_step *step);
/* The same for a node on the wait list or the redundancy list. It has no join deadline as long as
 * Muster's nodes run. */
bool rendezvous_wait_beside(struct rendezvous_step *step);
/* This node is in a complete round. It enters the round when its agent asks for a world, or leaves
 * a round that is over. */
bool rendezvous_go_with_round(struct rendezvous_step *step);

#endif
