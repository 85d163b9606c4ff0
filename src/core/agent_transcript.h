/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent machine sees and wants, one line each: simulation tests compare these lines, a
 * running agent logs them at debug level, so that a production log is a test case. */
#ifndef MUSTER_CORE_AGENT_TRANSCRIPT_H
#define MUSTER_CORE_AGENT_TRANSCRIPT_H

#include "base/text.h"
#include "core/agent_machine.h"

/* Append one line without a newline: "worker_exited rank=1 signal=9", "arm_timer at=30.000". Times
 * are seconds on the machine's monotonic clock. */
void agent_event_describe(const struct agent_event *event, struct text *out);
void agent_effect_describe(const struct agent_effect *effect, struct text *out);

/* "joining", "running" … */
const char *agent_phase_name(enum agent_phase phase);

#endif
