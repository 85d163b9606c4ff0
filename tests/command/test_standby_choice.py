# SPDX-License-Identifier: BSD-3-Clause
"""When there are standby workers and when there are none: --standby auto, and jobs without restarts."""

import os
import re
import sys

import pytest

from support.binary import ROOT
from support.network import require_network
from support.ports import free_port
from support.standby_jobs import AFTER, PARENT, WORKER, Job, kill, name_of, pids_below, read_story
from support.store import wait_until

NONE = "there are no standby workers"


def runs_cold(job):
    """The job has no standby worker, and its next attempt is started the ordinary way."""
    first = job.attempt(0)
    kill(first[0]["pid"])
    job.attempt(1)
    end = job.end(1)
    assert end.status == 0, end
    assert "started from standby" not in end.err
    assert "standby workers ready" not in end.err


def two_cpus():
    """Pins whoever calls to two CPUs; skips where there is one."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("this test needs two CPUs")
    return ["taskset", "--cpu-list", ",".join(map(str, cpus))]


def test_auto_makes_standby_workers_where_there_are_two_cpus_for_each_worker(muster, scratch):
    job = Job(muster, scratch, workers=1, standby="auto", before=two_cpus())
    first = job.attempt(0)
    job.wait_until_ready()
    kill(first[0]["pid"])
    job.attempt(1)
    job.wait_for(lambda: job.said("started from standby: 1 of 1 workers") == 1)
    assert job.end(1).status == 0
    assert job.said(NONE) == 0


def test_auto_makes_none_where_workers_need_more_than_half_the_cpus(muster, scratch):
    job = Job(muster, scratch, workers=2, standby="auto", before=two_cpus())
    job.wait_for(lambda: job.said(NONE))
    assert job.said("--standby auto: there are no standby workers, since 2 worker(s) on 2 CPU(s) leave less") == 1
    runs_cold(job)


@pytest.mark.parametrize("standby, times", [("auto", 0), ("on", 1)])
def test_there_are_none_where_workers_are_never_started_again(muster, scratch, standby, times):
    job = Job(muster, scratch, workers=1, restarts=0, standby=standby, before=two_cpus())
    job.attempt(0)
    assert job.said("there are no standby workers: with --max-restarts 0 and a fixed number of nodes") == times
    assert job.said(NONE) == times
    assert job.end(0).status == 0


def test_a_job_that_may_restart_has_standby_workers_by_default(muster, scratch):
    """Nothing is said of them at the default level of the log."""
    (scratch / "worker.py").write_text(WORKER)
    words = [*two_cpus(), muster.binary, "run", "--standalone", "--standby-after", AFTER, "--nproc-per-node", 1, "--max-restarts", 2,
             "--event-log-handler", "file:events"]
    running = muster.start([*words[1:], "worker.py"], program=words[0], env={"PYTHON_EXEC": sys.executable, "OMP_NUM_THREADS": "1"})
    events = scratch / "events"
    wait_until(lambda: events.exists() and "standby.ready" in events.read_text(), 100)
    wait_until(lambda: len(pids_below(running.pid)) == 3, 100)  # what forks one may be about to end
    (worker,) = read_story(scratch, 0)
    waiting = [pid for pid in pids_below(running.pid) if pid != worker["pid"] and name_of(pid) != PARENT]
    kill(worker["pid"])
    wait_until(lambda: read_story(scratch, 1), 100)
    assert [line["pid"] for line in read_story(scratch, 1)] == waiting
    (scratch / "end.1").touch()
    end = running.finish()
    assert end.status == 0 and "standby" not in end.err, end


def test_auto_makes_none_for_a_program_that_may_not_wait(muster, scratch):
    end = muster.run(
        ["run", "--standalone", "--standby", "auto", "--max-restarts", "1", "--no-python", "true"],
        env={"LOGLEVEL": "INFO"},
    )
    assert end.status == 0, end
    assert "--standby auto: there are no standby workers, since the program is not Python" in end.err


SCARCE = "there are no standby workers while they would take more than 1/20 of the memory"


def with_memory(scratch, mebibytes):
    """What has the machine seem to have so much left."""
    require_network()
    (scratch / "meminfo").write_text(f"MemTotal: 10000000 kB\nMemFree: 100000 kB\nMemAvailable: {mebibytes << 10} kB\n")
    return [*two_cpus(), "unshare", "--mount", "sh", "-ec", 'mount --bind meminfo /proc/meminfo; exec "$@"', "sh"]


def restarts_cold(job, reason):
    kill(job.attempt(0)[0]["pid"])
    job.attempt(1)
    end = job.end(1)
    assert end.status == 0, end
    assert f"started from standby: 0 of 1 workers; cold: local rank 0 ({reason})\n" in end.err


def test_auto_begins_none_where_they_may_take_too_much_of_the_memory(muster, scratch):
    """Before one has been ready nobody knows how much that is: 1/20 of 2,000 MiB is too little for what PyTorch takes."""
    job = Job(muster, scratch, workers=1, standby="auto", before=with_memory(scratch, 2000))
    job.attempt(0)
    job.wait_for(lambda: job.said(SCARCE))
    restarts_cold(job, "none: memory or processes are short")
    assert job.said("standby workers ready") == 0


def test_auto_ends_standby_workers_that_take_too_much_of_the_memory(muster, scratch):
    """These take 200 MiB, and 1/20 of 3,000 MiB is left for them."""
    (scratch / "lib/site-packages").mkdir(parents=True)
    (scratch / "lib/site-packages/large.py").write_text("held = b'x' * (200 << 20)\n")
    job = Job(muster, scratch, workers=1, standby="auto", before=with_memory(scratch, 3000), script="import large\n" + WORKER,
              PYTHONPATH=scratch / "lib/site-packages")
    job.attempt(0)
    job.wait_for(lambda: job.said("standby workers ready: 1 of 1, 2"))
    job.wait_for(lambda: job.said(SCARCE))
    job.wait_for(lambda: job.spares() == job.parents() == [])
    restarts_cold(job, "none: memory or processes are short")


# Two workers of which one fails. What they do first takes as long as small imports.
RESTARTED = """
import os, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(0.3)
    {meeting}
    if os.environ["RANK"] == "1":
        sys.exit(3)
    time.sleep(600)
