# SPDX-License-Identifier: BSD-3-Clause
"""A node's presence in the job's store is its own: no other client takes it over or away."""

import pytest

from support.nodes import Job
from support.store import ADD, APPEND, COMPARE_SET, DELETE, LIST, MULTI_SET, SET, RawClient, request


@pytest.fixture
def job(muster):
    return Job(muster, 2)


def keys_of(client):
    client.send(bytes([LIST]))
    return [client.receive_blob() for _ in range(client.receive_number())]


def presence_of(client, node):
    """The presence key of the node with this address."""
    (key,) = (key for key in keys_of(client) if b"/muster/presence/" + node.encode() + b"_" in key)
    return key


def test_a_stranger_neither_takes_over_nor_ends_the_presence_of_a_node(job):
    one = job.start_host("node1")
    job.start("node2")
    world = job.wait_for_world("node1", "node2")
    with RawClient(job.port) as stranger:
        key = presence_of(stranger, "node2")
        stranger.set(key, b"finished")
        stranger.send(request(APPEND, key, b"!"))
        stranger.send(bytes([MULTI_SET]) + (1).to_bytes(8, "little") + request(SET, key, b"finished")[1:])
        assert stranger.get(key) == b"running"
        stranger.send(request(COMPARE_SET, key, b"running", b"finished"))
        assert stranger.receive_blob() == b"running"
        stranger.send(request(DELETE, key))
        assert stranger.receive_number() == 0
        stranger.ping()
    with RawClient(job.port) as stranger:  # whose end is not the node's
        stranger.send(request(ADD, presence_of(stranger, "node1"), 1))
        assert stranger.is_closed()
    one.wait_for_log("it would write a presence key of another connection")
    assert all(worker.is_running() for worker in world.workers), job.tell()
    world.end()
    assert job.succeeds()
    assert job.is_newest(world), job.tell()


def test_the_presence_of_a_node_is_free_when_it_has_gone(job):
    job.start_host("node1")
    two = job.start("node2")
    job.wait_for_world("node1", "node2")
    with RawClient(job.port) as first, RawClient(job.port) as second:
        gone = presence_of(first, "node2")
        two.kill()
        three = job.start("node2")
        world = job.wait_for_world("node1", "node2")
        assert presence_of(first, "node2") != gone
        own = gone.rsplit(b"/", 1)[0] + b"/node9_9_9"
        first.set(own, b"running")
        assert first.get(own) == b"running"
        second.set(own, b"other")
        assert second.get(own) == b"running"
        first.send(request(DELETE, own))
        assert first.receive_number() == 1
        second.set(own, b"other")
        assert second.get(own) == b"other"
    world.end()
    assert three.finish().status == 0
    assert job.succeeds()
