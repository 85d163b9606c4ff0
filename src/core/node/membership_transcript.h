/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event that the performer tells the membership, and for each effect, as
 * core/agent/agent_transcript has them for the agent. */
#ifndef MUSTER_CORE_NODE_MEMBERSHIP_TRANSCRIPT_H
#define MUSTER_CORE_NODE_MEMBERSHIP_TRANSCRIPT_H

#include "base/text.h"
#include "core/node/node_membership.h"

/* Appends one line without a newline, for example "look_for_root_cause round=3" or "agent:
 * round_over". */
void membership_event_describe(const struct membership_event *event, struct text *out);
void membership_effect_describe(const struct membership_effect *effect, struct text *out);

/* "joining", "barrier" … */
const char *membership_stage_name(enum membership_stage stage);

#endif
