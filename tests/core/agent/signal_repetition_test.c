/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "core/workers/signal_name.h"

static bool take(struct signal_repetition *repetition, int signal, int64_t milliseconds) {
    return signal_repetition_take(
        repetition, signal, (struct instant){milliseconds * NANOSECONDS_PER_MILLISECOND});
}

/* The seconds are counted from the first one: who repeats it again and again is heard. */
TEST(what_comes_later_is_meant) {
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGTERM, 2000));
    assert_true(take(&repetition, SIGTERM, 6000));
    assert_false(take(&repetition, SIGTERM, 7000));
    assert_false(take(&repetition, SIGHUP, 7001));
}

/* The moments are counted from the one that was meant: who goes on pressing is heard. */
TEST(who_presses_again_is_heard) {
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGINT, 1000));
    assert_true(take(&repetition, SIGINT, 1200));
    assert_false(take(&repetition, SIGINT, 1300));
    struct signal_repetition other = {0};
    assert_false(take(&other, SIGQUIT, 0));
    assert_false(take(&other, SIGQUIT, 500));
}
