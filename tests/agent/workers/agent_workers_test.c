/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent_fixture.h"
#include "workers_fixture.h"

/* Who of ours has signalled it comes first, and what it was doing last. */
WORKERS_TEST(
    what_is_known_of_an_end_is_said_once, workers_fixture_init(&fixture, 2, "exec sleep 1000")) {
    workers_fixture_start(fixture);
    assert_null(agent_workers_evidence(fixture->workers, 0));
    agent_workers_note_signal(fixture->workers, 0, SIGTERM, "by nobody");
    agent_workers_note_signal(fixture->workers, 0, SIGKILL, "by the watchdog");
    agent_workers_note_hang(fixture->workers, 0, "sleeping");
    agent_workers_note_hang(fixture->workers, 0, "reading");
    agent_workers_note_signal(fixture->workers, 1, SIGTERM, "by us");
    agent_workers_signal(fixture->workers, SIGKILL);
    event_loop_run(fixture->loop);
    assert_string_equal(agent_workers_evidence(fixture->workers, 0),
        "killed by the watchdog; before that it was reading");
    assert_string_equal(agent_workers_evidence(fixture->workers, 1), "had been signalled by us");
}

static void note_process(void *context, pid_t pid, int local_rank) {
    assert_true(pid > 0);
    text_append_format(context, "%d ", local_rank);
}

/* The first worker leaves a process in its session behind and one in a session of its own. */
WORKERS_TEST(what_is_left_behind_is_visited_with_its_worker,
    workers_fixture_init(&fixture, 2,
        "if [ $RANK = 1 ]; then exec sleep 1000; fi; sleep 1000 & setsid sleep 1000 & "
        "until [ `cut -d ' ' -f 6 /proc/$$!/stat` = $$! ]; do sleep 0.01; done")) {
    struct text ranks = {0};
    agent_workers_start(fixture->workers, &fixture->placement);
    while (strchr(fixture->story, '0') == NULL) {
        event_loop_run_ready(fixture->loop);
    }
    agent_workers_each_process(fixture->workers, note_process, &ranks);
    assert_true(
        text_equals(text_string(&ranks), "1 0 -1 ") || text_equals(text_string(&ranks), "1 -1 0 "));
    text_clear(&ranks);
    agent_workers_signal(fixture->workers, SIGKILL);
    event_loop_run(fixture->loop);
    agent_workers_each_process(fixture->workers, note_process, &ranks);
    assert_int_equal(ranks.length, 0);
}

/* The files of its workers are being made: nobody knows how long that takes. */
WORKERS_TEST(
    nobody_is_started_after_a_signal, workers_fixture_init(&fixture, 2, "touch $DIR/started")) {
    agent_workers_start(fixture->workers, &fixture->placement);
    assert_string_equal(fixture->story, ""); /* the answer comes from the loop */
    agent_workers_signal(fixture->workers, SIGTERM);
    assert_string_equal(fixture->story, "g");
    agent_workers_signal(fixture->workers, SIGKILL);
    assert_string_equal(fixture->story, "g");
    event_loop_run(fixture->loop); /* all_gone has stopped it */
    assert_false(agent_fixture_has_file(&fixture->agent, "started"));
    workers_fixture_run(fixture); /* the next start is none of its business */
    assert_true(agent_fixture_has_file(&fixture->agent, "started"));
    assert_int_equal(strlen(fixture->story), 5);
    assert_memory_equal(fixture->story, "gs", 2);
}

TEST(next_round_of_an_attempt_keeps_the_earlier_logs) {
    struct workers_fixture fixture;
    workers_fixture_init(
        &fixture, 1, "echo $TORCHELASTIC_RESTART_COUNT > $TORCHELASTIC_ERROR_FILE");
    workers_fixture_run(&fixture);
    char *earlier = memory_duplicate_string(agent_workers_error_file(fixture.workers, 0));
    fixture.placement.round = 3;
    workers_fixture_run(&fixture);
    assert_non_null(
        strstr(agent_workers_error_file(fixture.workers, 0), "/attempt_0_round_3/0/error.json"));
    assert_int_equal(access(earlier, F_OK), 0);
    free(earlier);
    workers_fixture_clear(&fixture);
}
