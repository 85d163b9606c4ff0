/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits how many records a remote client can cause. A burst of records passes, then a fixed number
 * per second. Records that are held back are counted, and the next record that passes can say how
 * many they were. */
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
    int64_t spent; /* how much of the burst is used up, in nanoseconds of waiting */
    uint64_t held_back;
};

/* Whether a record may be written now. If so, `*out_held_back` is the number of records held back
 * since the last one that passed. */
bool log_throttle_admits(
    struct log_throttle *throttle, struct instant now, uint64_t *out_held_back);

#endif
