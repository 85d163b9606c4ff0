/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/connection_silence.h"

static const struct duration limit = {INT64_C(3000000000)};

static struct instant at(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

static bool look(struct connection_silence *silence, double silent_for, double now) {
    return connection_silence_look(silence, duration_from_seconds(silent_for), limit, at(now));
}

static void a_machine_that_stays_silent_is_gone_at_the_second_look(void **state) {
    (void)state;
    struct connection_silence silence = {0};
    assert_false(look(&silence, 2.9, 10));
    assert_false(look(&silence, 3.4, 10.5));
    assert_false(look(&silence, 3.9, 11));
    assert_true(look(&silence, 4.4, 11.5));
}

static void a_sign_of_life_ends_the_doubt(void **state) {
    (void)state;
    struct connection_silence silence = {0};
    assert_false(look(&silence, 3.2, 10));
    assert_false(look(&silence, 0.1, 10.5));
    assert_false(look(&silence, 3.1, 13.5));
    assert_false(look(&silence, 3.6, 14));
    assert_true(look(&silence, 4.1, 14.5));
}

/* Its own clock has gone on while it was stopped, and nobody could answer it. */
static void who_was_stopped_itself_takes_nobody_for_gone(void **state) {
    (void)state;
    struct connection_silence silence = {0};
    assert_false(look(&silence, 0.5, 10));
    assert_false(look(&silence, 60.5, 70));
    assert_false(look(&silence, 0.3, 70.5));
    assert_false(silence.is_doubted);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_machine_that_stays_silent_is_gone_at_the_second_look),
    cmocka_unit_test(a_sign_of_life_ends_the_doubt),
    cmocka_unit_test(who_was_stopped_itself_takes_nobody_for_gone),
};

TEST_MAIN(tests)
