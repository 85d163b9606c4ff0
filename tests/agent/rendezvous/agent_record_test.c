/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_client.h"
#include "record_fixture.h"
#include "record_tools.h"

/* What the backend reports. */

FIXTURE_TEST(a_record_is_told_as_a_copy) {
    struct rendezvous_state written = {.round = 4};
    struct node_identity identity = identity_of(fixture->nodes[1]);
    rendezvous_state_obtain(&written, &identity)->is_participant = true;
    fetch(fixture, 0);
    agent_record_perform(fixture->records[0],
        &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {&written, false}});
    rendezvous_state_clear(&written);
    site_await(fixture->nodes[0], "written won");
    perform(fixture->records[0], RENDEZVOUS_EFFECT_FETCH);
    const struct node_event *event = site_await(fixture->nodes[0], "record round 4");
    assert_true(record_has_participant(event->rendezvous.state, &identity));
}

FIXTURE_TEST(a_record_without_sense_is_told_as_broken) {
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string("/torch.rendezvous.job"),
            .value = slice_from_string("no record")},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_ask(agent_record_backend(fixture->records[1]), &call));
    perform(fixture->records[1], RENDEZVOUS_EFFECT_FETCH);
    site_await(fixture->nodes[1], "broken");
}

FIXTURE_TEST(the_timer_is_told_and_can_be_set_again) {
    struct rendezvous_effect arm = {
        .kind = RENDEZVOUS_EFFECT_ARM_TIMER, .deadline = site_soon(&fixture->site)};
    agent_record_perform(fixture->records[0], &arm);
    arm.deadline = event_loop_now(fixture->site.loop);
    agent_record_perform(fixture->records[0], &arm);
    site_await(fixture->nodes[0], "timer_fired");
    agent_record_perform(fixture->records[0], &arm);
    site_await(fixture->nodes[0], "timer_fired");
    assert_int_equal(site_count(fixture->nodes[0], "timer_fired"), 2);
}

/* The roll. */

static void answer_roll(struct fixture *fixture, int64_t round) {
    for (int rank = 0; rank < 2; rank++) {
        agent_record_perform(fixture->records[rank],
            &(struct rendezvous_effect){
                .kind = RENDEZVOUS_EFFECT_ANSWER_ROLL, .roll = {round, rank}});
    }
}

FIXTURE_TEST(a_roll_is_told_when_all_have_answered) {
    call_roll(fixture, 0, 3);
    answer_roll(fixture, 3);
    site_await(fixture->nodes[0], "roll_answered");
}

FIXTURE_TEST(a_roll_that_is_called_off_is_not_told) {
    call_roll(fixture, 0, 3);
    agent_record_cancel_roll(fixture->records[0]);
    answer_roll(fixture, 3);
    fetch(fixture, 0);
    fetch(fixture, 1); /* asked and answered in order: the roll is complete */
    site_hear(&fixture->site);
    assert_int_equal(site_count(fixture->nodes[0], "roll_answered"), 0);
    call_roll(fixture, 0, 4);
    answer_roll(fixture, 4);
    site_await(fixture->nodes[0], "roll_answered");
}

static void a_wait_of_the_rounds_is_told(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(fixture->site.loop);
}

/* A round waits on the same connection. */
FIXTURE_TEST(without_a_roll_nothing_is_called_off) {
    struct slice key = slice_from_string("/awaited");
    struct store_client_call wait = {
        .request = {.operation = STORE_WAIT, .keys = &key, .count = 1},
        .is_raw = true,
        .timeout = DURATION_FOREVER,
        .done = a_wait_of_the_rounds_is_told,
        .context = fixture,
    };
    struct store_client_call set = {
        .request = {.operation = STORE_SET, .key = key, .value = slice_from_string("x")},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_wait(agent_record_backend(fixture->records[0]), &wait));
    agent_record_cancel_roll(fixture->records[0]);
    assert_true(rendezvous_backend_ask(agent_record_backend(fixture->records[1]), &set));
    event_loop_run(fixture->site.loop);
}

/* What the host of the store learns of others. */

FIXTURE_TEST(the_host_is_told_whether_a_node_that_is_gone_was_done) {
    struct node_identity identity = identity_of(fixture->nodes[1]);
    present(fixture->records[1], &identity, false);
    present(fixture->records[1], &identity, true);
    fetch(fixture, 1);
    agent_record_disconnect(fixture->records[1]);
    assert_true(site_await(fixture->nodes[0], "node_gone")->rendezvous.gone.has_finished);
}

/* What was told before is known once the host has heard that this node is gone. */
static void leave_a_mark(struct fixture *fixture, int index) {
    struct node_identity identity = identity_of(fixture->nodes[index]);
    present(fixture->records[index], &identity, false);
    fetch(fixture, index);
    agent_record_disconnect(fixture->records[index]);
    site_await(fixture->nodes[0], "node_gone");
}

/* As one of torchrun's, which ties nothing to its connection. */
FIXTURE_TEST(the_host_is_told_that_a_stranger_has_written) {
    struct node_identity identity = identity_of(fixture->nodes[0]);
    add_node(fixture, 2);
    leave_a_mark(fixture, 2);
    site_forget_told(fixture->nodes[0]);
    present(fixture->records[0], &identity, false);
    fetch(fixture, 0);
    write_round(fixture, 0, 1);
    fetch(fixture, 1);
    write_round(fixture, 1, 2);
    leave_a_mark(fixture, 1);
    assert_int_equal(site_count(fixture->nodes[0], "stranger_wrote"), 1);
}
