/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "core/workers/signal_name.h"

static bool take(struct signal_repetition *repetition, int signal, int64_t milliseconds) {
    return signal_repetition_take(
        repetition, signal, (struct instant){milliseconds * NANOSECONDS_PER_MILLISECOND});
}

TEST(the_first_signal_repeats_nothing) {
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGTERM, 0));
    struct signal_repetition other = {0};
    assert_false(take(&other, SIGINT, 70000));
}

TEST(what_follows_within_seconds_is_a_repetition_of_whatever_kind) {
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGTERM, 2000));
    assert_true(take(&repetition, SIGTERM, 2000));
    assert_true(take(&repetition, SIGHUP, 2001));
    assert_true(take(&repetition, SIGTERM, 6999));
}

/* The seconds are counted from the first one: who repeats it again and again is heard. */
TEST(what_comes_later_is_meant) {
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGTERM, 2000));
    assert_true(take(&repetition, SIGTERM, 6000));
    assert_false(take(&repetition, SIGTERM, 7000));
    assert_false(take(&repetition, SIGHUP, 7001));
}

/* A wrapper passes on what the terminal has sent to the whole group. */
TEST(the_same_signal_within_moments_is_one) {
    for (int signal = SIGHUP; signal <= SIGQUIT; signal++) { /* and SIGINT between them */
        struct signal_repetition repetition = {0};
        assert_false(take(&repetition, signal, 1000));
        assert_true(take(&repetition, signal, 1000));
        assert_true(take(&repetition, signal, 1004));
        assert_true(take(&repetition, signal, 1299));
    }
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGTERM, 0));
    assert_false(take(&repetition, SIGINT, 2000));
    assert_true(take(&repetition, SIGINT, 2001));
    assert_true(take(&repetition, SIGTERM, 2002));
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

TEST(who_is_at_a_keyboard_means_each_kind_of_signal) {
    struct signal_repetition repetition = {0};
    assert_false(take(&repetition, SIGINT, 0));
    assert_false(take(&repetition, SIGQUIT, 100));
    assert_true(take(&repetition, SIGTERM, 300));
    assert_true(signal_repetition_is_from_keyboard(SIGINT));
    assert_true(signal_repetition_is_from_keyboard(SIGQUIT));
    assert_false(signal_repetition_is_from_keyboard(SIGTERM));
}
