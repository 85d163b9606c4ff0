/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/telling/agent_story.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

struct fixture {
    struct workers_fixture job;
    struct agent_machine machine;
    struct log log;
    struct text said;
    struct agent_voice voice;
    struct agent_story story;
};

static void keep_line(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)level;
    (void)origin;
    text_append_format(context, "%s\n", message);
}

static void set_up(struct fixture *fixture, enum log_level threshold) {
    *fixture = (struct fixture){.log = {threshold, keep_line, &fixture->said}};
    workers_fixture_init(&fixture->job, 2, "exit 0");
    fixture->job.placement.ranks.base_rank = 4;
    fixture->voice =
        (struct agent_voice){.config = &fixture->job.agent.config, .log = &fixture->log};
    fixture->voice.is_place_settled = true; /* as in a job of one node */
    fixture->story = (struct agent_story){
        .config = &fixture->job.agent.config,
        .preparation = &fixture->job.preparation,
        .machine = &fixture->machine,
        .placement = &fixture->job.placement,
        .voice = &fixture->voice,
        .workers = fixture->job.workers,
        .log = &fixture->log,
    };
}

static void tear_down(struct fixture *fixture) {
    agent_voice_clear(&fixture->voice);
    text_clear(&fixture->said);
    workers_fixture_clear(&fixture->job);
}

static void step(struct fixture *fixture, enum agent_phase before, enum agent_phase after,
    enum agent_event_kind kind) {
    fixture->machine.phase = after;
    agent_story_step(&fixture->story, &(struct agent_event){.kind = kind}, before);
}

static void assert_said(const struct fixture *fixture, const char *words) {
    assert_non_null(strstr(text_string(&fixture->said), words));
}

FIXTURE_TEST_AFTER(only_what_a_failure_costs_is_told_to_who_asks_for_nothing,
    set_up(&fixture, LOG_LEVEL_WARNING)) {
    fixture->job.agent.config.max_restarts = fixture->machine.restarts.maximum = 3;
    agent_story_begin(&fixture->story);
    step(fixture, AGENT_JOINING, AGENT_STARTING, AGENT_EVENT_JOINED);
    assert_int_equal(fixture->said.length, 0);
    fixture->machine.stop_reason = AGENT_STOP_RESTART;
    step(fixture, AGENT_RUNNING, AGENT_STOPPING, AGENT_EVENT_WORKER_EXITED);
    assert_string_equal(
        text_string(&fixture->said), "restarting the workers: restart 0 of 3 (--max-restarts)\n");
    fixture->machine.stop_reason = AGENT_STOP_FAILURE;
    step(fixture, AGENT_RUNNING, AGENT_STOPPING, AGENT_EVENT_WORKER_EXITED);
    assert_said(fixture, "no restart is left of 3 (--max-restarts)\n");
}

static const char offer[] = "the new workers import everything anew; with --standby on, processes "
                            "that have done so would take their places";

/* The workers have run since 5 s when one of them fails; their store was asked first then, or never
 * (0). */
static void restart(struct fixture *fixture, int asked_milliseconds) {
    struct tally store = {
        .count = 1, .first = duration_from_milliseconds(asked_milliseconds).nanoseconds};
    fixture->story.worker_store = &store;
    fixture->story.started = (struct instant){0};
    fixture->job.agent.config.max_restarts = 1;
    fixture->job.agent.config.entry = LAUNCH_ENTRY_SCRIPT;
    fixture->machine.phase = AGENT_RUNNING;
    fixture->machine.stop_reason = AGENT_STOP_RESTART;
    fixture->machine.restarts.used = 1;
    struct agent_event event = {.kind = AGENT_EVENT_WORKERS_STARTED,
        .now = instant_after((struct instant){0}, duration_from_seconds(5))};
    agent_story_step(&fixture->story, &event, AGENT_RUNNING);
    text_clear(&fixture->said);
    step(fixture, AGENT_RUNNING, AGENT_STOPPING, AGENT_EVENT_WORKER_EXITED);
}

static void assert_not_said(const struct fixture *fixture, const char *words) {
    assert_null(strstr(text_string(&fixture->said), words));
}

FIXTURE_TEST_AFTER(what_standby_workers_would_save_is_told_as_far_as_it_is_known,
    set_up(&fixture, LOG_LEVEL_INFO)) {
    restart(fixture, 8400);
    assert_said(fixture, offer);
    assert_said(fixture, ", and save most of the 3.4 s from the start of the old ones");
    restart(fixture, 0);
    assert_said(fixture, offer);
    assert_not_said(fixture, "save");
    restart(fixture, 4000); /* by somebody else, before there were workers */
    assert_not_said(fixture, "save");
    restart(fixture, 5050); /* not worth a word */
    assert_not_said(fixture, "save");
    fixture->story.has_standby = true;
    restart(fixture, 8400);
    assert_not_said(fixture, offer);
}
