# SPDX-License-Identifier: BSD-3-Clause
"""What a standby worker takes from the workers beside which it imports, and that nothing of it stays with it."""

import ctypes
import os
import re
import struct

import pytest

from support.standby_jobs import SLOW, WORKER, Job, kill

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275, "riscv64": 275}.get(os.uname().machine)


def niceness(pid):
    """Of the session's scheduling group."""
    try:
        with open(f"/proc/{pid}/autogroup") as file:
            return int(re.search(r"nice (-?\d+)", file.read())[1])
    except (OSError, TypeError):
        return None


def slice_of(pid):
    """How long the process may keep a CPU that another one wants, in ns; 0: the kernel does not say."""
    if SCHED_GETATTR is None:
        return 0
    attributes = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None).syscall(SCHED_GETATTR, pid, attributes, len(attributes), 0) != 0:
        return 0
    return struct.unpack("IIQiIQQQ", attributes.raw)[5]


@pytest.fixture
def warming(muster, scratch):
    """A job whose standby worker imports until the file `slow` is gone; its worker and its standby worker."""
    (scratch / "libraries").mkdir()
    (scratch / "libraries" / "slowly.py").write_text(SLOW)
    script = "import sys\nsys.path.append('libraries')\nimport slowly\nopen('slow', 'w').close()\n" + WORKER
    job = Job(muster, scratch, workers=1, script=script, PYTHONPATH=scratch / "libraries")
    worker = job.attempt(0)[0]["pid"]
    job.wait_for(lambda: len(job.spares()) == 1)
    return job, worker, job.spares()[0]


def go_through(job, scratch, worker, spare):
    """Lets the standby worker become the worker."""
    (scratch / "slow").unlink()
    job.wait_until_ready()
    kill(worker)
    assert [line["pid"] for line in job.attempt(1)] == [spare]


def test_a_standby_worker_has_a_low_priority_while_it_imports(scratch, warming):
    job, worker, spare = warming
    usual = niceness(worker)
    if usual is None:
        pytest.skip("this kernel has no scheduling group for each session")
    job.wait_for(lambda: niceness(spare) == 16)
    go_through(job, scratch, worker, spare)
    assert niceness(spare) == usual
    assert job.end(1).status == 0


def test_a_standby_worker_gives_up_a_cpu_at_once_while_it_imports(scratch, warming):
    job, worker, spare = warming
    usual = slice_of(worker)
    if usual <= 100_000:
        pytest.skip("this kernel has no slices that a process can choose, or they are the shortest")
    job.wait_for(lambda: slice_of(spare) == 100_000)
    go_through(job, scratch, worker, spare)
    assert slice_of(spare) == usual
    assert job.end(1).status == 0
