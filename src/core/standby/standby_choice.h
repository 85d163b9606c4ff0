/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a job is to have standby workers at all, and for what kind of program. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_CHOICE_H
#define MUSTER_CORE_STANDBY_STANDBY_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/launch/launch_config.h"

/* Whether there are to be standby workers, or why not. */
enum standby_choice {
    STANDBY_CHOICE_WANTED,
    STANDBY_CHOICE_OFF,
    STANDBY_CHOICE_NO_RESTART, /* workers are never started again */
    STANDBY_CHOICE_NO_PYTHON,  /* auto: nobody knows whether the program would wait */
    STANDBY_CHOICE_FEW_CPUS,   /* auto: there are less than two for each worker */
};

/* Workers are started again only where failures may cost a restart, or where nodes come and go.
 * `cpu_count` is of those on which this process may run. */
enum standby_choice standby_choose(
    const struct launch_config *config, int worker_count, int cpu_count);

/* With --standby auto, standby workers may take this part of the memory that is available. `size`
 * is that of one, in bytes. */
#define STANDBY_MEMORY_PART 20
bool standby_leaves_memory(uint64_t available, int worker_count, uint64_t size);

/* Whether the workers are run by a Python interpreter, so that the hook can reach them. */
bool standby_is_for_python(const struct launch_config *config);

#endif
