/* SPDX-License-Identifier: BSD-3-Clause */
/* What the round exchange sees and wants, one line each, as core/agent_transcript does it for the
 * agent. */
#ifndef MUSTER_CORE_ROUND_TRANSCRIPT_H
#define MUSTER_CORE_ROUND_TRANSCRIPT_H

#include "base/text.h"
#include "core/round_exchange.h"

/* Append one line without a newline: "publish 3/publication node0:29400 of node0_7_1073741824". */
void round_event_describe(const struct round_event *event, struct text *out);
void round_effect_describe(const struct round_effect *effect, struct text *out);

#endif
