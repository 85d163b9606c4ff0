/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_delegation.h"

static const struct instant start = {.nanoseconds = 1000000000};

static struct instant later(int milliseconds) {
    return instant_after(start, duration_from_milliseconds(milliseconds));
}

static struct rendezvous_settings between(int minimum, int maximum) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    settings.minimum_nodes = minimum;
    settings.maximum_nodes = maximum;
    return settings;
}

/* Twenty are listed in this record, and so many have come. */
static struct rendezvous_gathering with_newcomers(int count, const struct rendezvous_state *seen) {
    struct rendezvous_gathering gathering = {0};
    rendezvous_gathering_look(&gathering, 20);
    for (int i = 0; i < count; i++) {
        rendezvous_gathering_hear(&gathering, true, seen, later(i));
    }
    return gathering;
}

static void newcomers_of_a_last_call_are_let_in_by_the_half_or_soon(void **state) {
    (void)state;
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state open = {.has_deadline = true};
    struct rendezvous_gathering some = with_newcomers(9, &open);
    struct rendezvous_gathering many = with_newcomers(10, &open);
    struct moment next = {0};
    assert_true(rendezvous_gathering_holds(&some, &open, &settings, later(99)));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(100)));
    assert_false(rendezvous_gathering_holds(&many, &open, &settings, later(10)));
    rendezvous_gathering_wake(&some, later(9), &next);
    assert_true(next.is_set);
    assert_int_equal(next.at.nanoseconds, later(100).nanoseconds);
    assert_true(rendezvous_gathering_end(&some, later(100)));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(100)));
    rendezvous_gathering_look(&some, 7);
    rendezvous_gathering_hear(&some, true, &open, later(110));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(110)));
}

static void newcomers_of_a_round_that_lacks_many_are_let_in_together(void **state) {
    (void)state;
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state open = {0};
    struct rendezvous_gathering some = with_newcomers(9, &open);
    struct rendezvous_gathering many = with_newcomers(50, &open);
    struct moment next = {0};
    assert_true(rendezvous_gathering_holds(&many, &open, &settings, later(999)));
    assert_false(rendezvous_gathering_holds(&many, &open, &settings, later(1000)));
    assert_false(rendezvous_gathering_end(&many, later(1000)));
    rendezvous_gathering_wake(&some, later(9), &next);
    assert_int_equal(next.at.nanoseconds, later(1000).nanoseconds);
    next = (struct moment){0};
    rendezvous_gathering_wake(&some, later(1000), &next);
    assert_int_equal(next.at.nanoseconds, later(5000).nanoseconds);
    assert_true(rendezvous_gathering_holds(&some, &open, &settings, later(4999)));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(5000)));
}

static void newcomers_of_a_round_that_runs_are_let_in_together(void **state) {
    (void)state;
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state complete = {.is_complete = true};
    struct rendezvous_gathering gathering = with_newcomers(5, &complete);
    assert_true(rendezvous_gathering_holds(&gathering, &complete, &settings, later(9)));
    assert_false(rendezvous_gathering_holds(&gathering, &complete, &settings, later(10)));
    assert_true(rendezvous_gathering_end(&gathering, later(10)));
}

static void who_may_complete_the_round_is_let_in_at_once(void **state) {
    (void)state;
    struct rendezvous_state open = {0};
    struct rendezvous_gathering gathering = with_newcomers(3, &open);
    struct rendezvous_settings whole = between(23, 23);
    struct rendezvous_settings last_call = between(22, 100);
    struct rendezvous_settings begun = between(20, 100);
    assert_false(rendezvous_gathering_holds(&gathering, &open, &whole, later(3)));
    assert_false(rendezvous_gathering_holds(&gathering, &open, &last_call, later(3)));
    assert_true(rendezvous_gathering_holds(&gathering, &open, &begun, later(3)));
    open.wanted = 23;
    assert_false(rendezvous_gathering_holds(&gathering, &open, &begun, later(3)));
}

static void nothing_else_is_held_up(void **state) {
    (void)state;
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state closed = {.is_closed = true};
    struct rendezvous_state open = {0};
    struct rendezvous_gathering gathering = with_newcomers(3, &open);
    assert_false(rendezvous_gathering_holds(&gathering, &closed, &settings, later(3)));
    rendezvous_gathering_hear(&gathering, false, &open, later(3));
    assert_false(rendezvous_gathering_holds(&gathering, &open, &settings, later(3)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(newcomers_of_a_last_call_are_let_in_by_the_half_or_soon),
    cmocka_unit_test(newcomers_of_a_round_that_lacks_many_are_let_in_together),
    cmocka_unit_test(newcomers_of_a_round_that_runs_are_let_in_together),
    cmocka_unit_test(who_may_complete_the_round_is_let_in_at_once),
    cmocka_unit_test(nothing_else_is_held_up),
};

UNIT_TESTS(tests)
