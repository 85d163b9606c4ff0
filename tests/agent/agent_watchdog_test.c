/* SPDX-License-Identifier: BSD-3-Clause */
/* Real workers, a real FIFO: each test's workers are shells that write their own requests. */
#include "unit.h"

#include <signal.h>
#include <sys/stat.h>

#include "agent/agent_watchdog.h"
#include "agent_fixture.h"
#include "host/remembered_log.h"
#include "workers_fixture.h"

struct fixture {
    struct workers_fixture workers;
    struct remembered_log log;
    struct agent_watchdog *watchdog;
};

/* A request of the shell itself for a timer that has expired already. Arguments are templates, in
 * which $$ is one dollar. */
#define EXPIRED(signal)                                                                            \
    "echo '{\"pid\": '$$$$', \"scope_id\": \"step\", \"expiration_time\": 1, \"signal\": " #signal \
    "}' >$TORCHELASTIC_TIMER_FILE; "

static void set_up(struct fixture *fixture, int worker_count, const char *command) {
    workers_fixture_init(&fixture->workers, worker_count, command);
    remembered_log_init(&fixture->log);
    struct agent_fixture *agent = &fixture->workers.agent;
    agent->config.serves_timers = true;
    agent->config.timer_file = text_format("%s/timers", agent->directory);
    struct agent_watchdog_settings settings = {
        .config = &agent->config,
        .environment = &agent->environment,
        .log = &fixture->log.log,
        .workers = fixture->workers.workers,
    };
    struct failure failure;
    if (agent_watchdog_new(fixture->workers.loop, &settings, &fixture->watchdog, &failure) !=
        FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
}

static void tear_down(struct fixture *fixture) {
    agent_watchdog_free(fixture->watchdog);
    assert_false(agent_fixture_has_file(&fixture->workers.agent, "timers"));
    workers_fixture_clear(&fixture->workers);
    text_clear(&fixture->log.text);
}

static void run(struct fixture *fixture) {
    agent_watchdog_begin(fixture->watchdog);
    workers_fixture_run(&fixture->workers);
}

static void expired_timer_kills_only_its_worker(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 2,
        "if [ $RANK = 1 ]; then " EXPIRED(
            9) " while :; do sleep 0.02; done; fi; "
               "while ! [ -e $DIR/over ]; do sleep 0.01; done; exit 3");
    char *command = text_format("touch %s/over", fixture.workers.agent.directory);
    agent_watchdog_begin(fixture.watchdog);
    agent_workers_start(fixture.workers.workers, &fixture.workers.placement);
    while (strchr(fixture.workers.story, '1') == NULL) {
        event_loop_run_ready(fixture.workers.loop);
    }
    assert_true(fixture.workers.last_exit.is_signal);
    assert_int_equal(fixture.workers.last_exit.value, SIGKILL);
    assert_int_equal(system(command), 0);
    event_loop_run(fixture.workers.loop);
    assert_int_equal(fixture.workers.last_exit.value, 3);
    assert_non_null(strstr(agent_workers_evidence(fixture.workers.workers, 1),
        "killed by the watchdog: timer 'step' expired"));
    assert_null(agent_workers_evidence(fixture.workers.workers, 0));
    free(command);
    tear_down(&fixture);
}

static void a_worker_that_outlives_its_signal_says_so_later(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1, "trap 'exit 7' TERM; " EXPIRED(15) " while :; do sleep 0.01; done");
    run(&fixture);
    assert_false(fixture.workers.last_exit.is_signal);
    assert_int_equal(fixture.workers.last_exit.value, 7);
    assert_string_equal(agent_workers_evidence(fixture.workers.workers, 0),
        "had been signalled by the watchdog: timer 'step' expired");
    tear_down(&fixture);
}

