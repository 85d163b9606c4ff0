/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and each effect of the round exchange, as core/agent_transcript has them
 * for the agent. */
#ifndef MUSTER_CORE_ROUND_ROUND_TRANSCRIPT_H
#define MUSTER_CORE_ROUND_ROUND_TRANSCRIPT_H

#include "base/text.h"
#include "core/round/round_exchange.h"

/* Appends one line without a newline, for example "publish 3/publication node0:29400 of
 * node0_7_1073741824". */
void round_event_describe(const struct round_event *event, struct text *out);
void round_effect_describe(const struct round_effect *effect, struct text *out);

#endif
