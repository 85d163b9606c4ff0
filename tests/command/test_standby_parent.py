# SPDX-License-Identifier: BSD-3-Clause
"""One process of a node imports everything, and forks the standby workers: what they are, and what becomes of them."""

import os
import signal

import pytest

from support.standby_jobs import WAITING, WORKER, Job, exists, importing, kill, name_of, pids_below, ready_job
from support.standby_programs import write

SEPARATE = "each standby worker imports by itself, since one parent cannot fork them: "
ANEW = "the parent of standby workers is made anew"


def with_library(scratch, **modules):
    """The words of a job whose workers import these."""
    write(scratch / "lib" / "site-packages", {f"{name}.py": text for name, text in modules.items()})
    script = "".join(f"import {name}\n" for name in modules) + WORKER
    return {"script": script, "PYTHONPATH": scratch / "lib" / "site-packages"}


def next_attempt(job, number, workers):
    """Kills a worker. Returns the workers of the next attempt, which are those that waited."""
    spares = job.spares()
    assert len(spares) == job.workers
    kill(workers[0]["pid"])
    told = job.attempt(number)
    assert sorted(line["pid"] for line in told) == spares, job.running.err()
    return told


def end(job, attempt):
    ended = job.end(attempt)
    assert ended.status == 0, ended
    return ended


def test_each_attempt_has_standby_workers_of_the_same_parent(muster, scratch):
    job, workers, _ = ready_job(muster, scratch)
    (parent,) = job.parents()
    for attempt in 1, 2, 3:
        job.wait_until_ready(attempt)
        workers = next_attempt(job, attempt, workers)
        assert job.parents() == [parent]
        assert {line["parent"] for line in workers} == {job.running.pid}
        assert all(line["session"] == line["pid"] for line in workers)
    end(job, 3)
    assert not exists(parent)


def test_a_worker_that_was_forked_is_what_one_is_that_was_not(muster, scratch):
    look = """
import os
def lines(path):
    words = open("/proc/self/" + path).read().split("\\0")
    return sorted(word for word in words if word and not word.startswith("MUSTER_"))
names = sorted(os.environ)
status = [line for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Cpus", "Umask", "Threads", "NoNewPrivs"))]
told = [lines("cmdline"), [line.partition("=")[0] for line in lines("environ")], names, "".join(status), os.nice(0)]
told += [open("/proc/self/comm").read(), os.getpgid(0) == os.getpid(), open("/proc/self/oom_score_adj").read()]
shown = dict(line.split("=", 1) for line in lines("environ"))
assert [shown[name] for name in ("RANK", "LOCAL_RANK")] == [os.environ["RANK"], os.environ["LOCAL_RANK"]], shown
print("look", told, flush=True)
"""
    job, workers, _ = ready_job(muster, scratch, script=look + WORKER, PYTHONPATH=scratch)
    next_attempt(job, 1, workers)
    looks = [line for line in end(job, 1).out.splitlines() if line.startswith("look")]
    assert len(looks) == 4 and len(set(looks)) == 1, looks


def test_generators_of_libraries_are_seeded_anew_in_each_worker(muster, scratch):
    """They stand for NumPy and PyTorch, which have seeds of the whole process."""
    drawing = "import os\nvalue = None\ndef seed():\n    global value\n    value = os.urandom(8).hex()\nseed()\n"
    write(scratch / "lib" / "site-packages", {
        "numpy/__init__.py": "", "numpy/random.py": drawing, "torch.py": "import numpy.random as default_generator\n"})
    script = "import numpy.random, torch, random, uuid, sys\n" + WORKER
    tell = "print('draw', numpy.random.value, random.random(), uuid.uuid4(), file=sys.stderr, flush=True)\n"
    script = script.replace("line = ", tell + "line = ")
    job, workers, _ = ready_job(muster, scratch, script=script, PYTHONPATH=scratch / "lib" / "site-packages")
    for attempt in 1, 2:
        job.wait_until_ready(attempt)
        workers = next_attempt(job, attempt, workers)
    drawn = [line.split()[1:] for line in end(job, 2).err.splitlines() if line.startswith("draw ")]
    assert len(drawn) == 6
    assert all(len(set(values)) == 6 for values in zip(*drawn)), drawn


def test_without_a_parent_each_standby_worker_imports_by_itself(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, "--standby-parent", "off")
    assert job.parents() == [] and job.said(SEPARATE) == 0
    next_attempt(job, 1, workers)
    end(job, 1)


# A thread of C, which Python knows nothing of, as a pool of OpenMP is one. A child of the process would wait for it.
POOL = """
import ctypes
c, thread = ctypes.CDLL(None), ctypes.c_ulong()
c.pthread_create(ctypes.byref(thread), None, c.pause, None)
"""


