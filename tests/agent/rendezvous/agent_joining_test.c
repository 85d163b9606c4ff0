/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_node_settings.h"
#include "base/memory.h"
#include "core/launch/launch_config.h"
#include "host/remembered_log.h"

struct fixture {
    struct event_loop *loop;
    struct remembered_log log;
    struct rendezvous_settings rendezvous;
    struct text_list expected;
    struct rendezvous_state state;
    struct agent_joining *joining;
    const char *obstacle;
    const char *answer; /* to what is asked before something is said; NULL: nothing can be asked */
    int asked;
    const char *unready; /* a node in the round; NULL: this one is in none */
    int waited;
    int ended;
};

static const struct rendezvous_state *state_of(void *context) {
    struct fixture *fixture = context;
    event_loop_stop(fixture->loop); /* it is asked for when something is said */
    return &fixture->state;
}

static void write_obstacle(void *context, struct text *out) {
    struct fixture *fixture = context;
    if (fixture->obstacle != NULL) {
        event_loop_stop(fixture->loop);
        text_append(out, fixture->obstacle);
    }
}

static bool is_in_round(void *context, struct text_list *out_unready) {
    const struct fixture *fixture = context;
    if (fixture->unready != NULL) {
        text_list_add(out_unready, fixture->unready);
    }
    return fixture->unready != NULL;
}

/* The answer is there when it is said. */
static bool ask_before(void *context) {
    struct fixture *fixture = context;
    fixture->asked++;
    fixture->unready = fixture->answer;
    return fixture->answer != NULL;
}

static void has_waited(void *context) {
    ((struct fixture *)context)->waited++;
}

static void has_ended(void *context) {
    ((struct fixture *)context)->ended++;
}

static struct duration soon(int count) {
    return duration_from_milliseconds(count + 1);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    struct failure failure = {0};
    assert_int_equal(event_loop_new(&fixture->loop, &failure), FAILURE_NONE);
    remembered_log_init(&fixture->log);
    rendezvous_settings_init(&fixture->rendezvous);
    fixture->rendezvous.minimum_nodes = fixture->rendezvous.maximum_nodes = 2;
    text_list_add(&fixture->expected, "node1");
    struct agent_joining_settings settings = {
        .rendezvous = &fixture->rendezvous,
        .expected = &fixture->expected,
        .log = &fixture->log.log,
        .state = state_of,
        .in_round = is_in_round,
        .context = fixture,
        .obstacle = write_obstacle,
        .ask_before = ask_before,
        .waited = has_waited,
        .ended = has_ended,
        .moment = soon,
    };
    fixture->joining = agent_joining_new(fixture->loop, &settings);
}

static void tear_down(struct fixture *fixture) {
    agent_joining_free(fixture->joining);
    text_list_clear(&fixture->expected);
    text_clear(&fixture->log.text);
    assert_true(event_loop_free(fixture->loop));
}

FIXTURE_TEST(what_is_waited_for_is_said) {
    agent_joining_follow(fixture->joining, AGENT_IDLE, AGENT_JOINING);
    event_loop_run(fixture->loop);
    assert_non_null(strstr(text_string(&fixture->log.text),
        "waiting for other nodes for 0 s: none is known yet, and 2 are needed; missing: node1"));
    assert_true(fixture->waited >= 1);
    assert_int_equal(fixture->ended, 0);
}

FIXTURE_TEST(a_store_that_is_not_reached_is_said) {
    fixture->obstacle = "no store at node1 port 29400, and why";
    agent_joining_follow(fixture->joining, AGENT_IDLE, AGENT_JOINING);
    event_loop_run(fixture->loop);
    assert_non_null(strstr(text_string(&fixture->log.text),
        "waiting for the job's store for 0 s: no store at node1 port 29400, and why "
        "(join_timeout: 600 s)"));
}

FIXTURE_TEST(in_a_round_it_is_said_who_is_not_ready) {
    fixture->answer = "node2";
    agent_joining_follow(fixture->joining, AGENT_IDLE, AGENT_JOINING);
    event_loop_run(fixture->loop);
    assert_true(fixture->asked >= 1); /* the next moment may have passed meanwhile */
    assert_null(strstr(text_string(&fixture->log.text), "none is known"));
    assert_non_null(strstr(text_string(&fixture->log.text), "have ended; not ready: node2"));
}

static void expect_nodes(const char *step, const char *host, int nodes, size_t count) {
    char *copy = memory_duplicate_string(host);
    struct launch_config config = {.maximum_nodes = nodes, .dynamic.host = copy};
    struct text_list environment = {0};
    struct text_list expected = {0};
    text_list_set_variable(&environment, "SLURM_STEP_NODELIST", step);
    agent_joining_expect(&config, &environment, &expected);
    assert_int_equal(expected.count, count);
    text_list_clear(&environment);
    text_list_clear(&expected);
    free(copy);
}

TEST(the_nodes_of_a_step_are_expected_if_they_are_those_of_the_job) {
    expect_nodes("n[1-3]", "n1", 3, 3);
    expect_nodes("n[1-3]", "n2", 3, 0);
    expect_nodes("n[1-3]", "n1", 4, 0);
    expect_nodes("n[1-", "n1", 3, 0);
    expect_nodes("n[1-3]", NULL, 3, 0);
}

TEST(who_has_joined_says_nothing) {
    struct fixture fixture;
    set_up(&fixture);
    agent_joining_follow(fixture.joining, AGENT_IDLE, AGENT_JOINING);
    agent_joining_follow(fixture.joining, AGENT_JOINING, AGENT_STARTING);
    event_loop_run(fixture.loop); /* nothing is left to wait for */
    assert_int_equal(fixture.log.text.length, 0);
    assert_int_equal(fixture.waited, 0);
    assert_int_equal(fixture.ended, 1);
    tear_down(&fixture);
    agent_joining_follow(NULL, AGENT_IDLE, AGENT_JOINING);
    agent_joining_free(NULL);
}
