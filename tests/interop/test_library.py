# SPDX-License-Identifier: BSD-3-Clause
"""Programs of libmuster with PyTorch on the other side. `muster store` is one of them: what it does with PyTorch's
servers and files is in test_tcpstore.py and test_filestore.py."""

import os
import pathlib
import shutil
import subprocess

import pytest

from support.binary import ROOT

pytestmark = pytest.mark.timeout(120)

EXAMPLES = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")).resolve() / "examples"


@pytest.fixture
def pytorch_port(muster, peer, scratch):
    """PyTorch's own server, in a process of its own."""
    script = shutil.copy(ROOT / "bench" / "torch_store_server.py", scratch)
    server = muster.start([script], program=peer.python, stdin=subprocess.PIPE)
    server.wait_until(lambda: server.out().endswith("\n"), "PyTorch's port", timeout=60)
    yield int(server.out().split()[1])
    server.process.stdin.close()
    assert server.finish().status == 0


def test_workers_in_c_meet_in_pytorchs_store(muster, pytorch_port):
    workers = [
        muster.start([], program=EXAMPLES / "store_worker", env={
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": pytorch_port, "RANK": rank, "WORLD_SIZE": 3,
            "TORCHELASTIC_RESTART_COUNT": 0,
        })
        for rank in range(3)
    ]  # fmt: skip
    for rank, worker in enumerate(workers):
        end = worker.finish()
        assert (end.status, end.out) == (0, f"worker {rank}: the shares of 3 workers make 6\n"), end
