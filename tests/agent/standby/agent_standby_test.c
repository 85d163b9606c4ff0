/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "standby_fixture.h"

#define READY "spare_ready rank=0 bytes=262144"

static const int own_streams[2] = {-1, -1};

static struct text_list environment_with(const char *variable) {
    struct text_list environment = {0};
    text_list_add(&environment, "PATH=/bin");
    text_list_add(&environment, variable);
    return environment;
}

/* A worker was started with RANK=0, and then a standby worker, which has said what it had to say.
 */
static void warm(struct standby_fixture *fixture) {
    struct text_list environment = environment_with("RANK=0");
    agent_standby_dress(fixture->standby, 0, &environment);
    text_list_clear(&environment);
    agent_standby_perform(
        fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_WARM, .local_rank = 0});
    event_loop_run(fixture->loop);
}

static pid_t give(struct standby_fixture *fixture, const char *variable) {
    struct text_list environment = environment_with(variable);
    pid_t pid = agent_standby_give(fixture->standby, 0, &environment, own_streams);
    text_list_clear(&environment);
    return pid;
}

static void end_all(struct standby_fixture *fixture) {
    agent_standby_perform(
        fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_END_ALL});
}

static void write_record(int record, const char *text) {
    assert_int_equal(write(record, text, strlen(text)), (ssize_t)strlen(text));
}

/* The number of this process stands for the worker's. */
STANDBY_TEST(only_a_worker_that_has_said_hello_can_be_asked_for_its_stacks) {
    struct text_list environment = environment_with("RANK=0");
    fixture->config.evidence_signal = 50;
    int record = agent_standby_dress(fixture->standby, 0, &environment);
    agent_standby_note_worker(fixture->standby, 0, getpid());
    assert_int_equal(agent_standby_dump(fixture->standby, 0, getpid()).signal, 0);
    char *hello = text_format("hello 1 %d\njson\t/usr/lib/json.py\n", (int)getpid());
    write_record(record, hello);
    struct hang_evidence_dump dump = agent_standby_dump(fixture->standby, 0, getpid());
    assert_int_equal(dump.signal, 50);
    assert_int_equal(dump.fd, record);
    assert_int_equal(agent_standby_dump(fixture->standby, 0, getppid()).signal, 0);
    assert_int_equal(agent_standby_dump(fixture->standby, -1, getpid()).signal, 0);
    assert_int_equal(agent_standby_dump(NULL, 0, getpid()).signal, 0);
    free(hello);
    text_list_clear(&environment);
}

STANDBY_TEST(a_hello_of_another_process_is_none) {
    struct text_list environment = environment_with("RANK=0");
    fixture->config.evidence_signal = 50;
    int record = agent_standby_dress(fixture->standby, 0, &environment);
    agent_standby_note_worker(fixture->standby, 0, getpid());
    write_record(record, "hello 1 1\n");
    assert_int_equal(agent_standby_dump(fixture->standby, 0, getpid()).signal, 0);
    text_list_clear(&environment);
}

STANDBY_TEST(one_that_does_not_fit_is_ended_and_not_given) {
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    assert_int_equal(give(fixture, "OMP_NUM_THREADS=2"), 0);
    standby_fixture_expect(fixture, "spare_refused rank=0");
    event_loop_run(fixture->loop); /* its end, of which nothing is told */
    standby_fixture_expect(fixture, "");
    assert_string_equal(text_string(&fixture->settled), "");
}

static void kill_child(void) {
    struct process_ids children = {0};
    process_table_children(getpid(), &children);
    assert_int_equal(children.count, 1);
    kill(children.items[0], SIGKILL);
    process_ids_clear(&children);
}

static void perform_teach(struct standby_fixture *fixture) {
    agent_standby_perform(
        fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_TEACH, .local_rank = 0});
}

