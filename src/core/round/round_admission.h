/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: whom the workers' store serves, where it is to serve only machines
 * of the round's nodes. Each node of Muster tells the addresses of its machine in its role info.
 * Rank 0 collects them and tells the performer, before it writes the ranks: without these no other
 * node starts workers. Nodes of torchrun tell no addresses, and where ranks are not exchanged
 * nobody does. Then the addresses are not known, and the store has to serve everybody. */
#ifndef MUSTER_CORE_ROUND_ROUND_ADMISSION_H
#define MUSTER_CORE_ROUND_ROUND_ADMISSION_H

#include <stddef.h>

#include "core/round/round_step.h"

/* The role infos of all nodes are known; a node alone has none. Does nothing where the settings do
 * not ask for it. */
void round_admission_tell(struct round_step *step, const struct role_info *infos, size_t count);

/* No node will tell its addresses. Does nothing where this node is not of rank 0. */
void round_admission_tell_nothing(struct round_step *step);

#endif
