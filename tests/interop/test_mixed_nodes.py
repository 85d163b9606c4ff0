# SPDX-License-Identifier: BSD-3-Clause
"""Agents of both kinds, muster's and torchrun's, in one static job of real PyTorch workers."""

import pytest

from support.ports import free_port

ALL_REDUCE = """
import os, torch, torch.distributed as distributed
distributed.init_process_group("gloo")
total = torch.ones(1) * distributed.get_rank()
distributed.all_reduce(total)
with open(f"sum.{distributed.get_rank()}", "w") as out:
    print(int(total.item()), os.environ["WORLD_SIZE"], os.environ["GROUP_RANK"], file=out)
distributed.barrier()
"""


@pytest.mark.parametrize("kinds", [("muster", "torchrun"), ("torchrun", "muster"), ("muster", "muster")])
def test_nodes_of_both_kinds_train_together(muster, peer, scratch, kinds):
    script = muster.script("all_reduce.py", ALL_REDUCE)
    port = free_port()
    nodes = []
    for node, kind in enumerate(kinds):
        arguments = ["--nnodes", 2, "--node-rank", node, "--master-addr", "127.0.0.1", "--master-port", port,
                     "--nproc-per-node", node + 1, script]
        if kind == "muster":
            nodes.append(muster.start(["run", *arguments], env={"PYTHON_EXEC": peer.python}))
        else:
            nodes.append(muster.start(arguments, program=peer.torchrun))
    ends = [node.finish(120) for node in nodes]  # five interpreters import torch, beside other tests
    assert [end.status for end in ends] == [0, 0], ends
    told = [(scratch / f"sum.{rank}").read_text().split() for rank in range(3)]
    assert told == [["3", "3", "0"], ["3", "3", "1"], ["3", "3", "1"]]
