/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/standby_plan.h"

static struct instant at(double seconds) {
    return (struct instant){(int64_t)(seconds * 1000 + 0.5) * 1000000};
}

static void expect_next(const struct standby_looking *looking, double seconds) {
    assert_int_equal(looking->next.nanoseconds, at(seconds).nanoseconds);
}

static void start(struct standby_looking *looking) {
    standby_looking_init(looking, duration_from_seconds(2.5));
    assert_false(standby_looking_is_due(looking, at(1000000)));
    standby_looking_begin(looking, at(0), true);
}

static bool take(struct standby_looking *looking, double now, double quiet) {
    return standby_looking_take(looking, at(now), duration_from_seconds(quiet), 7);
}

static void the_first_look_is_long_before_workers_may_be_quiet(void **state) {
    (void)state;
    struct standby_looking looking;
    start(&looking);
    assert_false(standby_looking_is_due(&looking, at(0.624)));
    assert_true(standby_looking_is_due(&looking, at(0.625)));
    assert_false(standby_looking_is_due(&looking, at(2.5))); /* until its result is taken */
}

static void nobody_looks_at_workers_of_a_last_attempt(void **state) {
    (void)state;
    struct standby_looking looking;
    standby_looking_init(&looking, duration_from_seconds(2.5));
    standby_looking_begin(&looking, at(0), false);
    assert_false(standby_looking_is_due(&looking, at(1000000)));
    assert_false(take(&looking, 10, 10));
    assert_int_equal(looking.modules, 0);
}

/* When they have imported last is known from the looks alone. */
static void workers_that_import_are_looked_at_often_and_when_they_may_be_quiet(void **state) {
    (void)state;
    struct standby_looking looking;
    start(&looking);
    assert_false(take(&looking, 2.5, 1));
    expect_next(&looking, 3.125);
    assert_false(take(&looking, 3.5, 2));
    expect_next(&looking, 4);
    assert_false(take(&looking, 4, 2.45));
    expect_next(&looking, 4.1);
    assert_false(looking.is_quiet);
    assert_int_equal(looking.modules, 7);
}

static void looks_at_quiet_workers_become_rare(void **state) {
    (void)state;
    struct standby_looking looking;
    double pause = 2.5;
    double now = 2.5;
    start(&looking);
    for (int i = 0; i < 12; i++) {
        assert_true(take(&looking, now, 60));
        assert_true(looking.is_quiet);
        pause = 2 * pause > STANDBY_LOOK_SECONDS ? STANDBY_LOOK_SECONDS : 2 * pause;
        expect_next(&looking, now + pause);
        now += pause;
    }
}

static void ended_workers_are_not_quiet(void **state) {
    (void)state;
    struct standby_looking looking;
    start(&looking);
    assert_true(take(&looking, 2.5, 60));
    standby_looking_end(&looking);
    assert_false(looking.is_quiet);
    assert_false(standby_looking_is_due(&looking, at(1000000)));
    assert_false(take(&looking, 3, 60));
}

static void silence_is_told_once_and_not_at_once(void **state) {
    (void)state;
    struct standby_looking looking;
    int told = 0;
    start(&looking);
    assert_false(standby_looking_note_silence(&looking));
    for (int i = 0; i < 8; i++) {
        told += standby_looking_note_silence(&looking) ? 1 : 0;
    }
    assert_int_equal(told, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_look_is_long_before_workers_may_be_quiet),
    cmocka_unit_test(nobody_looks_at_workers_of_a_last_attempt),
    cmocka_unit_test(workers_that_import_are_looked_at_often_and_when_they_may_be_quiet),
    cmocka_unit_test(looks_at_quiet_workers_become_rare),
    cmocka_unit_test(ended_workers_are_not_quiet),
    cmocka_unit_test(silence_is_told_once_and_not_at_once),
};

UNIT_TESTS(tests)
