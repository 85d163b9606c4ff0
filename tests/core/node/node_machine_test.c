/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue, and the life of a node alone. Fixed nodes and nodes that come and go have files of
 * their own. */
#include "unit.h"

#include "node_play.h"

/* The queue. */

TEST_OF(play, what_an_event_points_to_may_be_forgotten_once_it_is_posted,
    play_open(&fixture, MEMBERSHIP_ALONE, 0), play_close) {
    fixture->start_failure = "no such program";
    play_agent_kind(fixture, AGENT_EVENT_START);
    play_expect(fixture, "start_workers attempt=0; signal_workers 15");
    const struct worker_group *workers = node_machine_workers(fixture->node);
    assert_string_equal(workers->failures[0].start_message, "no such program");
}

TEST_OF(play, what_machines_tell_each_other_happens_when_its_cause_did,
    play_open(&fixture, MEMBERSHIP_CHANGING, 0), play_close) {
    fixture->now = instant_after(fixture->now, duration_from_seconds(5));
    play_queue(fixture, (struct node_event){.part = NODE_AGENT, .agent.kind = AGENT_EVENT_START});
    fixture->now = instant_after(fixture->now, duration_from_seconds(100));
    play_run(fixture);
    play_expect(fixture, "connect 605.000"); /* 600 s after the start */
}

/* What only machines say to each other is listed for the transcript, and must be there to be read
 * like everything else. */
TEST(what_an_effect_points_to_is_there_until_the_next_step) {
    struct node_effects effects;
    struct play play;
    play_open(&play, MEMBERSHIP_CHANGING, 0);
    play_write_round(&play, 1, "ma");
    play_agent_kind(&play, AGENT_EVENT_START);
    play.is_performing = true; /* it takes what follows by itself */
    play_connect(&play, false);
    play_step(&play); /* connected: the record is fetched */
    node_machine_step(play.node, &effects);
    const struct membership_effect *begin = NULL;
    for (size_t i = 0; i < effects.count; i++) {
        const struct node_effect *effect = &effects.items[i];
        bool is_begin = effect->part == NODE_MEMBERSHIP &&
                        effect->membership.kind == MEMBERSHIP_EFFECT_TELL_ROUND;
        begin = is_begin ? &effect->membership : begin;
    }
    assert_non_null(begin);
    assert_int_equal(begin->round.kind, ROUND_EVENT_BEGIN);
    assert_string_equal(begin->round.begin.identity->address, "me");
    assert_ptr_equal(
        begin->round.begin.identity, node_machine_next(play.node)->round.begin.identity);
    assert_int_equal(rendezvous_state_participants(begin->round.begin.state), 2);
    play_close(&play);
}

TEST(a_machine_may_be_freed_with_a_full_queue) {
    struct failure_account account = account_of(OTHER);
    char role[] = "default";
    struct role_info info = {role, 1, 0, 1, NULL};
    struct play play;
    play_open(&play, MEMBERSHIP_CHANGING, 0);
    play_write_round(&play, 1, "ma");
    play_queue(&play, (struct node_event){.part = NODE_AGENT, .agent.kind = AGENT_EVENT_START});
    play_step(&play); /* the machine keeps the event that it took last, too */
    play_queue(&play, (struct node_event){.part = NODE_AGENT,
                          .agent = {.kind = AGENT_EVENT_START_FAILED,
                              .start_failed = {.message = "no such program"}}});
    play_queue(&play,
        (struct node_event){.part = NODE_MEMBERSHIP,
            .membership = {.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, .account = &account}});
    play_queue(&play, (struct node_event){.part = NODE_RENDEZVOUS,
                          .rendezvous = {.kind = RENDEZVOUS_EVENT_RECORD, .state = &play.record}});
    play_queue(&play, (struct node_event){.part = NODE_ROUND,
                          .round = {.kind = ROUND_EVENT_ROLE_INFOS, .role_infos = {&info, 1}}});
    play_queue(&play, (struct node_event){.part = NODE_ROUND,
                          .round = {.kind = ROUND_EVENT_VALUES, .values.decision = "done"}});
    play_close(&play); /* the sanitizer looks */
}