/* A worker imports it, and is looked at. */
static void learn(struct standby_fixture *fixture, const char *imports) {
    struct text_list environment = environment_with("RANK=0");
    int record = agent_standby_dress(fixture->standby, 0, &environment);
    agent_standby_note_worker(fixture->standby, 0, 1);
    write_record(record, "hello 1 1\n");
    write_record(record, imports);
    agent_standby_perform(fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_LOOK});
    event_loop_run(fixture->loop); /* the events have stopped it */
    text_clear(&fixture->told);
    text_list_clear(&environment);
}

static void teach(struct standby_fixture *fixture) {
    learn(fixture, "json\t\n");
    perform_teach(fixture);
}

STANDBY_TEST(one_that_learns_is_not_given_until_it_is_ready_again) {
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    teach(fixture);
    assert_int_equal(give(fixture, "RANK=7"), 0); /* what it says now has not been taken */
    standby_fixture_expect(fixture, "");
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, READY);
    assert_true(give(fixture, "RANK=7") > 0);
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, "spare_given rank=0");
}

STANDBY_TEST(one_that_cannot_be_taught_has_ended) {
    teach(fixture); /* there is none */
    standby_fixture_expect(fixture, "");
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    siginfo_t how;
    kill_child();
    assert_int_equal(waitid(P_ALL, 0, &how, WEXITED | WNOWAIT), 0);
    perform_teach(fixture);
    standby_fixture_expect(fixture, "spare_ended rank=0 signal=0");
}

/* A worker of the rank was started with another environment meanwhile. */
STANDBY_TEST(one_must_fit_to_the_environment_it_was_started_with) {
    struct text_list other = environment_with("OMP_NUM_THREADS=2");
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    agent_standby_dress(fixture->standby, 0, &other);
    text_list_clear(&other);
    assert_int_equal(give(fixture, "OMP_NUM_THREADS=2"), 0);
    standby_fixture_expect(fixture, "spare_refused rank=0");
    event_loop_run(fixture->loop); /* its end */
}

STANDBY_TEST_AFTER(
    a_dirty_one_is_told_of_once, standby_fixture_init(&fixture, STANDBY_PLAY_DIRTY)) {
    warm(fixture);
    standby_fixture_expect(fixture, "spare_dirty rank=0");
    end_all(fixture); /* the plan's answer */
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, "");
    assert_int_equal(give(fixture, "RANK=0"), 0);
}

STANDBY_TEST_AFTER(what_an_unsuited_one_names_is_left_out_from_then_on,
    standby_fixture_init(&fixture, STANDBY_PLAY_UNSUITED)) {
    learn(fixture, "doors\t\nlocks\tfrozen\n");
    warm(fixture);
    standby_fixture_expect(fixture, "spare_unsuited rank=0");
    agent_standby_perform(
        fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_PUBLISH});
    assert_string_equal(text_string(&fixture->published), "doors\t\nlocks#frozen\n");
    event_loop_run(fixture->loop); /* its end */
    warm(fixture);
    standby_fixture_expect(fixture, "spare_unsuited rank=0 nothing new");
    event_loop_run_ready(fixture->loop); /* their ends are nothing new */
    standby_fixture_expect(fixture, "");
}

STANDBY_TEST_AFTER(
    one_that_ends_before_it_is_ready_is_told_of, standby_fixture_init(&fixture, STANDBY_PLAY_END)) {
    warm(fixture);
    standby_fixture_expect(fixture, "spare_ended rank=0 status=5");
}

STANDBY_TEST_AFTER(one_that_does_not_go_through_its_gate_is_taken_back,
    standby_fixture_init(&fixture, STANDBY_PLAY_SILENT)) {
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    assert_true(give(fixture, "RANK=0") > 0);
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, "spare_refused rank=0");
    assert_string_equal(text_string(&fixture->settled), "0-");
    assert_true(process_family_is_gone(fixture->family));
}

STANDBY_TEST_AFTER(one_that_is_dirty_at_its_gate_was_no_worker_and_is_the_last,
    standby_fixture_init(&fixture, STANDBY_PLAY_DIRTY_AT_GATE)) {
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    assert_true(give(fixture, "RANK=0") > 0);
    while (fixture->told.length == 0) {
        event_loop_run(fixture->loop);
    }
    standby_fixture_expect(fixture, "spare_dirty rank=0");
    assert_non_null(strstr(text_string(&fixture->settled), "0-"));
}

