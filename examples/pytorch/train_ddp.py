# SPDX-License-Identifier: BSD-3-Clause
"""Elastic training with PyTorch's DistributedDataParallel. This is an ordinary script for torchrun.

    muster run --standalone --nproc-per-node 4 --max-restarts 3 examples/pytorch/train_ddp.py \
        --checkpoint /tmp/energy.pt

Every worker trains on its share of a data file. Worker 0 saves a checkpoint every few steps. When a
worker dies, the launcher starts the group again, and every worker continues from the checkpoint.
"""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "energy.csv"
STEPS_BETWEEN_CHECKPOINTS = 5


def load_share(path, rank, world_size):
    """Returns every world_size-th row of the file, as features and targets."""
    with open(path, encoding="ascii") as file:
        rows = [[float(cell) for cell in line.split(",")] for line in list(file)[1:]]
    share = torch.tensor(rows[rank::world_size])
    return share[:, :-1], share[:, -1:]


def make_model():
    torch.manual_seed(1973)
    return torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))


def save_checkpoint(path, step, model, optimizer):
    """Writes a new file and renames it, so that the file is the old one or the new one, never half of each."""
    temporary = f"{path}.new"
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, temporary)
    os.replace(temporary, path)


def load_checkpoint(path, model, optimizer):
    """Returns the step to continue from: 0 where there is no checkpoint."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def train(data, checkpoint, steps, before_step=lambda step: None):
    """Trains to the given step; returns the loss over all data."""
    features, targets = load_share(data, dist.get_rank(), dist.get_world_size())
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first_step = load_checkpoint(checkpoint, model, optimizer)
    parallel_model = DistributedDataParallel(model)
    if dist.get_rank() == 0:
        print(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}: from step {first_step}", flush=True)
    loss = torch.zeros(())
    for step in range(first_step, steps):
        before_step(step)
        loss = torch.nn.functional.mse_loss(parallel_model(features), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and (step + 1) % STEPS_BETWEEN_CHECKPOINTS == 0:
            save_checkpoint(checkpoint, step + 1, model, optimizer)
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


@record
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    loss = train(arguments.data, arguments.checkpoint, arguments.steps)
    if dist.get_rank() == 0:
        print(f"final loss {loss:.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
