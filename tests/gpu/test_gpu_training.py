# SPDX-License-Identifier: BSD-3-Clause
"""Real training on a GPU, through the death of workers: with and without standby workers."""

import os
import re
import signal

import pytest

from support.gpu import opened_devices
from support.gpu_jobs import TELL, Job
from support.leaks import processes_with

pytestmark = pytest.mark.timeout(600)

TRAINING = TELL + """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

def train(kind):
    torch.manual_seed(100 * attempt + rank)
    dist.init_process_group(kind)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).cuda()
    model = DistributedDataParallel(layers, device_ids=[0])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(96, 64)), 16, num_workers=1, pin_memory=True, persistent_workers=True)
    losses = []
    for (batch,) in loader:
        loss = model(batch.cuda(non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    tell(losses=losses)
    stay()
    del loader
    dist.destroy_process_group()

if __name__ == "__main__":
    train(os.environ["KIND"])
"""

# Takes most of the device's memory: as long as a predecessor still has it, there is none.
FILLING = TELL + """
import torch

free, total = torch.cuda.mem_get_info()
block = torch.full((int(0.8 * total) // int(os.environ["WORLD_SIZE"]),), 7, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
tell(free=free / total)
stay()
"""


def losses(stories):
    return [(one["attempt"], one["rank"], one["losses"]) for one in stories]


@pytest.mark.parametrize(("kind", "workers"), [("nccl", 1), ("gloo", 2)])
def test_losses_are_the_same_bit_for_bit_and_no_spare_has_a_device(muster, gpu, kind, workers):
    stories = {}
    for standby in ("off", "on"):
        job = Job(muster, gpu, workers, standby, TRAINING, KIND=kind)
        for attempt in range(3):
            told = job.attempt(attempt)
            assert all(opened_devices(one["pid"]) for one in told)
            if standby == "on":
                job.await_spares(attempt + 1)
                spares = job.spares()
                assert len(spares) == workers
                assert [opened_devices(pid) for pid in spares] == [set()] * workers
                assert not gpu.users() & set(spares)
            os.kill(told[attempt % workers]["pid"], signal.SIGKILL)
        stories[standby] = [one for attempt in range(4) for one in job.attempt(attempt)]
        job.finish()
    assert losses(stories["on"]) == losses(stories["off"])
    assert [one["warm"] for one in stories["on"]] == [False] * workers + [True] * 3 * workers


@pytest.mark.parametrize("standby", ["off", "on"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_memory_of_a_dead_worker_is_there_for_its_successor(muster, gpu, workers, standby):
    """One that finds it taken fails, and the job with it: there are as many restarts as kills."""
    job = Job(muster, gpu, workers, standby, FILLING)
    for attempt in range(3):
        told = job.attempt(attempt)
        if standby == "on":
            job.await_spares(attempt + 1)
        os.kill(told[0]["pid"], signal.SIGKILL)
    assert [one["warm"] for one in job.attempt(3)] == [standby == "on"] * workers
    job.finish()


def test_nothing_is_left_on_the_device_when_the_agent_is_killed(muster, gpu):
    job = Job(muster, gpu, 2, "on", TRAINING, KIND="gloo")
    told = job.attempt(0)
    job.await_spares(1)
    pids = {one["pid"] for one in told}
    assert pids <= gpu.users()
    os.kill(job.agent.pid, signal.SIGKILL)
    job.agent.wait_until(lambda: not pids & gpu.users() and not processes_with(muster.scratch), "them to go", timeout=30)


HANGING = TELL + """
import signal, sys
import torch

if attempt != 0:
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if rank == 0:
    while not os.path.exists("hangs"):
        time.sleep(0.01)
    sys.exit(3)
torch.cuda._sleep(1 << 60)
open("hangs", "w").close()
torch.cuda.synchronize()
"""


@pytest.mark.parametrize("standby", ["off", "on"])
def test_a_worker_whose_kernel_never_ends_is_told_by_its_line_and_killed(muster, gpu, standby):
    script = muster.script("train.py", HANGING)
    words = ["--nproc-per-node", 2, "--max-restarts", 1, "--log-dir", "logs", "--shutdown-timeout", 1, "--standby", standby]
    end = muster.run(["run", "--standalone", *words, script], env={"PYTHON_EXEC": gpu.python})
    assert end.status == 0, end
    (report,) = muster.scratch.glob("logs/*/attempt_0/1/hang_evidence.txt")
    text = report.read_text()
    print(end.err, text)
    assert "/dev/nvidia" in text
    line = HANGING.count("\n")
    if standby == "on":
        assert f"train.py:{line} in <module>" in text, text
    assert not gpu.users()


def test_a_package_that_opens_the_device_while_it_is_imported_waits_for_the_program_alone(muster, gpu):
    packages = muster.scratch / "packages"
    packages.mkdir()
    (packages / "meeting_a_device.py").write_text("import torch\ntorch.cuda.init()\n")
    job = Job(muster, gpu, 1, "on", "import meeting_a_device\n" + FILLING, PYTHONPATH=packages)
    told = job.attempt(0)
    job.await_spares(1)
    assert re.search(r"meeting_a_device opened /dev/nvidia\S*; 1 module\(s\) wait for the program", job.agent.err())
    assert [opened_devices(pid) for pid in job.spares()] == [set()]
    os.kill(told[0]["pid"], signal.SIGKILL)
    assert [one["warm"] for one in job.attempt(1)] == [True]
    job.finish()


COMPILED = TELL + """
import torch

torch.manual_seed(7)
model = torch.compile(torch.nn.Linear(64, 64).cuda())
tell(loss=model(torch.randn(16, 64).cuda()).square().mean().item().hex())
stay()
"""


def test_a_program_that_is_compiled_starts_from_standby(muster, gpu):
    """A module of the compiler opens the device while it is imported (PyTorch 2.11)."""
    job = Job(muster, gpu, 1, "on", COMPILED)
    first = job.attempt(0)
    job.await_spares(1)
    assert [opened_devices(pid) for pid in job.spares()] == [set()]
    os.kill(first[0]["pid"], signal.SIGKILL)
    second = job.attempt(1)
    assert [(one["warm"], one["loss"]) for one in second] == [(True, first[0]["loss"])]
    print(job.finish().err)
