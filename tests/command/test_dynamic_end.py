# SPDX-License-Identifier: BSD-3-Clause
"""How a job of several nodes ends when its workers are done, and for whom."""

import signal

import pytest

from support.nodes import IMPATIENT
from support.store import Server

pytestmark = pytest.mark.threads


def test_a_closed_job_tells_who_comes_late(make_job, muster):
    server = Server(muster)
    job = make_job("1:2", port=server.port, conf=["is_host=false"])
    job.start("node1")
    job.wait_for_world("node1").end()
    assert job.succeeds()
    end = job.start("node2").finish()
    assert end.status == 1 and "is over: its record is closed; a new job needs another --rdzv-id" in end.err, end


def test_a_node_that_is_done_waits_for_the_others(make_job_anywhere):
    job = make_job_anywhere(2)
    done, _ = job.nodes("node1", "node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node1").end()
    done.wait_until_done()
    assert done.is_running()
    world.of("node2").end()
    assert job.succeeds()


def test_a_node_that_is_done_starts_again_when_another_fails(make_job):
    job = make_job(2)
    done, _ = job.nodes("node1", "node2")
    first = job.wait_for_world("node1", "node2")
    first.of("node1").end()
    done.wait_until_done()
    first.of("node2").end(3)
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {1}
    second.end()
    assert job.succeeds()


def test_a_node_that_is_done_ends_at_once_when_another_fails_for_good(make_job):
    job = make_job(2, restarts=0)
    done, _ = job.nodes("node1", "node2")
    first = job.wait_for_world("node1", "node2")
    first.of("node1").end()
    done.wait_until_done()
    first.of("node2").end(3)
    assert job.statuses() == {"node1": 0, "node2": 1}, job.tell()  # its own part went well


@pytest.mark.parametrize("how", ["killed", "told to end"])
def test_a_node_that_is_done_ends_well_when_the_host_goes(make_job, how):
    job = make_job(2)
    host = job.start_host()
    done = job.start("node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end()
    done.wait_until_done()
    if how == "killed":
        host.kill()
    else:
        host.signal(signal.SIGTERM)
    assert done.finish().status == 0, job.tell()


def test_a_node_that_comes_back_to_a_job_that_ended_well_cannot_say_what_became_of_it(make_job):
    job = make_job("1:2", conf=IMPATIENT)
    job.start_host()
    stalled = job.start("node2")
    first = job.wait_for_world("node1", "node2")
    stalled.signal(signal.SIGSTOP)
    job.wait_for_world("node1").end()
    job.started[0].wait_for_log("finish succeeded")
    stalled.signal(signal.SIGCONT)  # the host waits for it, as it is still connected
    assert job.statuses() == {"node1": 0, "node2": 1}, job.tell()
    assert "this agent stood still for " in stalled.err(), job.tell()
    first.of("node2").wait_until_gone()


def test_a_node_that_is_done_and_killed_is_not_missed(make_job):
    job = make_job("1:2")
    job.start_host()
    done = job.start("node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end()
    done.wait_until_done()
    done.kill()
    job.started[0].wait_for_log("gone")
    assert world.of("node1").is_running(), job.tell()
    world.of("node1").end()
    assert job.succeeds(), job.tell()
    assert job.is_newest(world), job.tell()


def test_a_node_that_is_done_does_the_work_of_one_that_is_killed(make_job):
    job = make_job("1:2")
    done = job.start_host()
    lost = job.start("node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node1").end()
    done.wait_until_done()
    lost.kill()
    job.wait_for_world("node1").end()
    assert job.succeeds()


def test_a_signal_ends_a_node_that_waits_for_the_others_to_be_done(make_job):
    job = make_job("1:2")
    job.start_host()
    done = job.start("node2")
    world = job.wait_for_world("node1", "node2")
    world.of("node2").end()
    done.wait_until_done()
    done.signal(signal.SIGTERM)
    assert done.finish().status == 1, job.tell()
    assert world.of("node1").is_running()
    world.of("node1").end()
    assert job.started[0].finish().status == 0, job.tell()
    assert job.is_newest(world)


def test_a_host_that_is_done_does_not_wait_for_a_lost_node_whose_loss_is_ignored(make_job):
    job = make_job("1:3", "--exit-barrier-timeout", 0.5, "--on-node-loss", "torchrun")
    host = job.start_host("node1")
    lost, _ = job.nodes("node2", "node3")
    world = job.wait_for_world("node1", "node2", "node3")
    lost.kill()
    world.of("node1").end()
    host.wait_for_log("round -> barrier_late")
    assert host.is_running() and world.of("node3").is_running(), job.tell()
    world.of("node3").end()
    assert job.succeeds()


def test_a_host_that_is_done_keeps_the_store_for_those_who_are_not(make_job):
    """With a restart in between: the new round needs it, too."""
    job = make_job("2:3", "--exit-barrier-timeout", 0.2)
    host = job.start_host("node1")
    job.nodes("node2", "node3")
    first = job.wait_for_world("node1", "node2", "node3")
    first.of("node1").end()
    host.wait_for_log("round -> barrier_late")
    first.of("node2").end(3)
    second = job.wait_for_world("node1", "node2", "node3")
    second.of("node1").end()
    host.wait_for_log("round -> barrier_late", count=2)
    second.of("node3").end()
    second.of("node2").end()
    assert job.succeeds()
