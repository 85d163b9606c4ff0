/* SPDX-License-Identifier: BSD-3-Clause */
/* Real workers, a real FIFO: each test's workers are shells that write their own requests. */
#include "unit.h"

#include <signal.h>

#include "agent/watchdog/agent_watchdog.h"
#include "agent_fixture.h"
#include "host/remembered_log.h"
#include "workers_fixture.h"

struct fixture {
    struct workers_fixture workers;
    struct remembered_log log;
    struct agent_watchdog *watchdog;
    struct agent_evidence *evidence; /* NULL unless the test wants it */
    char looks[16];                  /* "b" for each that began, "o" for each that was over */
    int ends_of_agent;
};

static void look_begun(void *context) {
    struct fixture *fixture = context;
    strcat(fixture->looks, "b");
}

static void look_over(void *context) {
    struct fixture *fixture = context;
    strcat(fixture->looks, "o");
}

static void end_agent(void *context) {
    struct fixture *fixture = context;
    fixture->ends_of_agent++;
}

/* A request of the shell itself for a timer that has expired already. Arguments are templates, in
 * which $$ is one dollar. */
#define EXPIRED(signal)                                                                            \
    "echo '{\"pid\": '$$$$', \"scope_id\": \"step\", \"expiration_time\": 1, \"signal\": " #signal \
    "}' >$TORCHELASTIC_TIMER_FILE; "

