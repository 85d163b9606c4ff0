# SPDX-License-Identifier: BSD-3-Clause
"""Clients of PyTorch 2.0 and older, which have no handshake, and other numbers for the store's operations."""

import struct

from support.binary import ROOT
from support.store import RawClient, Server

RECORDED = ROOT / "tests/command/data/tcpstore_1.13.txt"
SET, GET, WAIT = 0, 2, 5  # their numbers there


def old_request(operation, *blobs):
    return bytes([operation]) + b"".join(struct.pack("<Q", len(blob)) + blob for blob in blobs)


def start_two_nodes(job):
    job.start_host("node1")
    job.start("node2")
    return job.wait_for_world("node1", "node2")


def old_client(port):
    return RawClient(port, greets=False)


def test_a_recorded_client_gets_what_its_own_server_gave(muster):
    lines = [line.split() for line in RECORDED.read_text(encoding="ascii").splitlines() if not line.startswith("#")]
    assert len(lines) > 40
    with old_client(Server(muster).port) as client:
        for direction, text in lines:
            said = bytes.fromhex(text)
            if direction == ">":
                client.send(said)
            else:
                assert client.receive(len(said)) == said, text


def test_what_an_old_client_waits_for_another_one_sets(muster):
    server = Server(muster)
    with old_client(server.port) as waiting, server.client() as other:
        waiting.send(bytes([WAIT]) + struct.pack("<QQ", 1, 2) + b"/k")
        other.set(b"/k", b"value")
        assert waiting.receive(1) == b"\x00"
        waiting.send(old_request(GET, b"/k"))
        assert waiting.receive_blob() == b"value"


def test_an_old_client_may_begin_with_a_set(muster):
    server = Server(muster)
    with old_client(server.port) as old, server.client() as other:
        for part in old_request(SET, b"/k", b"value"):
            old.send(bytes([part]))
        old.send(old_request(GET, b"/k"))
        assert old.receive_blob() == b"value"
        assert other.get(b"/k") == b"value"


def test_a_node_of_an_old_torchrun_is_turned_away_and_old_workers_are_not(make_job):
    job = make_job("2:2")
    world = start_two_nodes(job)
    with old_client(job.port) as worker:
        worker.send(old_request(SET, b"//worker/attempt_0/k", b"value") + old_request(GET, b"//worker/attempt_0/k"))
        assert worker.receive_blob() == b"value"
    with old_client(job.port) as node:
        node.send(old_request(GET, b"/torch.rendezvous.job"))
        assert node.is_closed()
    job.started[0].wait_for_log("a node of a torchrun older than 2.1")
    world.end()
    assert job.succeeds()


def test_where_nodes_have_a_token_old_workers_are_served_and_nobody_else(make_job):
    job = make_job("2:2", env={"MUSTER_JOB_TOKEN": "a secret of this job's nodes"})
    world = start_two_nodes(job)
    port = int(world.workers[0].store.rsplit(":", 1)[1])
    with old_client(port) as worker:
        worker.send(old_request(SET, b"/k", b"value") + old_request(GET, b"/k"))
        assert worker.receive_blob() == b"value"
    with old_client(job.port) as node:
        node.send(old_request(GET, b"/k")[:1])
        assert node.is_closed()
    job.started[0].wait_for_log("cannot prove that it is of this job")
    world.end()
    assert job.succeeds()