STANDBY_TEST_AFTER(one_that_goes_through_and_ends_at_once_was_a_worker,
    standby_fixture_init(&fixture, STANDBY_PLAY_HASTE)) {
    warm(fixture);
    standby_fixture_expect(fixture, READY);
    assert_true(give(fixture, "RANK=0") > 0);
    while (strstr(text_string(&fixture->settled), "(3)") == NULL) {
        event_loop_run(fixture->loop);
    }
    standby_fixture_expect(fixture, "spare_given rank=0");
    assert_non_null(strstr(text_string(&fixture->settled), "0+"));
}

STANDBY_TEST_AFTER(who_is_awaited_no_longer_is_ended_or_stays_a_worker,
    standby_fixture_init(&fixture, STANDBY_PLAY_SILENT)) {
    warm(fixture);
    assert_true(give(fixture, "RANK=0") > 0);
    assert_false(agent_standby_give_up(fixture->standby, 0));
    assert_true(process_family_is_gone(fixture->family));
    assert_string_equal(text_string(&fixture->settled), "");
}

STANDBY_TEST(a_hello_of_another_process_does_not_count) {
    struct text_list environment = environment_with("RANK=0");
    int record = agent_standby_dress(fixture->standby, 0, &environment);
    agent_standby_note_worker(fixture->standby, 0, 4243);
    assert_int_equal(write(record, "hello 1 4242\n", 13), 13);
    agent_standby_perform(fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_LOOK});
    assert_int_equal(strncmp(text_string(&fixture->told), "records", 7), 0);
    text_list_clear(&environment);
}

#define LIST "json\t/usr/lib/python3.11/json/__init__.py\n"

static bool invite(struct standby_fixture *fixture, const char *list) {
    return agent_standby_invite(fixture->standby, slice_from_string(list));
}

STANDBY_TEST_AFTER(a_new_node_warms_when_its_interpreter_runs_the_hook,
    standby_fixture_open(&fixture, STANDBY_PLAY_WELL, LAUNCH_ENTRY_SCRIPT)) {
    assert_true(invite(fixture, LIST));
    assert_false(invite(fixture, LIST));
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, "invited modules=1");
    agent_standby_perform(
        fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_PUBLISH});
    assert_string_equal(text_string(&fixture->published), ""); /* it knows it only from others */
    agent_standby_perform(
        fixture->standby, &(struct standby_effect){.kind = STANDBY_EFFECT_WARM, .local_rank = 0});
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, READY);
    assert_true(give(fixture, "RANK=0") > 0); /* it has the environment that was foreseen */
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, "spare_given rank=0");
}

/* A standby worker would run the program at once. */
STANDBY_TEST_AFTER(a_new_node_whose_interpreter_does_not_run_the_hook_joins_without,
    standby_fixture_open(&fixture, STANDBY_PLAY_WELL, LAUNCH_ENTRY_SCRIPT)) {
    fixture->is_hook_missing = true;
    assert_true(invite(fixture, LIST));
    event_loop_run(fixture->loop);
    standby_fixture_expect(fixture, "warmed");
}

STANDBY_TEST_AFTER(where_nothing_can_be_warmed_nobody_waits,
    standby_fixture_open(&fixture, STANDBY_PLAY_WELL, LAUNCH_ENTRY_SCRIPT)) {
    assert_false(invite(fixture, "nonsense"));
    fixture->refuses_to_spawn = true;
    assert_false(invite(fixture, LIST));
    assert_false(agent_standby_invite(NULL, slice_from_string(LIST)));
    standby_fixture_clear(fixture);
    standby_fixture_init(fixture, STANDBY_PLAY_WELL); /* no Python */
    assert_false(invite(fixture, LIST));
}

STANDBY_TEST_AFTER(a_probe_that_does_not_end_goes_with_the_agent,
    standby_fixture_open(&fixture, STANDBY_PLAY_WELL, LAUNCH_ENTRY_SCRIPT)) {
    assert_true(invite(fixture, LIST));
}
