/* SPDX-License-Identifier: BSD-3-Clause */
/* What the log says of standby workers. */
#ifndef MUSTER_AGENT_STANDBY_STANDBY_TELLING_H
#define MUSTER_AGENT_STANDBY_STANDBY_TELLING_H

#include "base/log.h"
#include "core/standby/standby_plan.h"

/* One of the TELL effects. */
void standby_tell(
    const struct log *log, const struct launch_config *config, const struct standby_effect *effect);

/* Why there are none, where they were asked for. */
void standby_tell_choice(
    const struct log *log, enum standby_choice choice, int worker_count, int cpu_count);

/* Why a standby worker cannot be used, in its own words. The next leaves `count` modules out. */
void standby_tell_unsuited(const struct log *log, int local_rank, const char *reason, size_t count);
void standby_tell_dirty(const struct log *log, int local_rank, const char *reason);
/* Why one that was ready is of no use at its gate, in its own words. */
void standby_tell_outdated(const struct log *log, int local_rank, const char *reason);

#endif
