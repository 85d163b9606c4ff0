/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_throttle.h"

#define COST ((int64_t)1000000000 / LOG_THROTTLE_PER_SECOND)
#define BUDGET (COST * LOG_THROTTLE_BURST)

bool log_throttle_admits(
    struct log_throttle *throttle, struct instant now, uint64_t *out_held_back) {
    int64_t regained = instant_until(throttle->last, now).nanoseconds;
    throttle->spent = regained >= throttle->spent ? 0 : throttle->spent - regained;
    throttle->last = now;
    if (throttle->spent + COST > BUDGET) {
        throttle->held_back++;
        return false;
    }
    throttle->spent += COST;
    *out_held_back = throttle->held_back;
    throttle->held_back = 0;
    return true;
}
