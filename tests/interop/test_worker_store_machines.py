# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's workers at a store that serves only machines of the round's nodes, as it does by default where nodes
prove themselves: nodes of one network, and one behind address translation."""

import shutil

import pytest

from support.binary import ROOT
from support.nodes import wait_until

pytestmark = pytest.mark.timeout(600)

SCRIPTS = ROOT / "tests" / "interop" / "scripts"
TOKEN = {"MUSTER_JOB_TOKEN": "a secret of this job's nodes"}


@pytest.mark.parametrize("is_hidden", [False, True], ids=["in the network", "behind address translation"])
def test_pytorchs_workers_are_served_and_strangers_not(muster, peer, scratch, make_network, is_hidden):
    network = make_network(3)
    one, two, three = network.hosts
    second = network.hide(two) if is_hidden else two
    worker = shutil.copy(SCRIPTS / "meet_in_store.py", scratch)
    stranger = shutil.copy(SCRIPTS / "try_store.py", scratch)
    words = ["run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", "node1:29400", "--rdzv-id", "job"]
    env = {**TOKEN, "PYTHON_EXEC": peer.python, "OMP_NUM_THREADS": 1}
    nodes = [muster.start([*words, worker], on=host, env=env, cwd=scratch) for host in (one, second)]
    wait_until(
        lambda: all((scratch / f"met.{rank}").exists() for rank in (0, 1))
        or any(node.process.poll() is not None for node in nodes),
        "both workers in their store",
        timeout=200,
    )
    assert all((scratch / f"met.{rank}").exists() for rank in (0, 1)), [node.err() for node in nodes]
    address, port = (scratch / "met.0").read_text(encoding="ascii").rsplit(":", 1)
    words = [stranger, address, port]
    refused = muster.start([*words, 2], program=peer.python, on=three, cwd=scratch)
    served = muster.start([*words, 120], program=peer.python, on=second, cwd=scratch)
    assert refused.finish(timeout=200).out == "not served\n", refused.err()
    assert served.finish(timeout=200).out == "was here\n", served.err()
    assert f"client {three.address}:" in nodes[0].err()
    (scratch / "go").touch()
    assert [node.finish().status for node in nodes] == [0, 0], [node.err() for node in nodes]
