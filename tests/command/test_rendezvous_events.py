# SPDX-License-Identifier: BSD-3-Clause
"""What the nodes of a job record of their rendezvous (--event-log-handler file:PATH), together in one file."""

import json
import re

from support.nodes import wait_until
from support.ports import free_port


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


def lone(muster, scratch, command):
    """What a node records of its rendezvous that can meet nobody."""
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job7", "--local-addr", "node1", "--max-restarts", 1]
    end = muster.run(["run", *options, "--event-log-handler", "file:events", "--no-python", "sh", "-c", command])
    return end, [re.sub(r"node1_\d+_0", "<node>", line) for line in told(scratch, "node1")][1:]


ATTEMPT = "next_rendezvous: The node '<node>' attempts to join the next round of the rendezvous 'job7'."
JOINED = "next_rendezvous: The node '<node>' has joined round {} of the rendezvous 'job7' as rank 0 in a world of size 1."
CLOSED = "_close: The node '<node>' has closed the rendezvous 'job7'."


def test_a_lone_node_records_every_round_and_its_end(muster, scratch):
    end, lines = lone(muster, scratch, 'test "$TORCHELASTIC_RESTART_COUNT" = 1')
    assert end.status == 0, end
    assert lines == [ATTEMPT, JOINED.format(0), ATTEMPT, JOINED.format(1), CLOSED]


def test_a_lone_node_that_is_stopped_closes_nothing(muster, scratch):
    end, lines = lone(muster, scratch, "kill $PPID; sleep 60")
    assert end.status == 1, end
    assert lines == [ATTEMPT, JOINED.format(0)]


def test_fixed_nodes_record_no_rendezvous(muster, scratch):
    end = muster.run(["run", "--master-port", free_port(), "--event-log-handler", "file:events", "--no-python", "true"])
    assert end.status == 0, end
    assert "node_state" not in (scratch / "events").read_text()
