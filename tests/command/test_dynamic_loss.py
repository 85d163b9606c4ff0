# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that leave, die or stall, and what becomes of the others."""

import base64
import pickle
import signal
import time

import pytest

from support.nodes import IMPATIENT
from support.records import records, spelled  # noqa: F401 (a fixture)
from support.store import RawClient, Server


def test_survivors_go_on_when_an_agent_is_killed(make_job_anywhere):
    job = make_job_anywhere("1:3")
    job.start_host()
    job.nodes("node2", "node3")
    first = job.wait_for_world("node1", "node2", "node3")
    job.started[2].kill()
    first.of("node3").wait_until_gone()
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {0}
    second.end()
    assert job.succeeds()
    job.started[0].wait_for_log("node node3")


def test_several_agents_killed_at_once_cost_one_restart_of_the_others(make_job):
    job = make_job("1:4")
    job.start_host()
    job.nodes("node2", "node3", "node4")
    job.wait_for_world("node1", "node2", "node3", "node4")
    for node in job.started[1:3]:
        node.kill()
    world = job.wait_for_world("node1", "node4")
    world.end()
    assert job.succeeds()


def test_all_end_when_the_hosts_agent_is_killed(make_job):
    job = make_job("1:3")
    host = job.start_host()
    job.nodes("node2", "node3")
    world = job.wait_for_world("node1", "node2", "node3")
    host.kill()
    for node in job.started[1:]:
        end = node.finish()
        assert end.status == 1, job.tell()
        assert f"this node is cut off from the job's store at {job.endpoint}: " in end.err, job.tell()
        assert "Connection refused (errno 111)" in end.err.splitlines()[-1], job.tell()
    for worker in world.workers:
        worker.wait_until_gone()


def test_all_end_when_the_host_is_told_to_end(make_job):
    job = make_job("1:3")
    host = job.start_host()
    job.nodes("node2", "node3")
    world = job.wait_for_world("node1", "node2", "node3")
    host.signal(signal.SIGTERM)
    ends = job.finish()
    assert {name: end.status for name, end in ends.items()} == dict.fromkeys(ends, 1), job.tell()
    for name in ends:  # its own node, too, says what that means for the others
        assert ("node node1, which hosts the job's store, was told to end by SIGTERM; no other node can take its place "
                "(with --rdzv-backend dir one does)") in ends[name].err, job.tell()
    assert job.is_newest(world)


def test_all_nodes_can_be_told_to_end_at_once(make_job_anywhere):
    job = make_job_anywhere("1:4")
    job.start_host()
    job.nodes("node2", "node3", "node4")
    job.wait_for_world("node1", "node2", "node3", "node4")
    for node in job.started:
        node.signal(signal.SIGTERM)
    assert set(job.statuses().values()) == {1}, job.tell()


def test_a_node_that_is_told_to_end_leaves_the_others_running(make_job_anywhere):
    job = make_job_anywhere("1:3")
    job.start_host()
    job.nodes("node2", "node3")
    job.wait_for_world("node1", "node2", "node3")
    job.started[1].signal(signal.SIGTERM)
    second = job.wait_for_world("node1", "node3")
    assert second.restarts == {0}
    second.end()
    assert job.statuses() == {"node1": 0, "node2": 1, "node3": 0}, job.tell()


def test_too_few_survivors_wait_for_a_replacement(make_job):
    job = make_job("2:2")
    job.start_host()
    lost = job.start("node2")
    first = job.wait_for_world("node1", "node2")
    lost.kill()
    first.of("node1").wait_until_gone()
    job.start("node3")
    job.wait_for_world("node1", "node3").end()
    assert job.succeeds()


def test_too_few_survivors_end_when_no_replacement_comes(make_job):
    job = make_job("2:2", conf=["join_timeout=2"])
    host = job.start_host()
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    lost.kill()
    end = host.finish()
    assert end.status == 1, end
    assert "no world came together within the join timeout of 2 s" in end.err, end
    assert "1 of at least 2 nodes" in end.err, end


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_survivors_that_shall_wait_go_on_with_the_replacement(make_job, how):
    job = make_job("1:2", "--on-node-loss", "wait")
    host = job.start_host()
    lost = job.start("node2")
    first = job.wait_for_world("node1", "node2")
    lost.signal(how)
    host.wait_for_log("wanted 2")
    first.of("node1").wait_until_gone()
    job.start("node3")
    second = job.wait_for_world("node1", "node3")
    second.end()
    ends = job.statuses()
    assert (ends["node1"], ends["node3"]) == (0, 0), job.tell()
    stores = [world.store for world in job.worlds()]
    assert stores[stores.index(first.store):] == [first.store, second.store], job.tell()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_survivors_that_waited_long_enough_go_on_without(make_job, how):
    job = make_job("1:2", "--on-node-loss", "wait", conf=["join_timeout=2"])
    host = job.start_host()
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    lost.signal(how)
    host.wait_for_log("wanted 2")
    job.wait_for_world("node1").end()
    assert host.finish().status == 0, job.tell()


