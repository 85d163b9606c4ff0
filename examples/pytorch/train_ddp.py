# SPDX-License-Identifier: BSD-3-Clause
"""Elastic training with PyTorch's DistributedDataParallel. This is an ordinary script for torchrun.

    muster run --standalone --nproc-per-node 4 --max-restarts 3 examples/pytorch/train_ddp.py \
        --checkpoint /tmp/energy.pt

Every worker trains on its share of a data file. Worker 0 saves a checkpoint every few steps. When a
worker dies, the launcher starts the group again, and every worker continues from the checkpoint.

With `--standby on` the workers that are started again have done everything above the call of
wait() before: imports, reading the data, building the model. docs/standby.md says what may stand there.

It tells of its steps and checkpoints, so that `muster status` can show them, and what a restart has cost (docs/seeing.md).

With `--scratch 64M` a restart costs no step: one worker of each node keeps every step in memory, in
the directory MUSTER_SCRATCH, which outlives the workers. Where a node is new, all continue from the
checkpoint on disk. docs/checkpoints.md has more about it.
"""

import argparse
import os
import pathlib
import shutil
import threading

import torch
import torch._dynamo  # as DistributedDataParallel does when it is first used
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

try:
    from muster.progress import checkpoint as tell_checkpoint
    from muster.progress import step as tell_step
    from muster.standby import wait
except ImportError:  # without Muster's Python package there is nothing to wait for, and nobody to tell
    wait, tell_step, tell_checkpoint = bool, bool, bool

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "energy.csv"
STEPS_BETWEEN_CHECKPOINTS = 5  # on disk
STEPS_IN_MEMORY = 2  # nodes are at most one step apart when a worker dies


def load_rows(path):
    with open(path, encoding="ascii") as file:
        return torch.tensor([[float(cell) for cell in line.split(",")] for line in list(file)[1:]])


def make_model():
    torch.manual_seed(1973)
    return torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))


def prepare(data):
    """What is the same for all workers and all attempts: the rows of the data file, and the model before it is trained."""
    return load_rows(data), make_model()


def save_file(path, state):
    """Writes a new file and renames it, so that the file is the old one or the new one, never half of each."""
    temporary = f"{path}.new"
    torch.save(state, temporary)
    os.replace(temporary, path)


def copy_to_disk(source, path):
    """The same with what an open file holds. On a disk that may lose power it is written through first."""
    temporary = f"{path}.new"
    with source, open(temporary, "wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    os.replace(temporary, path)


class Checkpoints:
    """Where training continues. The state is the same on all workers, as DistributedDataParallel has it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)  # on a disk that all nodes share
        self.memory = pathlib.Path(os.environ["MUSTER_SCRATCH"]) if "MUSTER_SCRATCH" in os.environ else None
        self.copying = threading.Thread()

    def in_memory(self, step):
        return self.memory / f"step-{step}.pt"

    def steps_in_memory(self):
        files = self.memory.glob("step-*.pt") if self.memory else []
        return sorted(int(file.stem.removeprefix("step-")) for file in files)

    def common_step(self):
        """The last step that every worker finds in memory, or 0. All workers ask together, also those without any."""
        steps = self.steps_in_memory()
        last = torch.tensor(steps[-1] if steps else 0)
        dist.all_reduce(last, op=dist.ReduceOp.MIN)
        is_there = torch.tensor(int(last.item() in steps))
        dist.all_reduce(is_there, op=dist.ReduceOp.MIN)
        return last.item() if is_there.item() else 0

    def load(self, model, optimizer):
        """Returns the step to continue from: 0 where there is no checkpoint."""
        step = self.common_step()
        path = self.in_memory(step) if step > 0 else self.path
        if not path.exists():
            return 0
        state = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["step"]

    def save(self, step, model, optimizer):
        """After every step. Worker 0 writes to the disk, and worker 0 of each node to its memory."""
        is_due = dist.get_rank() == 0 and step % STEPS_BETWEEN_CHECKPOINTS == 0
        keeps_step = self.memory is not None and os.environ["LOCAL_RANK"] == "0"
        if not is_due and not keeps_step:
            return
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        if keeps_step and self.keep(step, state):
            if is_due:
                self.wait()
                source = open(self.in_memory(step), "rb")  # can be read to its end when it has been removed
                self.copying = threading.Thread(target=copy_to_disk, args=(source, self.path))
                self.copying.start()
        elif is_due:
            save_file(self.path, state)
        tell_checkpoint(step)

    def keep(self, step, state):
        """False where the memory has no room: then this node does without it."""
        try:
            save_file(self.in_memory(step), state)
        except (OSError, RuntimeError) as error:
            print(f"no checkpoints in memory any more: {error}", flush=True)
            self.forget(before=step + 1)
            self.in_memory(step).with_suffix(".pt.new").unlink(missing_ok=True)
            self.memory = None
            return False
        self.forget(before=step + 1 - STEPS_IN_MEMORY)
        return True

    def forget(self, before):
        for step in self.steps_in_memory():
            if step < before:
                self.in_memory(step).unlink()

    def wait(self):
        """Until the last copy is on the disk."""
        if self.copying.ident is not None:
            self.copying.join()


def train(rows, model, checkpoint, steps, before_step=lambda step: None):
    """Trains to the given step; returns the loss over all data."""
    share = rows[dist.get_rank() :: dist.get_world_size()]
    features, targets = share[:, :-1], share[:, -1:]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    checkpoints = Checkpoints(checkpoint)
    first_step = checkpoints.load(model, optimizer)
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
        tell_step(step + 1)
        checkpoints.save(step + 1, model, optimizer)
    checkpoints.wait()
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
    rows, model = prepare(arguments.data)
    wait()
    dist.init_process_group("gloo")
    loss = train(rows, model, arguments.checkpoint, arguments.steps)
    if dist.get_rank() == 0:
        print(f"final loss {loss:.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
