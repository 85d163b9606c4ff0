/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MUSTER_TESTS_AGENT_EVENTS_FIXTURE_H
#define MUSTER_TESTS_AGENT_EVENTS_FIXTURE_H

#include "agent/agent_events.h"
#include "agent_fixture.h"

/* An agent with real workers, and nothing that watches them. What it logs at debug level is its
 * transcript; a test may put events on its queue when it sees a certain line, from inside a step
 * then. */
struct fixture {
    struct agent_fixture job;
    struct agent agent;
    struct log log;
    struct text transcript;
    const char *cue; /* a line; NULL: none */
    void (*interlude)(struct fixture *fixture);
};

static inline void keep_line(
    void *context, enum log_level level, const char *origin, const char *message) {
    struct fixture *fixture = context;
    (void)level;
    (void)origin;
    text_append_format(&fixture->transcript, "%s\n", message);
    if (fixture->cue != NULL && strcmp(message, fixture->cue) == 0) {
        fixture->cue = NULL;
        fixture->interlude(fixture);
    }
}

static inline void make_rendezvous(struct agent *agent) {
    assert_int_equal(agent_node_settings_make(agent->config, &agent->preparation,
                         agent->environment, &agent->node_settings, NULL),
        FAILURE_NONE);
    agent->node = node_machine_new(&agent->node_settings.node);
    struct agent_rendezvous_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .node = &agent->node_settings.node,
        .machine = agent->node,
        .mailbox = {agent_post, agent},
    };
    assert_int_equal(
        agent_rendezvous_new(agent->loop, &settings, &agent->rendezvous, NULL), FAILURE_NONE);
}

/* Two workers; nothing has happened yet. */
static inline void set_up(struct fixture *fixture, const char *command) {
    *fixture = (struct fixture){.log = {LOG_LEVEL_DEBUG, keep_line, fixture}};
    agent_fixture_init(&fixture->job, 2, command);
    struct agent *agent = &fixture->agent;
    agent->config = &fixture->job.config;
    agent->voice.config = agent->config;
    agent->voice.log = &fixture->log;
    agent->environment = &fixture->job.environment;
    agent->log = &fixture->log;
    agent->is_queueing = true;
}

static inline void open_agent(struct fixture *fixture) {
    struct agent *agent = &fixture->agent;
    assert_int_equal(event_loop_new(&agent->loop, NULL), FAILURE_NONE);
    agent->deadline = event_timer_new(agent->loop, agent_deadline_passed, agent);
    agent->calm = event_timer_new(agent->loop, agent_watch_signals, agent);
    assert_int_equal(
        agent_prepare(agent->config, agent->environment, NULL, &agent->preparation, NULL),
        FAILURE_NONE);
    make_rendezvous(agent);
    struct agent_workers_settings workers = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .descriptor_limit = -1,
        .observer = agent_workers_events(agent),
    };
    assert_int_equal(agent_workers_new(agent->loop, &workers, &agent->workers, NULL), FAILURE_NONE);
    agent->voice = (struct agent_voice){.config = agent->config, .log = agent->log};
    agent->story = (struct agent_story){
        .voice = &agent->voice,
        .config = agent->config,
        .preparation = &agent->preparation,
        .machine = node_machine_agent(agent->node),
        .placement = &node_machine_knowledge(agent->node)->placement,
        .workers = agent->workers,
        .log = agent->log,
    };
}

static inline void start(struct fixture *fixture) {
    open_agent(fixture);
    agent_start(&fixture->agent);
}

/* Until the log files of the workers have been made, and they run, or cannot. */
static inline void start_workers(struct fixture *fixture) {
    start(fixture);
    while (node_machine_agent(fixture->agent.node)->phase == AGENT_STARTING) {
        event_loop_run_ready(fixture->agent.loop);
    }
}

static inline void tear_down(struct fixture *fixture) {
    struct agent *agent = &fixture->agent;
    agent->is_queueing = true;
    agent_voice_clear(&agent->voice);
    agent_workers_free(agent->workers);
    agent_rendezvous_free(agent->rendezvous);
    event_timer_free(agent->deadline);
    event_timer_free(agent->calm);
    assert_true(event_loop_free(agent->loop));
    node_machine_free(agent->node);
    agent_node_settings_clear(&agent->node_settings);
    agent_preparation_clear(&agent->preparation);
    text_clear(&fixture->transcript);
    agent_fixture_clear(&fixture->job);
}

static inline enum agent_phase phase_of(const struct fixture *fixture) {
    return node_machine_agent(fixture->agent.node)->phase;
}

static inline bool has_logged(const struct fixture *fixture, const char *words) {
    return strstr(text_string(&fixture->transcript), words) != NULL;
}

#endif