def test_survivors_notice_nothing_where_they_shall_do_as_torchrun(make_job):
    job = make_job("1:2", "--on-node-loss", "torchrun")
    job.start_host()
    lost = job.start("node2")
    first = job.wait_for_world("node1", "node2")
    lost.kill()
    first.of("node2").wait_until_gone()
    job.started[0].wait_for_log("node_gone node2")
    assert first.of("node1").is_running()
    first.of("node1").end(3)
    second = job.wait_for_world("node1")
    assert second.restarts == {1}
    second.end()
    assert job.succeeds()


def test_survivors_that_meet_at_a_new_store_have_no_more_restarts_than_before(muster, make_job):
    old = Server(muster)
    job = make_job("2:2", port=old.port, conf=["is_host=false"])
    job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").of("node2").end(3)
    second = job.wait_for_world("node1", "node2")
    assert second.restarts == {1}
    old.stop(signal.SIGKILL)
    Server(muster, address=("--port", old.port))
    third = job.wait_for_world("node1", "node2")
    assert third.restarts == {1}, job.tell()
    third.end()
    assert job.succeeds()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_node_that_goes_while_joining_leaves_no_ghost(make_job, how):
    job = make_job(3)
    job.start_host()
    ghost = job.start("ghost")
    ghost.wait_for_log("written won")
    ghost.signal(how)
    ghost.finish()
    job.nodes("node2", "node3")
    job.wait_for_world("node1", "node2", "node3").end()
    assert {node.name: node.finish().status for node in job.started if node is not ghost} == dict.fromkeys(
        ["node1", "node2", "node3"], 0
    )


RECORD = b"/torch.rendezvous.job"


def write_ghost(port, records, place, local_id=0x40000001):  # noqa: F811
    """A node that stands in the record, and whose agent is nowhere."""
    ghost = records._NodeDesc()
    ghost.__dict__.update(addr="ghost", pid=1, local_id=local_id)
    with RawClient(port) as client:
        state = pickle.loads(base64.b64decode(client.get(RECORD)))
        if place == "wait_list":
            state.wait_list.add(ghost)
        else:
            state.participants[ghost] = len(state.participants)
        client.set(RECORD, spelled(state))


@pytest.mark.parametrize("delegates", ["true", "false"])
@pytest.mark.parametrize("host", ["node1", "node2"])
def test_no_world_lets_in_a_node_that_never_shows_itself(make_job, records, delegates, host):  # noqa: F811
    job = make_job("1:3", conf=[f"delegation={delegates}", "silence_timeout=1"])
    hosting = job.start_host(host)
    job.nodes("node1" if host == "node2" else "node2")
    world = job.wait_for_world("node1", "node2")
    write_ghost(job.port, records, "wait_list")
    hosting.wait_for_log("not connected to this job's store for 2.0 s: node ghost_1_")
    assert all(worker.is_running() for worker in world.workers), job.tell()
    assert job.is_newest(world), job.tell()
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("delegates", ["true", "false"])
def test_no_round_waits_for_a_node_that_never_shows_itself(make_job, records, delegates):  # noqa: F811
    job = make_job(3, conf=[f"delegation={delegates}", "silence_timeout=1"])
    job.start_host().wait_for_log("written won")
    write_ghost(job.port, records, "participants")
    job.nodes("node2", "node3")
    job.wait_for_world("node1", "node2", "node3").end()
    assert job.succeeds()


def test_an_agent_that_stalled_learns_that_it_was_dropped_before_it_acts(make_job_anywhere):
    job = make_job_anywhere("1:2", conf=IMPATIENT)
    job.start_host()
    stalled = job.start("node2")
    first = job.wait_for_world("node1", "node2")
    stalled.signal(signal.SIGSTOP)
    second = job.wait_for_world("node1")
    stalled.signal(signal.SIGCONT)
    third = job.wait_for_world("node1", "node2")
    assert not any(worker.is_running() for world in (first, second) for worker in world.workers)
    third.end()
    assert job.succeeds()


def test_a_short_stall_is_forgiven(make_job):
    job = make_job("1:2")
    job.start_host()
    stalled = job.start("node2")
    world = job.wait_for_world("node1", "node2")
    stalled.signal(signal.SIGSTOP)
    time.sleep(1)
    stalled.signal(signal.SIGCONT)
    time.sleep(0.5)
    assert all(worker.is_running() for worker in world.workers), job.tell()
    world.end()
    assert job.succeeds()
    assert job.is_newest(world)


def test_a_stalled_host_stops_all_workers_and_goes_on_with_all_nodes(make_job):
    job = make_job("1:3", conf=IMPATIENT)
    host = job.start_host()
    job.nodes("node2", "node3")
    first = job.wait_for_world("node1", "node2", "node3")
    host.signal(signal.SIGSTOP)
    for node in job.started[1:]:
        first.of(node.name).wait_until_gone()
        node.wait_for_log("the store did not answer")
    host.signal(signal.SIGCONT)
    job.wait_for_world("node1", "node2", "node3").end()
    assert job.succeeds()
