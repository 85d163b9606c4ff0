# SPDX-License-Identifier: BSD-3-Clause
"""Nodes for which the host of the store writes the record (--rdzv-conf delegation)."""

import signal
import time

import pytest

from support.nodes import WORKER, wait_until

NAMES = ["node1", "node2", "node3", "node4"]


def make_delegating(make_job, *arguments, **how):
    return make_job(*arguments, conf=["delegation=true"], **how)


def said(node, words):
    return any(words in line for line in node.err().split("\n"))


def serves_wishes(host):
    """Whether a node has wished anything of the host. Each node shows itself there."""
    return any("rendezvous <- wished" in line and not line.endswith(" nothing") for line in host.err().split("\n"))


def reads_record(node):
    """Whether the node has asked the store for the record, as its transcript tells."""
    return said(node, "rendezvous -> fetch")


def test_nodes_delegate_from_their_start_to_the_jobs_end(make_job):
    job = make_delegating(make_job, 4)
    host = job.start_host(NAMES[0])
    others = job.nodes(*NAMES[1:])
    first = job.wait_for_world(*NAMES)
    assert first.nodes == NAMES
    first.of("node3").end(3)
    second = job.wait_for_world(*NAMES)
    assert second.restarts == {1}
    second.end()
    assert job.succeeds()
    assert serves_wishes(host), job.tell()
    assert all(said(node, "rendezvous <- standing to wish") for node in others), job.tell()
    assert not any(reads_record(node) for node in others), job.tell()


def test_nodes_are_told_their_ranks_at_the_start_and_at_a_restart(make_job):
    job = make_delegating(make_job, 4)
    nodes = [job.start_host(NAMES[0]), *job.nodes(*NAMES[1:])]
    first = job.wait_for_world(*NAMES)
    assert all(said(node, "round <- begin 0") and said(node, " of 4 ranked") for node in nodes), job.tell()
    assert not any(said(node, "round <- released") for node in nodes), job.tell()
    first.of("node3").end(3)
    second = job.wait_for_world(*NAMES)
    assert second.restarts == {1} and second.store != first.store
    second.end()
    assert job.succeeds()
    assert all(said(node, "round <- released 1") for node in nodes), job.tell()
    assert not any(said(node, "set_role_info") for node in nodes), job.tell()


# Ends when it is told to, but not before there is a file of that name.
SLOW_WORKER = """\
if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then
    trap 'until [ -e may_end ]; do sleep 0.02; done; exit 0' TERM
fi
""" + WORKER


@pytest.mark.parametrize("slow", ["node1", "node3"], ids=["on the host", "on another node"])
def test_no_worker_starts_before_the_slowest_old_one_has_ended(make_job, scratch, slow):
    (scratch / "slow.sh").write_text(SLOW_WORKER)
    job = make_delegating(make_job, 3)
    script = {slow: str(scratch / "slow.sh")}
    nodes = {"node1": job.start_host("node1", script=script.get("node1"))}
    nodes |= {name: job.start(name, script=script.get(name)) for name in NAMES[1:3]}
    first = job.wait_for_world(*NAMES[:3])
    first.of("node2").end(3)
    nodes["node1"].wait_for_log(" ready 1")  # as the first of those that are quick has told the host
    time.sleep(0.5)  # in which a start would take 10 ms
    assert len(job.workers()) == 3 and first.of(slow).is_running(), job.tell()
    assert not any(said(node, "round <- released") for node in nodes.values()), job.tell()
    (scratch / "may_end").touch()
    second = job.wait_for_world(*NAMES[:3])
    assert second.restarts == {1}
    second.end()
    assert job.succeeds()


@pytest.mark.parametrize("length", [20, 70])
def test_new_nodes_are_told_where_their_workers_meet_unless_the_address_is_too_long(make_job, length):
    job = make_delegating(make_job, 4)
    nodes = [job.start(name, address="x" * length) for name in NAMES]
    world = job.wait_for_world(*NAMES)
    address, port = world.store.rsplit(":", 1)
    assert address == "x" * length and {worker.store for worker in world.workers} == {world.store}, job.tell()
    meets = [node for node in nodes if said(node, f"ranked meets at {address} port {port}")]
    asks = [node for node in nodes if said(node, "round -> get 0/address")]
    # rank 0 tells, and the host of the store, if it is another one, asks for the address itself
    assert (len(meets) >= 2 and len(asks) <= 1) if length < 64 else (not meets and len(asks) == 3), job.tell()
    world.end()
    assert job.succeeds()


@pytest.mark.parametrize("most", [32, 33])
def test_only_a_job_that_may_have_many_nodes_delegates_by_default(make_job, most):
    job = make_job(f"2:{most}")
    host = job.start_host("node1")
    other = job.start("node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    assert serves_wishes(host) == (most > 32), job.tell()
    assert reads_record(other) == (most <= 32), job.tell()


def test_a_node_that_delegates_is_lost_and_one_takes_its_place(make_job):
    job = make_delegating(make_job, "3:4")
    job.start_host(NAMES[0])
    lost, *_ = job.nodes(*NAMES[1:])
    job.wait_for_world(*NAMES)
    lost.kill()
    job.wait_for_world("node1", "node3", "node4")
    job.start("node2")
    world = job.wait_for_world(*NAMES)
    assert world.restarts == {0}
    world.end()
    assert job.succeeds()


def test_a_node_that_delegates_leaves(make_job):
    job = make_delegating(make_job, "2:3", "--settling-time", "0")
    job.start_host("node1")
    leaving, _ = job.nodes("node2", "node3")
    job.wait_for_world("node1", "node2", "node3")
    leaving.signal(signal.SIGTERM)
    world = job.wait_for_world("node1", "node3")
    assert any("node node2 " in node.err() and " has left" in node.err() for node in job.started), job.tell()
    world.end()
    assert job.statuses()["node2"] != 0


def test_a_failure_without_a_restart_left_ends_all(make_job):
    job = make_delegating(make_job, 3, restarts=0)
    job.start_host("node1")
    job.nodes("node2", "node3")
    job.wait_for_world("node1", "node2", "node3").of("node2").end(7)
    assert all(job.statuses().values()), job.tell()


@pytest.mark.parametrize("offering", [True, False])
def test_nodes_with_and_without_delegation_are_one_job(make_job, offering):
    job = make_job(3)
    job.start_host("node1", conf=[f"delegation={str(offering).lower()}"])
    job.start("node2", conf=[f"delegation={str(not offering).lower()}"])
    job.start("node3", conf=["delegation=true"])
    first = job.wait_for_world("node1", "node2", "node3")
    first.of("node2").end(3)
    second = job.wait_for_world("node1", "node2", "node3")
    assert second.restarts == {1}
    second.end()
    assert job.succeeds()
    wait_until(lambda: said(job.started[2], "rendezvous <- standing to wish") == offering, "what node3 does")
