/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the two clocks, for code that has no event loop or runs between fork and exec. Both
 * functions are async-signal-safe. */
#ifndef MUSTER_HOST_LOOP_CLOCK_H
#define MUSTER_HOST_LOOP_CLOCK_H

#include "base/duration.h"

struct instant clock_now(void);
struct wall_time clock_wall_time(void);

#endif
