/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and effect of core/standby/standby_plan, for transcripts and debug logs.
 */
#ifndef MUSTER_CORE_STANDBY_STANDBY_TRANSCRIPT_H
#define MUSTER_CORE_STANDBY_STANDBY_TRANSCRIPT_H

#include "base/text.h"
#include "core/standby/standby_plan.h"

void standby_event_describe(const struct standby_event *event, struct text *out);
void standby_effect_describe(const struct standby_effect *effect, struct text *out);

/* A short name of a reason, for metrics and transcripts: "dirty". */
const char *standby_off_name(enum standby_off why);

#endif
