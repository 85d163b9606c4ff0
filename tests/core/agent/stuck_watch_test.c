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

TEST(any_other_state_starts_over) {
    struct stuck_watch watch = {0};
    assert_int_equal(see(&watch, 'D', 0), STUCK_BEGINS);
    assert_int_equal(see(&watch, 'R', 400), STUCK_NOTHING_NEW);
    assert_int_equal(see(&watch, 'D', 500), STUCK_BEGINS);
    assert_int_equal(see(&watch, 'D', 999), STUCK_NOTHING_NEW);
    assert_int_equal(see(&watch, 'D', 1000), STUCK_TIMED_OUT);
    assert_int_equal(see(&watch, 'Z', 1100), STUCK_NOTHING_NEW);
    assert_int_equal(see(&watch, 'D', 1200), STUCK_BEGINS);
}
