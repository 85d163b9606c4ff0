/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_request.h"

static const struct duration limit = {INT64_C(3000000000)};

static struct instant at(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

static bool look(struct connection_silence *silence, double silent_for, double now) {
    return connection_silence_look(silence, duration_from_seconds(silent_for), limit, at(now));
}

/* Its own clock has gone on while it was stopped, and nobody could answer it. */
TEST(who_was_stopped_itself_takes_nobody_for_gone) {
    struct connection_silence silence = {0};
    assert_false(look(&silence, 0.5, 10));
    assert_false(look(&silence, 60.5, 70));
    assert_false(look(&silence, 0.3, 70.5));
    assert_false(silence.is_doubted);
}

/* How long after the last sign of life it is gone, where the first look comes so long after it. */
static double seconds_until_gone(double first_look, struct duration patience) {
    struct connection_silence silence = {0};
    double now = first_look;
    for (int looks = 0; looks < 100; looks++) {
        struct duration silent_for = duration_from_seconds(now);
        if (connection_silence_look(&silence, silent_for, patience, at(now))) {
            return now;
        }
        now += duration_seconds(connection_silence_pause(&silence, silent_for, patience, at(now)));
    }
    return 0;
}

TEST(looks_come_when_the_doubt_begins_and_ends) {
    for (double first = 0; first < 1.5; first += 0.05) {
        assert_true(seconds_until_gone(first, limit) >= 3.5);
        assert_true(seconds_until_gone(first, limit) <= 3.6);
        assert_true(seconds_until_gone(first, duration_from_seconds(1)) <= 2.5);
    }
}

TEST(a_machine_that_gives_signs_of_life_is_looked_at_once_a_second) {
    struct connection_silence silence = {0};
    struct duration silent_for = duration_from_seconds(0.9);
    assert_false(connection_silence_look(&silence, silent_for, limit, at(10)));
    struct duration pause = connection_silence_pause(&silence, silent_for, limit, at(10));
    assert_true(duration_seconds(pause) == 1.0);
    /* Such a look may be early, so that it joins others; one that decides may not. */
    assert_true(duration_seconds(connection_silence_earliest(pause)) == 0.5);
    pause = duration_from_seconds(0.7);
    assert_true(duration_seconds(connection_silence_earliest(pause)) == 0.7);
}

TEST(a_silence_rests_while_it_cannot_pass_the_limit) {
    struct connection_silence silence = {0};
    struct instant now = {INT64_C(1000000000000)};
    assert_false(connection_silence_rests(&silence, now));
    assert_false(connection_silence_look(&silence, duration_from_milliseconds(500), limit, now));
    assert_true(
        connection_silence_rests(&silence, instant_after(now, duration_from_milliseconds(1499))));
    assert_false(
        connection_silence_rests(&silence, instant_after(now, duration_from_milliseconds(1500))));
    now = instant_after(now, duration_from_milliseconds(2600));
    assert_false(connection_silence_look(&silence, duration_from_milliseconds(3100), limit, now));
    assert_false(connection_silence_rests(&silence, now)); /* it is doubted */
}
