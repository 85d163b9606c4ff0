# SPDX-License-Identifier: BSD-3-Clause
"""A real GPU, and who uses it."""

import os
import pathlib
import subprocess
import sys

import pytest

CONTROL_DEVICE = "/dev/nvidiactl"
DEVICES = "/dev/nvidia"


def ask(*query):
    """What the driver answers, a line for each device or process."""
    command = ["nvidia-smi", *query, "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def opened_devices(pid):
    """Devices of a GPU that a process has open or mapped. Without any it can have no context there."""
    found = set()
    process = pathlib.Path("/proc", str(pid))
    for descriptor in (process / "fd").iterdir():
        try:
            found.add(os.readlink(descriptor))
        except FileNotFoundError:  # closed meanwhile
            continue
    found.update(line.split()[-1] for line in (process / "maps").read_text().splitlines())
    return {name for name in found if name.startswith(DEVICES)}


class Gpu:
    def __init__(self, python):
        self.python = python

    def count(self):
        return len(self.uuids())

    def uuids(self):
        return ask("--query-gpu=uuid")

    def users(self):
        """Pids of the processes that have a context."""
        return {int(pid) for pid in ask("--query-compute-apps=pid")}

    def used_memory(self):
        """MiB of the first device."""
        return int(ask("--query-gpu=memory.used")[0])


def find_gpu():
    """The Gpu, or the reason why there is none."""
    if not pathlib.Path(CONTROL_DEVICE).exists():
        return f"no NVIDIA GPU: there is no {CONTROL_DEVICE}"
    python = os.environ.get("GPU_PYTHON", sys.executable)
    probe = "import torch; torch.ones(1, device='cuda')"
    end = subprocess.run([python, "-c", probe], capture_output=True, text=True)
    if end.returncode != 0:
        why = (end.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"{python} does not compute on the GPU ({why}); set GPU_PYTHON"
    return Gpu(python)


def require_gpu():
    found = find_gpu()
    if not isinstance(found, Gpu):
        pytest.skip(found)
    return found
