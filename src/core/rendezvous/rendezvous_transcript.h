/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and each effect of a rendezvous machine, as core/agent_transcript has
 * them for the agent. So the debug log of a running agent reads like the transcript of a
 * simulation. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_TRANSCRIPT_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_TRANSCRIPT_H

#include "base/text.h"
#include "core/rendezvous/rendezvous_machine.h"

/* Appends one line without a newline, for example "written lost round 3 open [a_1_0] wait [] spare
 * []". */
void rendezvous_event_describe(const struct rendezvous_event *event, struct text *out);
void rendezvous_effect_describe(const struct rendezvous_effect *effect, struct text *out);

#endif
