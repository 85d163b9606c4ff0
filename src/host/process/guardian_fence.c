/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian_fence.h"

#define LOOKS 16 /* in the time that the agent may be silent */
#define LONGEST_PAUSE_MILLISECONDS 500

void guardian_fence_hear(
    struct guardian_fence *fence, struct duration patience, struct instant now) {
    fence->patience = patience;
    fence->silence = (struct duration){0};
    fence->counted_until = now;
}

int guardian_fence_pause(const struct guardian_fence *fence) {
    if (fence->patience.nanoseconds <= 0 || fence->is_closed) {
        return -1;
    }
    int64_t pause = duration_milliseconds_ceiling(fence->patience) / LOOKS + 1;
    return pause < LONGEST_PAUSE_MILLISECONDS ? (int)pause : LONGEST_PAUSE_MILLISECONDS;
}

bool guardian_fence_look(struct guardian_fence *fence, struct instant now) {
    int pause = guardian_fence_pause(fence);
    if (pause < 0) {
        return false;
    }
    int64_t most = duration_from_milliseconds(2 * (int64_t)pause).nanoseconds;
    int64_t passed = instant_until(fence->counted_until, now).nanoseconds;
    fence->silence.nanoseconds += passed < most ? passed : most;
    fence->counted_until = now;
    fence->is_closed = fence->silence.nanoseconds >= fence->patience.nanoseconds;
    return fence->is_closed;
}

void guardian_fence_open(struct guardian_fence *fence, struct instant now) {
    fence->is_closed = false;
    guardian_fence_hear(fence, fence->patience, now);
}
