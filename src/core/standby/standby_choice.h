/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a job is to have standby workers at all, and for what kind of program. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_CHOICE_H
#define MUSTER_CORE_STANDBY_STANDBY_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/launch/launch_config.h"

/* Workers are started again only where failures may cost a restart, or where nodes come and go.
 * With --standby auto, the program is Python as well, and there are at least twice as many CPUs as
 * workers. `cpu_count` is of those on which this process may run. */
bool standby_is_wanted(const struct launch_config *config, int worker_count, int cpu_count);

/* With --standby auto, standby workers may take this part of the memory that is available. `size`
 * is that of one, in bytes. */
#define STANDBY_MEMORY_PART 20
bool standby_leaves_memory(uint64_t available, int worker_count, uint64_t size);

/* Whether the workers are run by a Python interpreter, so that the hook can reach them. */
bool standby_is_for_python(const struct launch_config *config);

#endif