static void set_up_with(struct fixture *fixture, int worker_count, const char *command,
    enum launch_evidence evidence, enum launch_timer_expiry on_timer_expiry) {
    *fixture = (struct fixture){0};
    workers_fixture_init(&fixture->workers, worker_count, command);
    remembered_log_init(&fixture->log);
    struct agent_fixture *agent = &fixture->workers.agent;
    agent->config.serves_timers = true;
    agent->config.timer_file = text_format("%s/timers", agent->directory);
    agent->config.evidence = evidence;
    agent->config.on_timer_expiry = on_timer_expiry;
    agent->config.evidence_timeout = duration_from_seconds(60);
    struct agent_evidence_settings evidence_settings = {
        &agent->config, fixture->workers.workers, &fixture->log.log, NULL};
    fixture->evidence = agent_evidence_new(fixture->workers.loop, &evidence_settings);
    struct agent_watchdog_settings settings = {
        .config = &agent->config,
        .environment = &agent->environment,
        .log = &fixture->log.log,
        .workers = fixture->workers.workers,
        .end_agent = end_agent,
        .look_begun = look_begun,
        .look_over = look_over,
        .context = fixture,
        .evidence = fixture->evidence,
    };
    struct failure failure;
    if (agent_watchdog_new(fixture->workers.loop, &settings, &fixture->watchdog, &failure) !=
        FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
}

static void set_up(struct fixture *fixture, int worker_count, const char *command) {
    set_up_with(
        fixture, worker_count, command, LAUNCH_EVIDENCE_OFF, LAUNCH_TIMER_EXPIRY_RESTART_WORKER);
}

static void tear_down(struct fixture *fixture) {
    agent_evidence_free(fixture->evidence);
    agent_watchdog_free(fixture->watchdog);
    assert_false(agent_fixture_has_file(&fixture->workers.agent, "timers"));
    workers_fixture_clear(&fixture->workers);
    text_clear(&fixture->log.text);
}

static void run(struct fixture *fixture) {
    agent_watchdog_begin(fixture->watchdog);
    workers_fixture_run(&fixture->workers);
}

TEST(a_child_of_a_worker_may_hold_a_timer) {
    struct fixture fixture;
    set_up(&fixture, 1,
        "sh -c '"
        "echo \"{\\\"pid\\\": $$$$, \\\"scope_id\\\": 1, \\\"expiration_time\\\": 1, "
        "\\\"signal\\\": 9}\" >$TORCHELASTIC_TIMER_FILE; while :; do sleep 0.02; done'; exit $?");
    run(&fixture);
    assert_false(fixture.workers.last_exit.is_signal);
    assert_int_equal(fixture.workers.last_exit.value, 128 + SIGKILL);
    assert_null(agent_workers_evidence(fixture.workers.workers, 0));
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(nobody_is_ended_while_the_group_is_stopped,
    set_up(&fixture, 1, EXPIRED(9) " sleep 0.1; exit 4")) {
    agent_watchdog_begin(fixture->watchdog);
    agent_watchdog_end(fixture->watchdog);
    workers_fixture_run(&fixture->workers);
    assert_int_equal(fixture->workers.last_exit.value, 4);
}

TEST(a_fifo_in_use_is_left_to_its_owner) {
    struct fixture fixture;
    set_up(&fixture, 1,
        "test -p $TORCHELASTIC_TIMER_FILE && echo $TORCHELASTIC_TIMER_FILE | "
        "grep -q /watchdog_timer_");
    struct agent_watchdog_settings settings = {
        .config = &fixture.workers.agent.config,
        .environment = &fixture.workers.agent.environment,
        .log = &fixture.log.log,
        .workers = fixture.workers.workers,
    };
    struct agent_watchdog *second;
    assert_int_equal(
        agent_watchdog_new(fixture.workers.loop, &settings, &second, NULL), FAILURE_NONE);
    assert_true(remembered_log_has(&fixture.log, "another program reads"));
    run(&fixture);
    assert_int_equal(fixture.workers.last_exit.value, 0);
    agent_watchdog_free(second);
    assert_true(agent_fixture_has_file(&fixture.workers.agent, "timers"));
    tear_down(&fixture);
}

/* How often, and where for the last time; NULL: never. */
static const char *last_of(const struct fixture *fixture, const char *part, int *out_count) {
    const char *last = NULL;
    *out_count = 0;
    for (const char *at = text_string(&fixture->log.text); (at = strstr(at, part)) != NULL; at++) {
        last = at;
        (*out_count)++;
    }
    return last;
}

/* The first worker asks for all of them at once; then all hang. */
#define ALL_EXPIRE                                                                                 \
    "echo $$$$ >$DIR/new.$RANK; mv $DIR/new.$RANK $DIR/pid.$RANK; "                                \
    "if [ $RANK = 0 ]; then "                                                                      \
    "while [ `ls $DIR | grep -c pid` != $WORLD_SIZE ]; do sleep 0.01; done; "                      \
    "for pid in `cat $DIR/pid.*`; do "                                                             \
    "echo '{\"pid\": '$pid', \"scope_id\": \"step\", \"expiration_time\": 1, \"signal\": 9}'; "    \
    "done >$DIR/all; dd if=$DIR/all of=$TORCHELASTIC_TIMER_FILE bs=4096 conv=notrunc 2>$DIR/dd; "  \
    "fi; exec sleep 1000"

TEST(all_whose_timers_expire_together_are_looked_at_before_one_is_ended) {
    enum { COUNT = 9 };
    struct fixture fixture;
    int count;
    set_up_with(
        &fixture, COUNT, ALL_EXPIRE, LAUNCH_EVIDENCE_BASIC, LAUNCH_TIMER_EXPIRY_RESTART_WORKER);
    run(&fixture);
    const char *last_look = last_of(&fixture, "evidence: process ", &count);
    assert_int_equal(count, COUNT);
    const char *first_end = strstr(text_string(&fixture.log.text), "watchdog: ending process");
    assert_true(last_look < first_end);
    last_of(&fixture, "watchdog: ending process", &count);
    assert_int_equal(count, COUNT);
    assert_string_equal(fixture.looks, "bo");
    for (int i = 0; i < COUNT; i++) {
        const char *evidence = agent_workers_evidence(fixture.workers.workers, i);
        assert_non_null(strstr(evidence, "killed by the watchdog: timer 'step' expired"));
        assert_non_null(strstr(evidence, "before that it was "));
    }
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(the_agent_is_asked_to_end_once,
    set_up_with(&fixture, 3, ALL_EXPIRE, LAUNCH_EVIDENCE_BASIC, LAUNCH_TIMER_EXPIRY_EXIT_AGENT)) {
    run(fixture);
    assert_int_equal(fixture->ends_of_agent, 1);
}

TEST(what_was_looked_at_in_an_earlier_attempt_is_forgotten) {
    struct fixture fixture;
    set_up_with(&fixture, 1, EXPIRED(9) " exec sleep 1000", LAUNCH_EVIDENCE_BASIC,
        LAUNCH_TIMER_EXPIRY_RESTART_WORKER);
    agent_watchdog_begin(fixture.watchdog);
    workers_fixture_start(&fixture.workers);
    while (fixture.looks[0] == '\0') {
        event_loop_run_ready(fixture.workers.loop);
    }
    agent_watchdog_end(fixture.watchdog);
    agent_evidence_drop(fixture.evidence);
    agent_watchdog_begin(fixture.watchdog);
    agent_workers_signal(fixture.workers.workers, SIGTERM);
    event_loop_run(fixture.workers.loop);
    assert_int_equal(fixture.workers.last_exit.value, SIGTERM);
    assert_string_equal(fixture.looks, "b");
    tear_down(&fixture);
}
