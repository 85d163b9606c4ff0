/* SPDX-License-Identifier: BSD-3-Clause */
/* What the static rendezvous sees and wants, one line each, as core/agent_transcript does it for
 * the agent. */
#ifndef MUSTER_CORE_STATIC_TRANSCRIPT_H
#define MUSTER_CORE_STATIC_TRANSCRIPT_H

#include "base/text.h"
#include "core/static_rendezvous.h"

/* Append one line without a newline: "compare_set end/0 restart". */
void static_event_describe(const struct static_event *event, struct text *out);
void static_effect_describe(const struct static_effect *effect, struct text *out);

#endif
