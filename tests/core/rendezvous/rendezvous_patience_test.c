/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_link.h"
#include "rendezvous_fixture.h"

#define SECOND INT64_C(1000000000)

static const struct duration minute = {60 * SECOND};

static struct instant at(int64_t seconds) {
    return (struct instant){seconds * SECOND};
}

static void a_wait_that_has_begun_does_not_begin_again(void **state) {
    (void)state;
    struct rendezvous_patience patience = {0};
    assert_false(rendezvous_patience_is_late(&patience, 1, at(1000)));
    rendezvous_patience_begin(&patience, at(0), minute);
    rendezvous_patience_begin(&patience, at(30), minute);
    assert_false(rendezvous_patience_is_late(&patience, 1, at(59)));
    assert_true(rendezvous_patience_is_late(&patience, 1, at(60)));
    rendezvous_patience_prolong(&patience, at(60), minute);
    assert_false(rendezvous_patience_is_late(&patience, 1, at(119)));
    rendezvous_patience_end(&patience);
    assert_false(rendezvous_patience_is_late(&patience, 1, at(1000)));
}

static void who_is_late_has_five_seconds_to_go_and_knows_how_many_there_were(void **state) {
    (void)state;
    struct rendezvous_patience patience = {0};
    rendezvous_patience_begin(&patience, at(0), minute);
    assert_true(rendezvous_patience_is_late(&patience, 3, at(61)));
    assert_true(rendezvous_patience_is_late(&patience, 2, at(62)));
    assert_int_equal(patience.size_when_late, 3);
    assert_false(rendezvous_patience_is_too_late(&patience, at(65)));
    assert_true(rendezvous_patience_is_too_late(&patience, at(66)));
}

static bool is_over(
    struct rendezvous_patience *patience, const struct rendezvous_state *seen, int64_t second) {
    return rendezvous_patience_is_last_call_over(patience, seen, at(second), minute);
}

static void a_last_call_lasts_from_when_it_was_seen(void **state) {
    (void)state;
    struct rendezvous_patience patience = {0};
    struct rendezvous_state seen = {.has_deadline = true, .deadline = wall_seconds(1)};
    assert_false(is_over(&patience, &seen, 100));
    assert_false(is_over(&patience, &seen, 159));
    assert_true(is_over(&patience, &seen, 160));
    seen.deadline = wall_seconds(2); /* another last call */
    assert_false(is_over(&patience, &seen, 161));
    assert_true(is_over(&patience, &seen, 221));
    seen.round = 1;
    assert_false(is_over(&patience, &seen, 222));
}

static void where_there_is_no_last_call_none_is_over(void **state) {
    (void)state;
    struct rendezvous_patience patience = {0};
    struct rendezvous_state seen = {.has_deadline = true};
    assert_false(is_over(&patience, &seen, 0));
    seen.has_deadline = false;
    assert_false(is_over(&patience, &seen, 100));
    seen.has_deadline = true;
    assert_false(is_over(&patience, &seen, 100));
    seen.is_complete = true;
    assert_false(is_over(&patience, &seen, 1000));
}

static void an_end_takes_no_longer_than_it_may(void **state) {
    (void)state;
    struct rendezvous_patience patience = {0};
    assert_false(rendezvous_patience_has_ended(&patience, at(1000)));
    rendezvous_patience_begin_end(&patience, at(0), minute);
    assert_false(rendezvous_patience_has_ended(&patience, at(59)));
    assert_true(rendezvous_patience_has_ended(&patience, at(60)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wait_that_has_begun_does_not_begin_again),
    cmocka_unit_test(who_is_late_has_five_seconds_to_go_and_knows_how_many_there_were),
    cmocka_unit_test(a_last_call_lasts_from_when_it_was_seen),
    cmocka_unit_test(where_there_is_no_last_call_none_is_over),
    cmocka_unit_test(an_end_takes_no_longer_than_it_may),
};

UNIT_TESTS(tests)