def test_where_a_library_has_threads_each_standby_worker_imports_by_itself(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, **with_library(scratch, pool=POOL))
    assert job.said(SEPARATE + "1 of its threads do not end before a fork (--standby-parent)") == 1
    assert job.parents() == []
    next_attempt(job, 1, workers)
    end(job, 1)


def test_where_ranks_differ_in_more_than_their_number_each_standby_worker_imports_by_itself(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, "--virtual-local-rank", CUDA_VISIBLE_DEVICES="4,5")
    assert job.said(SEPARATE + "CUDA_VISIBLE_DEVICES is not the same for all local ranks (--standby-parent)") == 1
    next_attempt(job, 1, workers)
    end(job, 1)


@pytest.mark.parametrize("name, text, reason", [
    ("reads_rank", "import os\nos.environ.get('LOCAL_RANK')\n", "reads_rank reads LOCAL_RANK while it is imported"),
    ("keeps", "import os\nOWN_PID = os.getpid()\n", "keeps keeps the number of its process in OWN_PID"),
])
def test_what_belongs_to_one_process_is_not_imported_for_all(muster, scratch, name, text, reason):
    job, workers, _ = ready_job(muster, scratch, **with_library(scratch, **{name: text}))
    said = f"the parent of standby workers would not be what a worker is: {reason}; 1 module(s) wait"
    assert job.said(said) == 1
    assert len(job.parents()) == 1
    next_attempt(job, 1, workers)
    end(job, 1)


def test_a_parent_that_is_killed_costs_nothing_but_another_one(muster, scratch):
    job, workers, spares = ready_job(muster, scratch)
    (parent,) = job.parents()
    kill(parent)
    job.wait_for(lambda: job.said(ANEW + ": it has ended by signal 9") == 1)
    assert job.spares() == spares or set(spares) < set(job.spares()), "the new one is among them until it is ready"
    job.wait_for(lambda: len(job.parents()) == 1 and job.parents() != [parent])
    workers = next_attempt(job, 1, workers)
    job.wait_until_ready(2)
    next_attempt(job, 2, workers)
    end(job, 2)


def test_a_parent_that_is_killed_before_it_forks_costs_nothing_but_another_one(muster, scratch):
    job, workers, _ = ready_job(muster, scratch)
    (parent,) = job.parents()
    kill(parent, signal.SIGSTOP)
    workers = next_attempt(job, 1, workers)
    job.wait_for(lambda: job.said("started from standby: 2 of 2") == 1)
    assert job.spares() == []
    kill(parent)
    job.wait_until_ready(2)
    next_attempt(job, 2, workers)
    end(job, 2)


def test_a_parent_that_is_killed_while_it_learns_costs_nothing_but_another_one(muster, scratch):
    later = "import sys\nsys.path.append('lib/site-packages')\n" + WORKER + "    if os.path.exists('more'):\n        import later\n"
    write(scratch / "lib/site-packages", {"later.py": "".join(f"import later_{number}\n" for number in range(25))})
    write(scratch / "lib/site-packages", {f"later_{number}.py": "" if number else WAITING for number in range(25)})
    job, workers, spares = ready_job(muster, scratch, script=later, PYTHONPATH=scratch / "lib/site-packages")
    (parent,) = job.parents()
    (scratch / "slow").write_text("")
    (scratch / "more").write_text("")
    job.wait_for(lambda: importing(scratch))
    assert importing(scratch) == [parent] and job.spares() == spares, "only the parent learns"
    kill(parent)
    job.wait_for(lambda: len(importing(scratch)) == 2)
    (scratch / "more").unlink()
    (scratch / "slow").unlink()
    job.wait_for(lambda: job.said("standby workers have imported what workers did since: ") >= 1)
    job.wait_for(lambda: len(job.parents()) == 1 and len(job.spares()) == 2)
    next_attempt(job, 1, workers)
    end(job, 1)


def test_an_agent_that_is_killed_leaves_no_parent(muster, scratch):
    job, workers, spares = ready_job(muster, scratch)
    everybody = {*job.parents(), *spares, *(line["pid"] for line in workers)}
    assert len(everybody) == 5
    kill(job.running.pid)
    job.running.process.wait()
    job.running.wait_until(lambda: not any(map(exists, everybody)), "nobody is left", 60)


def test_what_was_printed_while_importing_comes_first_in_each_worker(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, **with_library(scratch, talks="print('it talks', flush=True)\n"))
    next_attempt(job, 1, workers)
    assert end(job, 1).out.count("it talks") == 4


def test_a_standby_worker_has_the_name_of_its_program(muster, scratch):
    job, workers, spares = ready_job(muster, scratch)
    assert {name_of(pid) for pid in spares} == {name_of(line["pid"]) for line in workers}
    assert set(job.parents()) < pids_below(job.running.pid)
    assert os.path.realpath(f"/proc/{spares[0]}/exe") == os.path.realpath(f"/proc/{workers[0]['pid']}/exe")
    end(job, 0)
