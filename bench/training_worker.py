# SPDX-License-Identifier: BSD-3-Clause
"""A worker for the benches: real training with DistributedDataParallel, which notes its own times.

    NOTES=FILE NODE=NAME PAUSE=SECONDS DEVICE=cpu|cuda:0 BACKEND=gloo|nccl training_worker.py
    WHAT NANOSECONDS NODE RANK WORLD_SIZE PID   (CLOCK_MONOTONIC; each appended with one write)

WHAT is `script` (the first line of this file), `group` (the process group is there), `first` (the first
step is done), then `step` after each further step of rank 0. Between two steps a worker sleeps for
PAUSE, as one whose accelerator computes. It trains until it is killed.
"""

import os
import time

started = time.monotonic_ns()
notes = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND)


def note(what, when):
    identity = [os.environ[name] for name in ("NODE", "RANK", "WORLD_SIZE")]
    os.write(notes, (" ".join([what, str(when), *identity, str(os.getpid())]) + "\n").encode())


note("script", started)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

LONGEST_LIFE = 900 * 10**9  # it ends then, even if its launcher and the bench are gone


def main():
    device = os.environ["DEVICE"]
    dist.init_process_group(os.environ["BACKEND"])
    note("group", time.monotonic_ns())
    torch.manual_seed(1973 + dist.get_rank())
    layers = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))
    model = DistributedDataParallel(layers.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pause = float(os.environ["PAUSE"])
    what = "first"
    while time.monotonic_ns() < started + LONGEST_LIFE:
        loss = model(torch.randn(32, 256).to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        next(model.parameters()).sum().item()  # until the step is done where it is computed
        if what == "first" or dist.get_rank() == 0:
            note(what, time.monotonic_ns())
        what = "step"
        time.sleep(pause)


main()
