# SPDX-License-Identifier: BSD-3-Clause
"""What the nodes of a job record of their rendezvous (--event-log-handler file:PATH), together in one file."""

import json

from support.nodes import wait_until


def told(scratch, node):
    """What a node has recorded of its rendezvous, in order: "_close: The node …"."""
    lines = (scratch / "events").read_text().splitlines()
    mine = [record for record in map(json.loads, lines) if record.get("hostname") == node]
    return [f"{record['name'].rsplit('.', 1)[1]}: {record['message']}" for record in mine]


def tells(scratch, node, words):
    return [line for line in told(scratch, node) if words in line]


def test_a_lost_node_and_the_new_round_are_recorded(make_job, scratch):
    """Of two records of torchrun's: who is gone, and that the round after it has begun."""
    job = make_job("1:3", "--event-log-handler", f"file:{scratch}/events", conf=["keep_alive_interval=1"])
    job.start_host("node1")
    lost = job.start("node2")
    job.wait_for_world("node1", "node2")
    wait_until(lambda: tells(scratch, "node2", "has sent a keep-alive heartbeat"), "a heartbeat's record")
    lost.kill()
    world = job.wait_for_world("node1")
    wait_until(lambda: tells(scratch, "node1", "since they are gone"), "the lost node's record")
    assert tells(scratch, "node1", "node(s) 'node2_")
    assert tells(scratch, "node1", "has joined round 1 of the rendezvous 'job' as rank 0 in a world of size 1.")
    assert tells(scratch, "node2", "has joined round 0 of the rendezvous 'job' as rank 1 in a world of size 2.")
    world.end()
    assert job.succeeds()
    assert told(scratch, "node1")[-1].endswith("has closed the rendezvous 'job'.")


def test_a_node_that_finds_no_store_records_why(make_job, scratch):
    job = make_job(2, "--event-log-handler", f"file:{scratch}/events", conf=["is_host=0", "join_timeout=1"])
    job.start("node1")
    assert job.statuses() == {"node1": 1}
    last = [json.loads(line) for line in (scratch / "events").read_text().splitlines() if "node_state" in line][-1]
    assert last["node_state"] == "FAILED"
    assert last["message"].startswith("RendezvousConnectionError: ")
    assert "refused" in last["error_trace"]