"""
MEETING = """
    sys.path.append({tests!r})
    from support.store import RawClient
    with RawClient(int(os.environ["MASTER_PORT"])) as store:
        store.set(os.environ["RANK"].encode(), b"here")
"""
OFFER = "the new workers import everything anew; with --standby on, processes that have done so would take their places"


def offer(muster, meeting, *options, **environment):
    """What a job that restarts says of standby workers."""
    muster.script("worker.py", RESTARTED.format(meeting=meeting))
    end = muster.run(
        ["run", "--nproc-per-node", "2", "--max-restarts", "2", *options, "worker.py"],
        env={"PYTHON_EXEC": sys.executable, "LOGLEVEL": "INFO", **environment})
    assert end.status == 0, end
    return re.findall(f"{re.escape(OFFER)}.*", end.err)


@pytest.mark.parametrize("nodes", ["one node", "changing nodes"])
def test_a_job_without_standby_workers_says_once_what_they_would_save(muster, nodes):
    options = ["--standalone", "--standby", "off"]
    if nodes == "changing nodes":
        options = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}",
                   "--rdzv-conf", "last_call_timeout=1", "--standby", "off"]
    (line,) = offer(muster, MEETING.format(tests=str(ROOT / "tests")), *options)
    told = re.fullmatch(
        re.escape(OFFER) + r", and save most of the (\d+\.\d) s from the start of the old ones until one of them came to their store",
        line)
    assert told and float(told[1]) >= 0.3, line


def test_where_no_worker_has_asked_their_store_the_saving_has_no_figure(muster):
    assert offer(muster, "", "--standalone", "--standby", "off") == [OFFER]


def test_a_job_with_standby_workers_does_not_offer_them(muster):
    assert offer(muster, "", "--standalone", "--standby", "on") == []
