/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "wire/rendezvous/rendezvous_record_store.h"

static void what_is_told_is_the_lists_own(void **state) {
    (void)state;
    struct record_effects effects = {0};
    struct rendezvous_state record = {.round = 3};
    char reason[] = "why";
    record_effects_tell(
        &effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_BROKEN, .reason = reason});
    record_effects_tell(
        &effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                      .lost = {.reason = reason, .is_silent = true}});
    record_effects_tell(
        &effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD, .state = &record});
    record_effects_tell(&effects,
        &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written = {false, &record}});
    reason[0] = 'W';
    record.round = 4;
    assert_string_equal(effects.items[0].told.reason, "why");
    assert_string_equal(effects.items[1].told.lost.reason, "why");
    assert_true(effects.items[1].told.lost.is_silent);
    assert_int_equal(effects.items[2].told.state->round, 3);
    assert_int_equal(effects.items[3].told.written.state->round, 3);
    record_effects_clear(&effects);
    assert_int_equal(effects.count, 0);
}

static void no_record_is_told_as_none(void **state) {
    (void)state;
    struct record_effects effects = {0};
    record_effects_tell(&effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD});
    record_effects_tell(&effects,
        &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written = {.has_won = true}});
    assert_null(effects.items[0].told.state);
    assert_null(effects.items[1].told.written.state);
    assert_true(effects.items[1].told.written.has_won);
    record_effects_clear(&effects);
}

static void a_request_stays_whole_when_others_are_added(void **state) {
    (void)state;
    struct record_effects effects = {0};
    struct record_effect *first = record_effects_add(&effects, RECORD_EFFECT_SEND);
    text_list_add(&first->send.own.keys, "/key");
    text_list_add(&first->send.own.values, "value");
    owned_request_finish(&first->send.own, STORE_SET, 0);
    for (int i = 0; i < 100; i++) {
        (void)record_effects_add(&effects, RECORD_EFFECT_RENEW_WAITER);
    }
    const struct store_request *request = &effects.items[0].send.own.request;
    assert_true(slice_equals(request->key, slice_from_string("/key")));
    assert_true(slice_equals(request->value, slice_from_string("value")));
    record_effects_clear(&effects);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_told_is_the_lists_own),
    cmocka_unit_test(no_record_is_told_as_none),
    cmocka_unit_test(a_request_stays_whole_when_others_are_added),
};

UNIT_TESTS(tests)
