/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian_fence.h"

#define LOOKS 16                       /* at a silent agent, in the time that it may be silent */
#define USUAL_LOOKS 4                  /* at one that was not silent at the last look */
#define LONGEST_PAUSE_MILLISECONDS 500 /* while it is silent */
#define LONGEST_USUAL_PAUSE_MILLISECONDS 60000

void guardian_fence_hear(
    struct guardian_fence *fence, struct duration patience, struct instant now) {
    fence->patience = patience;
    fence->silence = (struct duration){0};
    fence->heard = now;
    fence->counted_until = now;
}

/* The pause between two looks at a silent agent, in milliseconds. */
static int64_t short_pause(const struct guardian_fence *fence) {
    int64_t pause = duration_milliseconds_ceiling(fence->patience) / LOOKS + 1;
    return pause < LONGEST_PAUSE_MILLISECONDS ? pause : LONGEST_PAUSE_MILLISECONDS;
}

int guardian_fence_pause(const struct guardian_fence *fence) {
    if (fence->patience.nanoseconds <= 0 || fence->is_closed) {
        return -1;
    }
    struct duration usual = {fence->patience.nanoseconds / USUAL_LOOKS};
    if (fence->silence.nanoseconds <= usual.nanoseconds) {
        int64_t pause = duration_milliseconds_ceiling(usual);
        return (int)(pause < LONGEST_USUAL_PAUSE_MILLISECONDS ? pause
                                                              : LONGEST_USUAL_PAUSE_MILLISECONDS);
    }
    int64_t left = fence->patience.nanoseconds - fence->silence.nanoseconds;
    int64_t pause = duration_milliseconds_ceiling((struct duration){left > 0 ? left : 1});
    return (int)(pause < short_pause(fence) ? pause : short_pause(fence));
}

bool guardian_fence_look(struct guardian_fence *fence, struct instant now) {
    int pause = guardian_fence_pause(fence);
    if (pause < 0) {
        return false;
    }
    int64_t most = duration_from_milliseconds(pause + short_pause(fence)).nanoseconds;
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
