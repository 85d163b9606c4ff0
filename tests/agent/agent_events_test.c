/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <unistd.h>

#include "events_fixture.h"

FIXTURE_TEST_AFTER(what_follows_at_once_is_done_before_the_event_is, set_up(&fixture, "exit 0")) {
    start(fixture);
    assert_int_equal(phase_of(fixture), AGENT_STARTING); /* joined, without a turn of the loop */
    assert_null(node_machine_next(fixture->agent.node));
    event_loop_run(fixture->agent.loop);
    assert_int_equal(phase_of(fixture), AGENT_DONE);
    assert_int_equal(fixture->agent.outcome.kind, AGENT_OUTCOME_SUCCEEDED);
}

/* Their files are being made, which may never end. */
FIXTURE_TEST_AFTER(
    signal_ends_a_start_that_waits_for_its_files, set_up(&fixture, "touch $DIR/started")) {
    start(fixture);
    agent_signal_received(&fixture->agent, SIGTERM);
    assert_int_equal(phase_of(fixture), AGENT_DONE);
    assert_int_equal(fixture->agent.outcome.kind, AGENT_OUTCOME_SIGNALLED);
    event_loop_run(fixture->agent.loop);
    assert_false(agent_fixture_has_file(&fixture->job, "started"));
}

static void post_agent(struct fixture *fixture, struct agent_event event) {
    agent_post(&fixture->agent, &(struct node_event){.part = NODE_AGENT, .agent = event});
}

/* The queue. */

#define FROM_INSIDE 20

/* Each with a text that is gone when the next one is written. */
static void post_many(struct fixture *fixture) {
    char text[32];
    for (int i = 0; i < FROM_INSIDE; i++) {
        snprintf(text, sizeof text, "number %d", i);
        post_agent(fixture, (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
                                .start_failed = {.local_rank = 1, .message = text}});
    }
    memset(text, '?', sizeof text - 1);
    text_append(&fixture->transcript, "that was the interlude\n");
}

/* Where in the transcript the line is that says this. */
static size_t position_of(const struct fixture *fixture, const char *words) {
    const char *all = text_string(&fixture->transcript);
    const char *found = strstr(all, words);
    assert_non_null(found);
    return (size_t)(found - all);
}

FIXTURE_TEST_AFTER(
    all_that_is_posted_from_inside_a_step_is_taken_in_order, set_up(&fixture, "exit 0")) {
    fixture->cue = "joining -> join ticket=1 attempt=0";
    fixture->interlude = post_many;
    start(fixture);
    size_t before = position_of(fixture, "that was the interlude");
    for (int i = 0; i < FROM_INSIDE; i++) {
        char line[64];
        snprintf(line, sizeof line, "<- start_failed rank=1 number %d\n", i);
        size_t position = position_of(fixture, line);
        assert_true(position > before);
        before = position;
    }
}

static void signal_agent(struct fixture *fixture) {
    agent_signal_received(&fixture->agent, SIGTERM);
}

/* A signal that comes while two effects of a step are carried out waits for the second. */
FIXTURE_TEST_AFTER(what_comes_between_two_effects_waits_for_the_second,
    set_up(&fixture, "test $RANK = 1 || exec sleep 1000; exit 3")) {
    fixture->cue = "stopping -> signal_workers 15";
    fixture->interlude = signal_agent;
    start(fixture);
    event_loop_run(fixture->agent.loop);
    assert_true(position_of(fixture, "stopping -> arm_timer") <
                position_of(fixture, "stopping <- signal_received 15"));
}

/* Hosting the store is told when the rendezvous is opened. */
FIXTURE_TEST_AFTER(what_comes_before_the_start_waits_for_it, set_up(&fixture, "exec sleep 1000")) {
    open_agent(fixture);
    const struct node_event *event = node_machine_next(fixture->agent.node);
    assert_non_null(event);
    assert_int_equal(event->membership.kind, MEMBERSHIP_EVENT_HOSTING);
    assert_string_equal(text_string(&fixture->transcript), "");
    agent_start(&fixture->agent);
    assert_true(
        position_of(fixture, "membership <- hosting") < position_of(fixture, "idle <- start"));
    assert_int_equal(phase_of(fixture), AGENT_STARTING);
}

FIXTURE_TEST_AFTER(what_comes_after_the_end_is_not_heard, set_up(&fixture, "exit 0")) {
    start(fixture);
    event_loop_run(fixture->agent.loop);
    fixture->agent.is_queueing = true; /* as agent_run has it then */
    text_clear(&fixture->transcript);
    post_agent(fixture, (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER});
    assert_string_equal(text_string(&fixture->transcript), "");
}

/* What is done with effects. */

/* The answer is posted with its account, before anything that follows. */
FIXTURE_TEST_AFTER(who_is_to_blame_is_told_with_the_failure,
    set_up(&fixture, "test $RANK = 1 || exec sleep 1000; exit 3")) {
    struct launch_config *config = &fixture->job.config;
    config->rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    config->local_address = memory_duplicate_string("127.0.0.1");
    config->dynamic.host = memory_duplicate_string("127.0.0.1");
    config->dynamic.is_host = LAUNCH_IS_HOST_YES;
    config->dynamic.read_timeout = duration_from_seconds(60);
    rendezvous_settings_init(&config->dynamic.settings);
    start(fixture);
    event_loop_run(fixture->agent.loop);
    char *line = text_format("membership <- doubt_asked rank 1 (local_rank 1) on %s failed: exit "
                             "code 3\n",
        fixture->agent.preparation.node_name);
    assert_true(has_logged(fixture, line));
    assert_int_equal(fixture->agent.outcome.kind, AGENT_OUTCOME_FAILED);
    free(line);
}

static void never(void *context) {
    (void)context;
    fail_msg("the loop was not stopped");
}

/* It is done, and stays for other nodes: an impatient user must not wait for them. */
FIXTURE_TEST_AFTER(a_signal_after_the_end_ends_the_waiting, set_up(&fixture, "exit 0")) {
    start(fixture);
    event_loop_run(fixture->agent.loop);
    struct event_timer *timer = event_timer_new(fixture->agent.loop, never, NULL);
    event_timer_set(
        timer, instant_after(event_loop_now(fixture->agent.loop), duration_from_seconds(30)));
    agent_signal_received(&fixture->agent, SIGINT);
    event_loop_run(fixture->agent.loop);
    assert_true(has_logged(fixture, "Received SIGINT, not waiting for other nodes any longer"));
    assert_int_equal(fixture->agent.outcome.kind, AGENT_OUTCOME_SUCCEEDED);
    event_timer_free(timer);
}
