# SPDX-License-Identifier: BSD-3-Clause
"""How many workers `--nproc-per-node gpu` starts, beside how many devices PyTorch sees, with a real driver."""

import os
import subprocess

import pytest

COUNT = "import torch; print(torch.cuda.device_count())"
# {uuid} and {start} stand for the first device's UUID and the first characters of it.
CHOICES = (
    None, "", "0", " 0 ", "+0", "0,0", "0,", ",0", "-1", "0,-1", "-1,0", "0,99", "99", "99,0", "0x0", "none", "NoDevFiles",
    "{uuid}", "{start}", "GPU-", "{uuid},{uuid}", "{uuid},0", "0,{uuid}", "{uuid},GPU-0000", "GPU-0000", "GPU-0000,{uuid}",
)  # fmt: skip


def environment(value):
    """This process's, with that choice of devices."""
    found = {name: text for name, text in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return found if value is None else {**found, "CUDA_VISIBLE_DEVICES": value}


@pytest.fixture(scope="module")
def counted(gpu):
    """{choice: (its value, the number of devices that PyTorch sees with it)}"""
    uuid = gpu.uuids()[0]
    values = {choice: choice and choice.format(uuid=uuid, start=uuid[:10]) for choice in CHOICES}
    probes = {
        choice: subprocess.Popen([gpu.python, "-c", COUNT], env=environment(value), stdout=subprocess.PIPE, text=True)
        for choice, value in values.items()
    }
    return {choice: (values[choice], int(probe.communicate()[0])) for choice, probe in probes.items()}


@pytest.mark.parametrize("choice", CHOICES)
def test_there_are_as_many_workers_as_pytorch_sees_devices(muster, counted, choice):
    value, seen = counted[choice]
    words = ["run", "--standalone", "--nproc-per-node", "gpu", "--no-python", "sh", "-c", "echo world=$WORLD_SIZE"]
    end = muster.run(words, env={"CUDA_VISIBLE_DEVICES": value})
    if seen == 0:
        assert end.status != 0 and "no such device is visible" in end.err, end
    else:
        assert end.status == 0 and end.out == f"world={seen}\n" * seen, end


def test_auto_counts_the_devices(muster, gpu):
    words = ["run", "--standalone", "--nproc-per-node", "auto", "--no-python", "sh", "-c", "echo world=$WORLD_SIZE"]
    assert muster.run(words).out == f"world={gpu.count()}\n" * gpu.count()


@pytest.mark.parametrize("binding", ["node", "socket", "exclusive", "core-complex"])
def test_workers_are_bound_to_the_same_cpus_as_by_torchrun(muster, gpu, binding):
    script = muster.script("show.py", "import os; print(os.environ['RANK'], sorted(os.sched_getaffinity(0)))\n")
    words = ["--standalone", "--nproc-per-node", gpu.count(), "--numa-binding", binding, script]
    ours = muster.run(["run", *words], env={"PYTHON_EXEC": gpu.python})
    theirs = muster.start(["-m", "torch.distributed.run", *words], program=gpu.python).finish()
    assert ours.status == 0 and theirs.status == 0, (ours, theirs)
    assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines()), (ours, theirs)
