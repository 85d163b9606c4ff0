/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps strangers from filling a log: a burst of records passes, then so many per second; what was
 * held back is counted, for the next record that passes to say. */
#ifndef MUSTER_BASE_LOG_THROTTLE_H
#define MUSTER_BASE_LOG_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"

#define LOG_THROTTLE_BURST 20
#define LOG_THROTTLE_PER_SECOND 2

/* A zeroed struct admits a full burst. */
struct log_throttle {
    struct instant last;
    int64_t spent; /* of the burst, in nanoseconds of waiting */
    uint64_t held_back;
};

/* Whether a record may be written now; if so, `*out_held_back` is how many were not since the last
 * one. */
bool log_throttle_admits(
    struct log_throttle *throttle, struct instant now, uint64_t *out_held_back);

#endif
