# SPDX-License-Identifier: BSD-3-Clause
"""What a lost node leaves behind: workers elsewhere that lose their connection to it and fail, often before
anybody knows of the loss. It is the loss, which costs nothing, that counts."""

import signal

import pytest

NAMES = ["node1", "node2", "node3"]


def start(make_job, restarts):
    """Nobody is missed for being silent while a test takes its time."""
    job = make_job("1:3", restarts=restarts, conf=["silence_timeout=600", "keep_alive_interval=600"])
    job.start_host()
    job.nodes(*NAMES[1:])
    return job, job.wait_for_world(*NAMES)


@pytest.mark.parametrize("failing", ["node1", "node2"])
def test_a_failure_before_the_loss_is_known_does_not_end_a_job_without_restarts(make_job, failing):
    job, world = start(make_job, restarts=0)
    job.started[2].signal(signal.SIGSTOP)
    world.of(failing).end(1)
    job.wait_for_log_of_any("call_roll round")
    job.started[2].kill()
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}
    assert "joining the job's next round: node node3" in job.started[NAMES.index(failing)].err(), job.tell()
    second.end()
    assert job.succeeds()


def test_a_restart_that_was_charged_before_the_loss_is_given_back(make_job):
    job, world = start(make_job, restarts=1)
    job.started[2].signal(signal.SIGSTOP)
    world.of("node2").end(1)
    job.started[1].wait_for_log("round 1 of job 'job'")
    job.started[2].kill()
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}
    second.of("node1").end(1)  # the one restart there is can still be had
    third = job.wait_for_world("node1", "node2")
    assert third.restarts == {1}
    third.end()
    assert job.succeeds()


def test_a_failure_stands_when_all_others_are_there(make_job):
    job, world = start(make_job, restarts=0)
    world.of("node3").end(3)
    assert job.statuses() == dict.fromkeys(NAMES, 1), job.tell()
    for node in job.started:
        assert "exitcode  : 3 " in node.err(), job.tell()


def test_a_failure_stands_when_it_takes_too_long_to_know_of_a_loss(make_job):
    job = make_job("1:2", restarts=0, conf=["silence_timeout=1", "keep_alive_interval=600"])
    job.start_host()
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    job.started[1].signal(signal.SIGSTOP)
    world.of("node1").end(3)
    job.started[0].wait_for_log("ChildFailedError")
    job.started[1].signal(signal.SIGCONT)
    assert job.statuses() == {"node1": 1, "node2": 1}, job.tell()


def test_a_signal_ends_a_node_whose_failure_is_doubted_but_not_the_job(make_job):
    job, world = start(make_job, restarts=0)
    job.started[2].signal(signal.SIGSTOP)
    world.of("node2").end(3)
    job.started[1].wait_for_log("call_roll round")
    job.started[1].signal(signal.SIGTERM)
    end = job.started[1].finish()
    assert end.status == 1 and "exitcode  : 3 " in end.err, end
    job.started[2].signal(signal.SIGCONT)
    job.wait_for_world("node1", "node3").end()
    assert [job.started[0].finish().status, job.started[2].finish().status] == [0, 0], job.tell()
