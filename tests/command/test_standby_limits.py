# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers where the kernel refuses processes or memory (cgroups): the job runs as it does without them."""

import pytest

from support.cgroups import cgroup
from support.standby_jobs import WORKER, Job, exists, kill, ready_job
from support.standby_programs import write

MEBIBYTE = 1 << 20
# A library that takes 200 MiB in whatever imports it ahead.
LARGE = "import os\nif 'muster-standby' in os.readlink('/proc/self/fd/1'):\n    held = b'x' * (200 << 20)\n"
# Workers that import it when they may, and of which one takes 200 MiB later.
GROWING = """
import os, time
while not os.path.exists("import"):
    time.sleep(0.01)
import large
""" + WORKER + """
    if os.path.exists("grow") and environment["RANK"] == "0" and "grown" not in globals():
        grown = b"x" * (200 << 20)
        open("grew", "w").close()
"""


def restarts(job, workers, attempt):
    """A worker is killed, and all run again."""
    kill(workers[0]["pid"])
    workers = job.attempt(attempt)
    job.wait_for(lambda: job.said("started from standby: ") == attempt)
    return workers


def end(job, attempt):
    ended = job.end(attempt)
    assert ended.status == 0, ended


@pytest.mark.parametrize("room", range(2, 6))
def test_where_hardly_a_process_may_be_started_workers_are_started_all_the_same(muster, scratch, room):
    """Two of these the agent itself may need at a restart, with and without standby workers."""
    with cgroup("pids") as group:
        job = Job(muster, scratch, "--standby-after", 1, before=group.entrance())
        workers = job.attempt(0)
        group.limit(group.usage() + room)
        job.wait_for(lambda: job.said("could not be started") or job.said("standby workers ready") or job.said("it cannot fork"))
        workers = restarts(job, workers, 1)
        restarts(job, workers, 2)
        end(job, 2)


def test_auto_makes_none_where_few_processes_are_left(muster, scratch):
    with cgroup("pids") as group:
        job = Job(muster, scratch, workers=1, standby="auto", before=["taskset", "--cpu-list", "0,1", *group.entrance()])
        workers = job.attempt(0)
        group.limit(2 * group.usage() - 1)
        job.wait_for(lambda: job.said("less than half of the processes of a cgroup are left (pids.max)") or job.spares())
        job.wait_for(lambda: job.said("less than half of the processes of a cgroup are left (pids.max)"))
        restarts(job, workers, 1)
        end(job, 1)


def test_a_parent_for_which_there_is_no_memory_is_ended_and_the_job_runs_on(muster, scratch):
    write(scratch / "lib/site-packages", {"large.py": LARGE})
    with cgroup("memory") as group:
        job = Job(muster, scratch, script=GROWING, PYTHONPATH=scratch / "lib/site-packages", before=group.entrance())
        job.wait_for(lambda: len(job.spares()) == 2)  # which are workers, but have not told yet
        group.limit(group.usage() + 100 * MEBIBYTE)
        (scratch / "import").touch()
        workers = job.attempt(0)
        job.wait_for(lambda: job.said("it has ended by signal 9"))
        assert all(exists(worker["pid"]) for worker in workers)
        restarts(job, workers, 1)
        end(job, 1)


def test_who_waits_is_ended_first_where_a_worker_takes_the_memory(muster, scratch):
    write(scratch / "lib/site-packages", {"large.py": LARGE})
    (scratch / "import").touch()
    with cgroup("memory") as group:
        job, workers, spares = ready_job(muster, scratch, script=GROWING, PYTHONPATH=scratch / "lib/site-packages", before=group.entrance())
        (parent,) = job.parents()
        group.limit(group.usage() + 100 * MEBIBYTE)
        (scratch / "grow").touch()
        job.wait_for(lambda: (scratch / "grew").exists())
        assert all(exists(worker["pid"]) for worker in workers)
        assert not all(map(exists, [parent, *spares]))
        job.wait_for(lambda: job.said("it has ended by signal 9"))
        restarts(job, workers, 1)
        end(job, 1)
