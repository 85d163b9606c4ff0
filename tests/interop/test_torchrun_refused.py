# SPDX-License-Identifier: BSD-3-Clause
"""torchrun's launcher comes to a job whose store moves from node to node: it is told why it cannot take part."""

import json

import pytest

from support.nodes import Job

pytestmark = pytest.mark.timeout(600)
PATIENCE = 240


def test_torchrun_is_told_why_it_cannot_be_in_a_job_with_a_register(muster, peer, scratch):
    register = scratch / "register"
    register.mkdir()
    job = Job(muster, "2", "--rdzv-backend", "dir", path=register)
    job.nodes("127.0.0.1", "127.0.0.2")
    world = job.wait_for_world("127.0.0.1", "127.0.0.2", timeout=PATIENCE)
    entry = json.loads((register / "muster-job/entry.000000000001").read_text(encoding="utf-8"))
    port = entry["addresses"].split()[0]
    stranger = muster.start(
        ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job",
         "--rdzv-conf", "is_host=0", "--local-addr", "127.0.0.3", "--no-python", "true"],
        program=peer.torchrun,
    )  # fmt: skip
    end = stranger.finish(PATIENCE)
    assert end.status == 1, end.err
    assert "this job's nodes have to be Muster's" in end.err and "--rdzv-backend c10d" in end.err, end.err
    assert any("it is a node of torchrun's" in node.err() for node in job.started), job.tell()
    world.end()
    assert job.succeeds(PATIENCE)
