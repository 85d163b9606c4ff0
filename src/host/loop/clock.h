/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the two clocks, for code that has no event loop or runs between fork and exec. The first
 * two functions are async-signal-safe. */
#ifndef MUSTER_HOST_LOOP_CLOCK_H
#define MUSTER_HOST_LOOP_CLOCK_H

#include "base/duration.h"
#include "base/log.h"

struct instant clock_now(void);
struct wall_time clock_wall_time(void);

/* Local time. TorchElastic's records carry milliseconds, so the last three digits are 000. */
struct log_time clock_log_time(void);

#endif
