/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <unistd.h>

#include "events_fixture.h"

static int count(const struct fixture *fixture, const char *words) {
    int count = 0;
    const char *at = text_string(&fixture->transcript);
    while ((at = strstr(at, words)) != NULL) {
        at += strlen(words);
        count++;
    }
    return count;
}

/* The end of local rank 0 is told while the process still lives. */
static void tell_ending(struct fixture *fixture, struct process_exit how) {
    struct agent_workers_observer observer = agent_workers_events(&fixture->agent);
    observer.ending(observer.context, 0, how);
}

FIXTURE_TEST_AFTER(
    the_others_are_signalled_before_a_worker_has_ended, set_up(&fixture, "exec sleep 1000")) {
    fixture->job.config.max_restarts = 0;
    start_workers(fixture);
    tell_ending(fixture, (struct process_exit){.is_signal = true, .value = SIGKILL});
    assert_int_equal(phase_of(fixture), AGENT_STOPPING);
    assert_true(has_logged(fixture, "running <- worker_ending rank=0 signal=9\n"));
    assert_true(has_logged(fixture, "stopping -> signal_workers 15\n"));
    assert_int_equal(count(fixture, "worker_exited"), 0);
    event_loop_run(fixture->agent.loop);
    assert_int_equal(fixture->agent.outcome.kind, AGENT_OUTCOME_FAILED);
    assert_int_equal(count(fixture, "failed (exitcode: "), 1);
    assert_int_equal(count(fixture, "failed (exitcode: -9) local_rank: 0"), 1);
    assert_int_equal(count(fixture, "worker_exited"), 2);
    const struct worker_group *group = node_machine_workers(fixture->agent.node);
    size_t root = worker_group_root_cause(group);
    assert_int_equal(group->failures[root].local_rank, 0);
    assert_int_equal(group->failures[root].exit.value, SIGTERM); /* which was its real end here */
}

FIXTURE_TEST_AFTER(
    a_node_that_is_to_be_replaced_leaves_at_once, set_up(&fixture, "exec sleep 1000")) {
    fixture->job.config.max_restarts = 3;
    fixture->job.config.exit_on.codes[7] = true;
    start_workers(fixture);
    tell_ending(fixture, (struct process_exit){.value = 7});
    event_loop_run(fixture->agent.loop);
    assert_true(fixture->agent.has_exit_on);
    assert_int_equal(fixture->agent.exit_on.value, 7);
    assert_int_equal(count(fixture, "--exit-on: "), 1);
    assert_int_equal(count(fixture, "restarting the workers"), 0);
}
