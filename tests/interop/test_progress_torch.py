# SPDX-License-Identifier: BSD-3-Clause
"""Steps of real PyTorch that are counted without a line in the program (`--progress auto`), by its optimizers."""

import json

import pytest

from support.json_schema import check

pytestmark = pytest.mark.timeout(600)

# Rank 1 fails at step 12 of the first attempt. Each rank tells its losses bit for bit.
TRAINING = """
import os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(100 * attempt)
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.01)
other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
def loss_of(share):
    loss = model(share).square().mean()
    optimizer.zero_grad()
    loss.backward()
    return loss
step = {step}
losses = []
for n in range(1, 21):
    share = torch.randn(16, 8)
    loss = loss_of(share)
    step(lambda: loss_of(share))
    losses.append(loss.item().hex())
    {also}
    if attempt == 0 and rank == 1 and n == 12:
        dist.barrier()
        os._exit(9)
    elif attempt == 0 and n == 12:
        dist.barrier()
with open("losses", "a") as file:
    file.write("%d %d %s\\n" % (attempt, rank, " ".join(losses)))
dist.barrier()
dist.destroy_process_group()
"""


def train(muster, peer, folder, progress, optimizer="Adam", step="lambda loss: optimizer.step()", also="pass"):
    """(entries, losses) of a job whose standby workers' hook counts."""
    directory = muster.scratch / folder
    directory.mkdir()
    (directory / "worker.py").write_text(TRAINING.format(optimizer=optimizer, step=step, also=also))
    words = ["run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--standby", "on", "--progress", progress]
    ran = muster.run(
        [*words, "--chronicle", str(directory / "events"), "worker.py"],
        env={"PYTHON_EXEC": peer.python, "OMP_NUM_THREADS": 1}, cwd=directory, timeout=300,
    )
    assert ran.status == 0, ran
    entries = [check(json.loads(line), "event") for line in (directory / "events").read_text().splitlines()]
    losses = sorted((directory / "losses").read_text().splitlines())
    assert [line.split()[:2] for line in losses] == [["1", "0"], ["1", "1"]]
    return entries, losses


def steps_of(entries):
    return [(entry["step"], entry["source"]) for entry in entries if entry["kind"] == "progress"]


COUNTED = [(1, "optimizer"), (12, "optimizer"), (1, "optimizer"), (20, "optimizer")]


def test_steps_are_counted_and_losses_stay_the_same_bit_for_bit(muster, peer):
    entries, losses = train(muster, peer, "auto", "auto")
    assert steps_of(entries) == COUNTED
    kinds = [entry["kind"] for entry in entries]
    assert kinds.count("training") == 2 and kinds.index("started") < kinds.index("training") < kinds.index("worker_failed")
    silent, the_same = train(muster, peer, "off", "off")
    assert losses == the_same
    assert steps_of(silent) == [] and "training" not in [entry["kind"] for entry in silent]


@pytest.mark.parametrize(
    "how",
    [
        {"step": "torch.compile(lambda loss: optimizer.step(), backend='eager')"},
        {"also": "other.step()"},
        {"optimizer": "LBFGS", "step": "optimizer.step"},
    ],
    ids=["compiled", "two optimizers", "LBFGS"],
)
def test_other_ways_to_step_count_the_first_optimizer_once_a_step(muster, peer, how):
    entries, _ = train(muster, peer, "job", "auto", **how)
    assert steps_of(entries) == COUNTED