TEST(a_machine_that_has_done_nothing_may_be_freed) {
    for (int kind = 0; kind < MEMBERSHIP_KIND_COUNT; kind++) {
        struct play play;
        play_open(&play, (enum membership_kind)kind, 0);
        assert_int_equal(play_phase(&play), AGENT_IDLE);
        bool is_changing = kind == MEMBERSHIP_CHANGING;
        assert_int_equal(node_machine_rendezvous(play.node) != NULL, is_changing);
        play_close(&play);
    }
    node_machine_free(NULL);
}

/* Standby workers. They are told of each attempt. */

static void open_with_standby(struct play *play, int max_restarts) {
    play_open(play, MEMBERSHIP_ALONE, max_restarts);
    play->settings.standby = (struct standby_settings){
        .is_wanted = true, .worker_count = WORKERS, .after = duration_from_seconds(2)};
    node_machine_free(play->node);
    play->node = node_machine_new(&play->settings);
}

static void tell_standby(struct play *play, struct standby_event event) {
    play_post(play, (struct node_event){.part = NODE_STANDBY, .standby = event});
}

static void warm_up(struct play *play) {
    play_agent_kind(play, AGENT_EVENT_START);
    play->now = instant_after(play->now, duration_from_seconds(2));
    tell_standby(play, (struct standby_event){.kind = STANDBY_EVENT_TIMER_FIRED});
    tell_standby(play, (struct standby_event){.kind = STANDBY_EVENT_HELLO, .local_rank = 1});
    tell_standby(play, (struct standby_event){.kind = STANDBY_EVENT_RECORDS,
                           .records = {duration_from_seconds(2), 10, 0}});
    tell_standby(
        play, (struct standby_event){.kind = STANDBY_EVENT_SPARE_READY, .ready = {1, 100, false}});
    play_expect(play, "start_workers attempt=0; look; warm rank=1; tell_ready 1/2 bytes=100");
}

TEST_OF(
    play, standby_workers_are_told_of_each_attempt, open_with_standby(&fixture, 1), play_close) {
    warm_up(fixture);
    assert_int_equal(standby_plan_state(node_machine_standby(fixture->node), 1), STANDBY_READY);
    play_exit(fixture, 0, 1);
    play_expect(fixture, "signal_workers 15");
    play_agent_kind(fixture, AGENT_EVENT_ALL_GONE);
    play_expect(
        fixture, "renew_worker_store; start_workers attempt=1; tell_used 0/2 cold=none,ended");
}

/* The answer to START_WORKERS comes after what became of the standby workers. */
static void give_spare(struct play *play, const struct node_effect *effect) {
    if (effect->part == NODE_AGENT && effect->agent.kind == AGENT_EFFECT_SIGNAL_WORKERS) {
        tell_standby(
            play, (struct standby_event){.kind = STANDBY_EVENT_SPARE_GIVEN, .local_rank = 1});
    }
}

TEST_OF(play, a_standby_worker_that_was_given_is_told_of_when_workers_run,
    open_with_standby(&fixture, 1), play_close) {
    warm_up(fixture);
    fixture->interlude = give_spare;
    play_exit(fixture, 0, 1);
    play_forget(fixture);
    assert_int_equal(standby_plan_state(node_machine_standby(fixture->node), 1), STANDBY_GIVEN);
    play_agent_kind(fixture, AGENT_EVENT_ALL_GONE); /* a new attempt forgets that */
    play_expect(
        fixture, "renew_worker_store; start_workers attempt=1; tell_used 0/2 cold=none,none");
    assert_int_equal(standby_plan_state(node_machine_standby(fixture->node), 1), STANDBY_ABSENT);
}

TEST_OF(play, the_end_of_the_job_ends_standby_workers, open_with_standby(&fixture, 1), play_close) {
    warm_up(fixture);
    play_signal(fixture, 15);
    play_expect(fixture, "signal_workers 15; end_all");
}
