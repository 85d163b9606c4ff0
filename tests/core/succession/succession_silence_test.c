/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/succession/succession_machine.h"

static struct instant at(double seconds) {
    return (struct instant){(int64_t)(seconds * 1e9 + 0.5)};
}

/* A look that is answered a hundredth of a second later. Returns whether the silence has lasted. */
static bool look(struct succession_silence *silence, double seconds, const char *renewal) {
    struct duration timeout = duration_from_seconds(3);
    assert_true(succession_silence_is_due(silence, at(seconds)));
    succession_silence_ask(silence, at(seconds));
    assert_false(succession_silence_is_due(silence, at(seconds + 100)));
    assert_false(succession_silence_next(silence).is_set);
    succession_silence_take(silence, renewal, timeout, at(seconds + 0.01));
    return succession_silence_has_lasted(silence, timeout);
}

static void a_host_that_renews_nothing_for_long_enough_is_silent(void **state) {
    (void)state;
    struct succession_silence silence = {0};
    succession_silence_begin(&silence, at(1));
    assert_false(look(&silence, 1, "7"));
    assert_false(look(&silence, 1.5, "7"));
    assert_true(succession_silence_next(&silence).at.nanoseconds == at(2).nanoseconds);
    assert_false(look(&silence, 2.6, "7"));
    assert_true(succession_silence_next(&silence).at.nanoseconds == at(3.51).nanoseconds);
    assert_true(look(&silence, 3.51, "7"));
    assert_true(look(&silence, 4.01, "7"));
    succession_silence_end(&silence);
    assert_false(silence.is_watched);
}

static void a_renewal_begins_the_silence_anew(void **state) {
    (void)state;
    struct succession_silence silence = {0};
    succession_silence_begin(&silence, at(1));
    assert_false(look(&silence, 1, "7"));
    assert_false(look(&silence, 3.4, "8"));
    assert_false(look(&silence, 4, "8"));
    succession_silence_hear(&silence);
    assert_false(look(&silence, 6, "8"));
    assert_true(look(&silence, 8.6, "8"));
    succession_silence_end(&silence);
}

static void a_register_that_is_away_shows_nothing(void **state) {
    (void)state;
    struct succession_silence silence = {0};
    succession_silence_begin(&silence, at(1));
    assert_false(look(&silence, 1, "7"));
    assert_false(look(&silence, 2, NULL));
    assert_false(look(&silence, 4, "7"));
    assert_true(look(&silence, 7, "7"));
    succession_silence_end(&silence);
}

/* What stood still in between may have been this node. */
static void only_an_answer_that_was_asked_for_late_enough_counts(void **state) {
    (void)state;
    struct succession_silence silence = {0};
    struct duration timeout = duration_from_seconds(3);
    succession_silence_begin(&silence, at(1));
    assert_false(look(&silence, 1, "7"));
    succession_silence_ask(&silence, at(1.5));
    succession_silence_take(&silence, "7", timeout, at(30));
    assert_false(succession_silence_has_lasted(&silence, timeout));
    succession_silence_end(&silence);
}

static void an_answer_of_an_earlier_doubt_is_nothing(void **state) {
    (void)state;
    struct succession_silence silence = {0};
    succession_silence_begin(&silence, at(1));
    succession_silence_ask(&silence, at(1));
    succession_silence_end(&silence);
    succession_silence_take(&silence, "7", duration_from_seconds(3), at(2));
    assert_null(silence.renewal);
    assert_false(succession_silence_is_due(&silence, at(9)));
}

static void a_short_timeout_still_waits_for_two_renewals(void **state) {
    (void)state;
    struct succession_silence silence = {0};
    struct duration timeout = duration_from_milliseconds(100);
    succession_silence_begin(&silence, at(0));
    succession_silence_ask(&silence, at(0));
    succession_silence_take(&silence, "1", timeout, at(0));
    succession_silence_ask(&silence, at(2.2));
    succession_silence_take(&silence, "1", timeout, at(2.2));
    assert_false(succession_silence_has_lasted(&silence, timeout));
    succession_silence_ask(&silence, at(2.3));
    succession_silence_take(&silence, "1", timeout, at(2.3));
    assert_true(succession_silence_has_lasted(&silence, timeout));
    succession_silence_end(&silence);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_host_that_renews_nothing_for_long_enough_is_silent),
    cmocka_unit_test(a_renewal_begins_the_silence_anew),
    cmocka_unit_test(a_register_that_is_away_shows_nothing),
    cmocka_unit_test(only_an_answer_that_was_asked_for_late_enough_counts),
    cmocka_unit_test(an_answer_of_an_earlier_doubt_is_nothing),
    cmocka_unit_test(a_short_timeout_still_waits_for_two_renewals),
};

UNIT_TESTS(tests)
