/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/watchdog/watchdog_machine.h"

static struct instant at(int64_t milliseconds) {
    return (struct instant){milliseconds * 1000000};
}

static void who_was_added_is_known_for_a_moment(void **state) {
    (void)state;
    struct known_processes known = {0};
    uint64_t start_time;
    assert_false(known_processes_find(&known, 7, at(100), &start_time));
    known_processes_add(&known, 7, 70, at(100));
    assert_true(known_processes_find(&known, 7, at(109), &start_time));
    assert_int_equal(start_time, 70);
    assert_false(known_processes_find(&known, 7, at(110), &start_time));
}

static void who_is_forgotten_is_not_known(void **state) {
    (void)state;
    struct known_processes known = {0};
    uint64_t start_time;
    known_processes_add(&known, 7, 70, at(100));
    known_processes_forget(&known, 8);
    assert_true(known_processes_find(&known, 7, at(100), &start_time));
    known_processes_forget(&known, 7);
    assert_false(known_processes_find(&known, 7, at(100), &start_time));
}

static void two_processes_in_one_place_are_not_mixed_up(void **state) {
    (void)state;
    struct known_processes known = {0};
    uint64_t start_time;
    known_processes_add(&known, 7, 70, at(100));
    known_processes_forget(&known, 7 + KNOWN_PROCESSES_PLACES);
    assert_false(known_processes_find(&known, 7 + KNOWN_PROCESSES_PLACES, at(100), &start_time));
    assert_true(known_processes_find(&known, 7, at(100), &start_time));
    known_processes_add(&known, 7 + KNOWN_PROCESSES_PLACES, 71, at(100));
    assert_false(known_processes_find(&known, 7, at(100), &start_time));
    assert_true(known_processes_find(&known, 7 + KNOWN_PROCESSES_PLACES, at(100), &start_time));
    assert_int_equal(start_time, 71);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_was_added_is_known_for_a_moment),
    cmocka_unit_test(who_is_forgotten_is_not_known),
    cmocka_unit_test(two_processes_in_one_place_are_not_mixed_up),
};

UNIT_TESTS(tests)
