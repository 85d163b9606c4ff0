/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and effect of the succession machine, for transcripts, and for the log at
 * debug level. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_TRANSCRIPT_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_TRANSCRIPT_H

#include "base/text.h"
#include "core/succession/succession_machine.h"

void succession_event_describe(const struct succession_event *event, struct text *out);
void succession_effect_describe(const struct succession_effect *effect, struct text *out);

#endif
