/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/node/node_succession.h"

static void a_lost_host_is_sought_and_one_that_was_given_up_is_not(void **state) {
    (void)state;
    struct rendezvous_event event = {0};
    assert_true(node_succession_event(
        NULL, &(struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_LOST}, &event));
    assert_int_equal(event.kind, RENDEZVOUS_EVENT_CONNECTION_LOST);
    assert_true(event.lost.is_host_sought);
    assert_true(node_succession_event(NULL,
        &(struct succession_effect){.kind = SUCCESSION_EFFECT_GAVE_UP, .reason = "no quorum"},
        &event));
    assert_int_equal(event.kind, RENDEZVOUS_EVENT_CONNECTION_LOST);
    assert_false(event.lost.is_host_sought);
    assert_string_equal(event.lost.reason, "no quorum");
}

static void what_is_to_be_done_is_the_performers(void **state) {
    (void)state;
    struct rendezvous_event event = {0};
    for (int kind = 0; kind < SUCCESSION_EFFECT_TELL_CONNECTED; kind++) {
        struct succession_effect effect = {.kind = (enum succession_effect_kind)kind};
        assert_false(node_succession_event(NULL, &effect, &event));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_lost_host_is_sought_and_one_that_was_given_up_is_not),
    cmocka_unit_test(what_is_to_be_done_is_the_performers),
};

UNIT_TESTS(tests)
