# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that agree on a world by themselves: agents on loopback, one job."""

import time

import pytest

from support.store import Server


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_nodes_agree_on_one_world(make_job, count):
    names = [f"node{number}" for number in range(count)]
    job = make_job(count)
    job.nodes(*names)
    world = job.wait_for_world(*names)
    assert [worker.group_rank for worker in world.workers] == list(range(count))
    assert {worker.group_world_size for worker in world.workers} == {count}
    assert world.restarts == {0}
    world.end()
    assert job.succeeds()


def test_two_nodes_agree_wherever_the_record_is(make_job_anywhere):
    job = make_job_anywhere(2)
    job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_the_last_call_ends_with_those_who_came(make_job):
    job = make_job("1:4")
    job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_ranks_follow_the_natural_order_of_names(make_job):
    job = make_job(4)
    job.nodes("node10", "node2", "node1", "node9")
    world = job.wait_for_world("node1", "node2", "node9", "node10")
    assert world.nodes == ["node1", "node2", "node9", "node10"]
    world.end()
    assert job.succeeds()


def test_survivors_keep_their_order(make_job):
    job = make_job("2:4")
    job.start_host("node10")
    lost, *_ = job.nodes("node2", "node1", "node9")
    job.wait_for_world("node1", "node2", "node9", "node10")
    lost.kill()
    world = job.wait_for_world("node1", "node9", "node10")
    assert world.nodes == ["node1", "node9", "node10"]
    world.end()
    assert job.succeeds()


def test_nodes_of_different_sizes_and_roles_share_the_ranks(make_job):
    job = make_job(3)
    job.start("node1", "--nproc-per-node", 1, "--role", "reader")
    job.start("node2", "--nproc-per-node", 3, "--role", "trainer")
    job.start("node3", "--nproc-per-node", 2, "--role", "reader")
    world = job.wait_for_world("node1", "node2", "node3")
    assert [(worker.node, worker.local_rank) for worker in world.workers] == [
        ("node1", 0), ("node2", 0), ("node2", 1), ("node2", 2), ("node3", 0), ("node3", 1),
    ]  # fmt: skip
    assert [(worker.role, worker.role_rank, worker.role_world_size) for worker in world.workers] == [
        ("reader", 0, 3), *(("trainer", rank, 3) for rank in range(3)), ("reader", 1, 3), ("reader", 2, 3),
    ]  # fmt: skip
    world.end()
    assert job.succeeds()


def test_nodes_meet_at_an_ipv6_address(make_job):
    job = make_job(2, host="[::1]")
    job.nodes("node1", "node2")
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_the_host_need_not_be_up_first(make_job):
    job = make_job(2)
    job.start("node2", conf=["is_host=false"])
    time.sleep(0.5)
    job.start_host()
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()


def test_a_node_that_is_told_so_hosts_the_store(make_job):
    job = make_job(2)
    first = job.start("node1", conf=["is_host=false"])
    second = job.start("node2", conf=["is_host=true"])
    job.wait_for_world("node1", "node2").end()
    assert job.succeeds()
    assert "hosting the store" in second.err() and "hosting the store" not in first.err()


def test_a_node_that_shall_host_but_cannot_says_why(make_job, muster):
    server = Server(muster)
    job = make_job(2, port=server.port)
    end = job.start("node1", conf=["is_host=true"]).finish()
    assert end.status == 1 and f"port {server.port} is taken" in end.err, end
    assert "give all nodes another port with --rdzv-endpoint" in end.err, end
