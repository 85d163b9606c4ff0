# SPDX-License-Identifier: BSD-3-Clause
"""Steps of real PyTorch that are counted without a line in the program (`--progress auto`), by its optimizers."""

import json
import shutil

import pytest

from support.binary import ROOT
from support.json_schema import check

pytestmark = pytest.mark.timeout(600)

# Rank 1 fails at step 12 of the first attempt. Each rank tells its losses bit for bit.
TRAINING = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(100 * attempt)
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for n in range(1, 21):
    loss = model(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
    if attempt == 0 and n == 12:
        dist.barrier()
        if rank == 1:
            os._exit(9)
with open("losses", "a") as file:
    file.write(f"{attempt} {rank} {losses}\\n")
dist.barrier()
dist.destroy_process_group()
"""


def train(muster, python, switch):
    """(entries, losses) of a job with standby workers whose hook counts, or without."""
    directory = muster.scratch / switch
    directory.mkdir()
    (directory / "worker.py").write_text(TRAINING)
    words = ["run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--standby", switch]
    words += ["--progress", "auto" if switch == "on" else "off", "--chronicle", directory / "events", "worker.py"]
    ran = muster.run(words, env={"PYTHON_EXEC": python, "OMP_NUM_THREADS": 1}, cwd=directory, timeout=300)
    assert ran.status == 0, ran
    entries = [check(json.loads(line), "event") for line in (directory / "events").read_text().splitlines()]
    losses = sorted((directory / "losses").read_text().splitlines())
    assert [line.split()[:2] for line in losses] == [["1", "0"], ["1", "1"]]
    return entries, losses


def steps_of(entries):
    return [(entry["step"], entry["source"]) for entry in entries if entry["kind"] == "progress"]


def test_steps_are_counted_and_losses_stay_the_same_bit_for_bit(muster, peer):
    entries, losses = train(muster, peer.python, "on")
    assert steps_of(entries) == [(1, "optimizer"), (12, "optimizer"), (1, "optimizer"), (20, "optimizer")]
    kinds = [entry["kind"] for entry in entries]
    assert kinds.count("training") == 2 and kinds.index("started") < kinds.index("training") < kinds.index("worker_failed")
    silent, the_same = train(muster, peer.forks.worker_python(), "off")
    assert losses == the_same
    assert steps_of(silent) == [] and "training" not in [entry["kind"] for entry in silent]


# What the hook counts into its page, where a process steps in each of these ways.
WAYS = """
import os
import torch
from muster_standby import steps

def play(way):
    fd = os.memfd_create("page")
    os.ftruncate(fd, steps.PAGE)
    page = memoryview(steps.borrow("mmap").mmap(fd, steps.PAGE))[steps.OFFSET:].cast("Q")
    page[steps.MARK] = steps.MAGIC
    steps.count_steps(fd)()
    model = torch.nn.Linear(8, 1)
    optimizer = (torch.optim.LBFGS if way == "LBFGS" else torch.optim.Adam)(model.parameters(), lr=0.01)
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    def loss_of(share):
        loss = model(share).square().mean()
        optimizer.zero_grad()
        loss.backward()
        return loss
    step = optimizer.step if way == "LBFGS" else lambda loss: optimizer.step()
    if way == "compiled":
        step = torch.compile(step, backend="eager")
    for n in range(20):
        share = torch.randn(16, 8)
        loss_of(share)
        step(lambda: loss_of(share))
        if way == "two optimizers":
            other.step()
    told = [page[at] for at in (steps.COUNT, steps.STEP, steps.FIRST_STEP, steps.SOURCE)]
    assert told == [20, 20, 1, steps.OPTIMIZER], (way, told)

for way in "plain", "two optimizers", "LBFGS", "compiled":
    pid = os.fork()
    if pid == 0:
        play(way)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, way
"""


def test_other_ways_to_step_count_the_first_optimizer_once_a_step(muster, peer, scratch):
    (scratch / "ways.py").write_text(WAYS)
    shutil.copytree(ROOT / "client/standby/muster_standby", scratch / "muster_standby")
    ran = muster.run([scratch / "ways.py"], program=peer.python, spawn=peer.spawn, env={"OMP_NUM_THREADS": 1}, timeout=300)
    assert ran.status == 0, ran
