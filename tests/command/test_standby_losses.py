# SPDX-License-Identifier: BSD-3-Clause
"""Standby workers that are lost while they import for the first time, and agents that are lost meanwhile."""

import signal

import pytest

from support.standby_jobs import WAITING, WORKER, Job, exists, importing, kill
from support.standby_programs import write

SCRIPT = "import sys\nsys.path.append('libraries/site-packages')\nimport waiting\n" + WORKER


@pytest.fixture
def job(muster, scratch):
    """A job with a standby worker that imports until the file `slow` is gone."""
    (scratch / "slow").write_text("")
    write(scratch, {"libraries/site-packages/waiting.py": WAITING})
    job = Job(muster, scratch, script=SCRIPT, PYTHONPATH=scratch / "libraries/site-packages")
    job.first = job.attempt(0)
    job.wait_for(lambda: importing(scratch))
    (job.spare,) = importing(scratch)
    assert job.spares() == [job.spare], "one at a time"
    return job


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_standby_worker_that_is_lost_while_it_imports_is_not_missed(job, number):
    kill(job.spare, number)
    if number == signal.SIGKILL:
        job.wait_for(lambda: not exists(job.spare))
    kill(job.first[0]["pid"])
    second = job.attempt(1)
    assert job.spare not in {line["pid"] for line in second}
    assert job.said("does not answer") == 0
    end = job.end(1)
    assert end.status == 0, end
    assert len(job.story(1)) == 2
    assert not exists(job.spare)


def test_an_agent_that_is_killed_leaves_no_standby_worker_that_imports(job):
    everybody = [job.spare] + [line["pid"] for line in job.first]
    job.running.kill()
    job.running.wait_until(lambda: not any(map(exists, everybody)), "the end of all", 60)


def test_a_job_that_is_ended_by_a_signal_waits_for_no_import(job):
    kill(job.spare, signal.SIGSTOP)
    job.running.signal(signal.SIGTERM)
    end = job.running.finish()
    assert end.status == 1, end
    assert "stopped by SIGTERM" in end.err
    assert not exists(job.spare)
