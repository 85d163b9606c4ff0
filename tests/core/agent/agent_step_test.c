/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/agent/agent_machine.h"
#include "core/agent/agent_transcript.h"

struct fixture {
    struct agent_machine machine;
    struct agent_event event;
    struct agent_effects effects;
    struct agent_step step;
};

static void fixture_init(struct fixture *fixture, bool has_peers) {
    struct agent_settings settings = {
        .worker_count = 2, .shutdown_timeout = duration_from_seconds(30), .has_peers = has_peers};
    *fixture = (struct fixture){.event.now = {.nanoseconds = 5000000000}};
    agent_machine_init(&fixture->machine, &settings);
    fixture->step = (struct agent_step){&fixture->machine, &fixture->event, &fixture->effects};
}

/* Compares the effects since the last call. */
static void expect(struct fixture *fixture, const char *expected) {
    struct text transcript = {0};
    for (size_t i = 0; i < fixture->effects.count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        agent_effect_describe(&fixture->effects.items[i], &transcript);
    }
    assert_string_equal(text_string(&transcript), expected);
    text_clear(&transcript);
    fixture->effects.count = 0;
}

static void a_stop_gives_the_workers_the_shutdown_timeout_from_its_first_signal(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, false);
    agent_step_begin_stop(&fixture.step, AGENT_STOP_SIGNAL, 15);
    expect(&fixture, "signal_workers 15; arm_timer at=35.000");
    assert_int_equal(fixture.machine.phase, AGENT_STOPPING);
    agent_step_signal_workers(&fixture.step, 2);
    expect(&fixture, "signal_workers 2");
    agent_machine_clear(&fixture.machine);
}

static void a_signal_waits_while_somebody_is_looked_at_and_a_kill_does_not(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, false);
    fixture.machine.hold.look_count = 1;
    agent_step_begin_stop(&fixture.step, AGENT_STOP_SIGNAL, 15);
    expect(&fixture, "");
    assert_int_equal(fixture.machine.hold.signal, 15);
    agent_step_kill_workers(&fixture.step);
    expect(&fixture, "kill_workers; arm_timer at=35.000");
    assert_int_equal(fixture.machine.hold.signal, 0);
    assert_int_equal(fixture.machine.hold.look_count, 1);
    agent_machine_clear(&fixture.machine);
}

static void who_is_alone_or_unknown_to_the_others_announces_nothing(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, false);
    fixture.machine.ticket = 1;
    agent_step_announce(&fixture.step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    expect(&fixture, "");
    agent_machine_clear(&fixture.machine);
    fixture_init(&fixture, true);
    agent_step_announce(&fixture.step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    expect(&fixture, "");
    fixture.machine.ticket = 1;
    agent_step_announce(&fixture.step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    expect(&fixture, "announce_leave");
    agent_machine_clear(&fixture.machine);
}

static void an_end_stops_the_clock_and_tells_of_what_was_left(void **state) {
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, false);
    fixture.machine.has_abandoned_processes = true;
    fixture.machine.received_signal = 15;
    agent_step_arm_timer(&fixture.step, (struct instant){.nanoseconds = 9000000000});
    expect(&fixture, "arm_timer at=9.000");
    agent_step_finish(&fixture.step, AGENT_OUTCOME_SIGNALLED);
    assert_int_equal(fixture.effects.count, 2);
    assert_int_equal(fixture.effects.items[0].kind, AGENT_EFFECT_DISARM_TIMER);
    assert_int_equal(fixture.effects.items[1].outcome.signal, 15);
    assert_true(fixture.effects.items[1].outcome.has_abandoned_processes);
    assert_int_equal(fixture.machine.phase, AGENT_DONE);
    agent_machine_clear(&fixture.machine);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stop_gives_the_workers_the_shutdown_timeout_from_its_first_signal),
    cmocka_unit_test(a_signal_waits_while_somebody_is_looked_at_and_a_kill_does_not),
    cmocka_unit_test(who_is_alone_or_unknown_to_the_others_announces_nothing),
    cmocka_unit_test(an_end_stops_the_clock_and_tells_of_what_was_left),
};

UNIT_TESTS(tests)
