/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and each effect of the agent machine. Simulation tests compare these
 * lines. A running agent logs them at debug level, so a production log can become a test case. */
#ifndef MUSTER_CORE_AGENT_AGENT_TRANSCRIPT_H
#define MUSTER_CORE_AGENT_AGENT_TRANSCRIPT_H

#include "base/text.h"
#include "core/agent/agent_machine.h"

/* Appends one line without a newline, for example "worker_exited rank=1 signal=9" or "arm_timer
 * at=30.000". Times are seconds on the machine's monotonic clock. */
void agent_event_describe(const struct agent_event *event, struct text *out);
void agent_effect_describe(const struct agent_effect *effect, struct text *out);

/* "joining", "running" … */
const char *agent_phase_name(enum agent_phase phase);

#endif
