/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/node/node_machine.h"
#include "core/rendezvous/rendezvous_step.h"

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

static void who_stays_is_in_the_record_that_is_known(void **state) {
    (void)state;
    struct succession_effects effects;
    struct succession_settings settings = {0};
    struct rendezvous_machine_settings node = {0};
    rendezvous_settings_init(&node.rendezvous);
    node_identity_init(&settings.identity, "a", 1, node_identity_muster_local_id(0));
    node.identity = settings.identity;
    struct succession_machine *succession = succession_machine_new(&settings);
    struct rendezvous_machine *rendezvous = rendezvous_machine_new(&node);
    node_succession_step(succession, rendezvous,
        &(struct succession_event){.kind = SUCCESSION_EVENT_LEAVE}, &effects);
    assert_int_equal(effects.count, 1); /* it does not host */
    assert_int_equal(effects.items[0].kind, SUCCESSION_EFFECT_DISMISS);
    rendezvous_machine_free(rendezvous);
    succession_machine_free(succession);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_lost_host_is_sought_and_one_that_was_given_up_is_not),
    cmocka_unit_test(what_is_to_be_done_is_the_performers),
    cmocka_unit_test(who_stays_is_in_the_record_that_is_known),
};

UNIT_TESTS(tests)
