/* SPDX-License-Identifier: BSD-3-Clause */
/* How the place of a host that leaves goes over to the node that it names, and how the others learn
 * of it. The successor claims as any node does, so that the register decides: the host only saves
 * it the suspicion, and the others their turns. This is a part of succession_machine. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_HANDOVER_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_HANDOVER_H

#include <stdbool.h>

#include "core/succession/succession_step.h"

/* The host: LEAVE and NODE_GONE; and SEEN after LEAVE. */
void succession_take_leave(struct succession_step *step);
void succession_see_who_stays(struct succession_step *step);
void succession_take_gone_node(struct succession_step *step);
/* The others: NAMED and MOVED. */
void succession_take_named(struct succession_step *step);
void succession_take_moved(struct succession_step *step);

/* After each step: names the successor when nothing is being appended any more, and dismisses the
 * others when it is time. */
void succession_hand_over(struct succession_step *step);
/* Whether this host has named its successor: what it appends now would only cross its claim. */
bool succession_has_handed_over(const struct succession_machine *machine);

#endif
