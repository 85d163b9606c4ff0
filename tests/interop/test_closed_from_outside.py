# SPDX-License-Identifier: BSD-3-Clause
"""A rendezvous that somebody else closes, through PyTorch's own class, while the nodes work."""

import pathlib
import shutil
import subprocess

import pytest

from support.nodes import IMPATIENT

pytestmark = pytest.mark.timeout(120)

SCRIPT = pathlib.Path(__file__).parent / "scripts" / "close_rendezvous.py"


def close(peer, job):
    script = shutil.copy(SCRIPT, job.scratch)
    subprocess.run([peer.python, script, str(job.port), "job"], cwd="/tmp", check=True, timeout=60)


def wait_for_beats(node):
    """For longer than it takes until a node that gives no sign of life counts as stalled."""
    beats = node.err().count("rendezvous -> beat")
    node.wait_for_log("rendezvous -> beat", count=beats + 4)


@pytest.mark.parametrize("done_first", ["node1", "node2"])
def test_nodes_whose_rendezvous_is_closed_by_somebody_else_finish_their_work(make_job, peer, done_first):
    job = make_job(2, conf=IMPATIENT)
    host = job.start_host("node1")
    other = job.start("node2")
    world = job.wait_for_world("node1", "node2")
    close(peer, job)
    for node in (host, other):
        node.wait_for_log("the job's record was closed")
    wait_for_beats(other)
    last = "node2" if done_first == "node1" else "node1"
    world.of(done_first).end()
    wait_for_beats({"node1": host, "node2": other}[last])
    world.of(last).end()
    assert job.succeeds(), job.tell()
    assert "stalled" not in host.err() and "stalled" not in other.err()
