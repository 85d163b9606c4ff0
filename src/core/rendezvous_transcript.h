/* SPDX-License-Identifier: BSD-3-Clause */
/* What a dynamic rendezvous sees and wants, one line each, as core/agent_transcript does it for the
 * agent: a debug log of a running agent reads like the transcript of a simulated one. */
#ifndef MUSTER_CORE_RENDEZVOUS_TRANSCRIPT_H
#define MUSTER_CORE_RENDEZVOUS_TRANSCRIPT_H

#include "base/text.h"
#include "core/rendezvous_machine.h"

/* Append one line without a newline: "written lost round 3 open [a_1_0] wait [] spare []". */
void rendezvous_event_describe(const struct rendezvous_event *event, struct text *out);
void rendezvous_effect_describe(const struct rendezvous_effect *effect, struct text *out);

#endif