static void a_child_of_a_worker_may_hold_a_timer(void **state) {
    (void)state;
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

static void strangers_and_bad_lines_are_passed_over(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1,
        "echo 'no request' >$TORCHELASTIC_TIMER_FILE; "
        "echo '{\"pid\": 1, \"scope_id\": \"theirs\", \"expiration_time\": 1, \"signal\": 9}' "
        ">$TORCHELASTIC_TIMER_FILE; printf '{\"pid\": 1, \"sco' "
        ">$TORCHELASTIC_TIMER_FILE; " EXPIRED(9) " while :; do sleep 0.02; done");
    run(&fixture);
    assert_true(fixture.workers.last_exit.is_signal);
    assert_int_equal(fixture.workers.last_exit.value, SIGKILL);
    assert_true(remembered_log_has(&fixture.log, "a line is no timer request"));
    assert_true(remembered_log_has(
        &fixture.log, "process 1 gets no timer 'theirs': it belongs to no worker of this job"));
    tear_down(&fixture);
}

static void a_released_timer_kills_nobody(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1,
        "{ echo '{\"pid\": '$$$$', \"scope_id\": \"s\", \"expiration_time\": 1, \"signal\": 9}'; "
        "echo '{\"pid\": '$$$$', \"scope_id\": \"s\", \"expiration_time\": -1, \"signal\": 0}'; } "
        ">$DIR/both; dd if=$DIR/both of=$TORCHELASTIC_TIMER_FILE bs=4096 conv=notrunc 2>$DIR/dd; "
        "sleep 0.1; exit 4");
    run(&fixture);
    assert_false(fixture.workers.last_exit.is_signal);
    assert_int_equal(fixture.workers.last_exit.value, 4);
    tear_down(&fixture);
}

static void a_timer_without_a_signal_is_only_told(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1, EXPIRED(0) " sleep 0.1; exit 4");
    run(&fixture);
    assert_int_equal(fixture.workers.last_exit.value, 4);
    assert_true(remembered_log_has(&fixture.log, "lives on, though its timers expired: 'step'"));
    tear_down(&fixture);
}

static void nobody_is_ended_while_the_group_is_stopped(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1, EXPIRED(9) " sleep 0.1; exit 4");
    agent_watchdog_begin(fixture.watchdog);
    agent_watchdog_end(fixture.watchdog);
    workers_fixture_run(&fixture.workers);
    assert_int_equal(fixture.workers.last_exit.value, 4);
    tear_down(&fixture);
}

static void a_fifo_in_use_is_left_to_its_owner(void **state) {
    (void)state;
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

static void without_the_variable_there_is_no_watchdog(void **state) {
    (void)state;
    struct workers_fixture workers;
    workers_fixture_init(&workers, 1, "exit 0");
    struct agent_watchdog_settings settings = {
        .config = &workers.agent.config,
        .environment = &workers.agent.environment,
        .workers = workers.workers,
    };
    struct agent_watchdog *watchdog;
    assert_int_equal(agent_watchdog_new(workers.loop, &settings, &watchdog, NULL), FAILURE_NONE);
    assert_null(watchdog);
    agent_watchdog_begin(watchdog);
    agent_watchdog_end(watchdog);
    agent_watchdog_forget(watchdog, 1);
    agent_watchdog_free(watchdog);
    workers_fixture_clear(&workers);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(expired_timer_kills_only_its_worker),
    cmocka_unit_test(a_worker_that_outlives_its_signal_says_so_later),
    cmocka_unit_test(a_child_of_a_worker_may_hold_a_timer),
    cmocka_unit_test(strangers_and_bad_lines_are_passed_over),
    cmocka_unit_test(a_released_timer_kills_nobody),
    cmocka_unit_test(a_timer_without_a_signal_is_only_told),
    cmocka_unit_test(nobody_is_ended_while_the_group_is_stopped),
    cmocka_unit_test(a_fifo_in_use_is_left_to_its_owner),
    cmocka_unit_test(without_the_variable_there_is_no_watchdog),
};

TEST_MAIN(tests)
