/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/workers/worker_group.h"

static enum stuck_verdict see(struct stuck_watch *watch, char state, int64_t milliseconds) {
    return stuck_watch_see(
        watch, state, (struct instant){milliseconds * 1000000}, duration_from_milliseconds(500));
}

TEST(a_worker_stuck_for_the_whole_time_is_told_once) {
    struct stuck_watch watch = {0};
    assert_int_equal(see(&watch, 'S', 0), STUCK_NOTHING_NEW);
    assert_int_equal(see(&watch, 'D', 100), STUCK_BEGINS);
    assert_int_equal(see(&watch, 'D', 599), STUCK_NOTHING_NEW);
    assert_int_equal(see(&watch, 'D', 600), STUCK_TIMED_OUT);
    assert_int_equal(see(&watch, 'D', 700), STUCK_NOTHING_NEW);
}
