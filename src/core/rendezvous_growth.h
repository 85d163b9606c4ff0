/* SPDX-License-Identifier: BSD-3-Clause */
/* When a running world takes in nodes that wait: those who come together come in together, as often
 * as scale-up allows, and more slowly while the ones admitted do not stay. A part of
 * rendezvous_machine; not for others. */
#ifndef MUSTER_CORE_RENDEZVOUS_GROWTH_H
#define MUSTER_CORE_RENDEZVOUS_GROWTH_H

#include <stdbool.h>

#include "core/rendezvous_step.h"

/* Takes note of a record just seen: what became of the round before. */
void rendezvous_growth_look(struct rendezvous_step *step);

/* The node that comes first in the round admits whoever waits, when it is time; best while workers
 * have not begun to run in it. Whether it has written. */
bool rendezvous_growth_admit(struct rendezvous_step *step);

#endif
