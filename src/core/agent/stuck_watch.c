/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/stuck_watch.h"

enum stuck_verdict stuck_watch_see(
    struct stuck_watch *watch, char state, struct instant now, struct duration timeout) {
    if (state != 'D') {
        *watch = (struct stuck_watch){0};
        return STUCK_NOTHING_NEW;
    }
    if (!watch->is_stuck) {
        *watch = (struct stuck_watch){.is_stuck = true, .since = now};
        return STUCK_BEGINS;
    }
    if (watch->has_timed_out || instant_is_before(now, instant_after(watch->since, timeout))) {
        return STUCK_NOTHING_NEW;
    }
    watch->has_timed_out = true;
    return STUCK_TIMED_OUT;
}
