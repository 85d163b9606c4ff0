/* SPDX-License-Identifier: BSD-3-Clause */
/* What the log says of standby workers. */
#ifndef MUSTER_AGENT_STANDBY_STANDBY_TELLING_H
#define MUSTER_AGENT_STANDBY_STANDBY_TELLING_H

#include <stddef.h>

#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/standby/standby_plan.h"

/* One of the TELL effects. */
void standby_tell(
    const struct log *log, const struct launch_config *config, const struct standby_effect *effect);

/* Why each standby worker is a process of its own, where a warm parent was asked for. */
void standby_tell_separate(const struct log *log, const char *reason);

/* Of a word that there are none: who has not asked for them by name is not warned. */
enum log_level standby_level_of_none(const struct launch_config *config);

/* Why there are none, where they were asked for. */
void standby_tell_choice(
    const struct log *log, enum standby_choice choice, int worker_count, int cpu_count);

/* Why a standby worker cannot be used, in its own words. The next leaves `count` modules out. */
void standby_tell_unsuited(const struct log *log, int local_rank, const char *reason, size_t count);
void standby_tell_dirty(
    const struct log *log, const struct launch_config *config, int local_rank, const char *reason);
/* The same of one that was ready, at its gate. */
void standby_tell_outdated(const struct log *log, int local_rank, const char *reason);

#endif
