# SPDX-License-Identifier: BSD-3-Clause
"""One process of a node imports everything, and forks the standby workers: what they are, and what becomes of them."""

import os
import signal
import subprocess
import sys

import pytest

from support.binary import ROOT
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
print(f"look {told}\\n", end="", flush=True)
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
    tell = "sys.stderr.write(f'draw {numpy.random.value} {random.random()} {uuid.uuid4()}\\n')\n"
    script = script.replace("line = ", tell + "line = ")
    job, workers, _ = ready_job(muster, scratch, script=script, PYTHONPATH=scratch / "lib" / "site-packages")
    for attempt in 1, 2:
        job.wait_until_ready(attempt)
        workers = next_attempt(job, attempt, workers)
    drawn = [line.split()[1:] for line in end(job, 2).err.splitlines() if line.startswith("draw ")]
    assert len(drawn) == 6
    assert all(len(set(values)) == 6 for values in zip(*drawn)), drawn


# Of a library and a program that writes into each page of what the library holds.
HOLDS = "held = bytearray(%d)\nheld[::4096] = b'x' * (len(held) // 4096)\n"
WRITES = "import holds\nassert set(holds.held[::4096]) == {120}\nholds.held[::4096] = b'y' * (len(holds.held) // 4096)\n"


def own_memory(pid):
    """Bytes that nobody else has in memory."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_Dirty"))


def test_pages_that_a_worker_had_to_copy_are_copied_for_the_next_ones_while_they_wait(muster, scratch):
    size = 8 << 20
    write(scratch / "lib/site-packages", {"holds.py": HOLDS % size})
    job, workers, spares = ready_job(muster, scratch, script=WRITES + WORKER, PYTHONPATH=scratch / "lib/site-packages")
    assert all(own_memory(pid) < size for pid in spares)
    for attempt in 1, 2:
        workers = next_attempt(job, attempt, workers)
        job.wait_for(lambda: len(job.spares()) == 2 and all(own_memory(pid) > size for pid in job.spares()))
    workers = next_attempt(job, 3, workers)  # and hold what they held
    end(job, 3)


# A parent whose child writes into 56 of 64 pages, of which it may list ten, and another one that has those copied.
LISTING = """
import ctypes, mmap, os, signal, sys
sys.path.insert(0, sys.argv[1])
from muster_standby import pages
size, pages.PAGES_MAXIMUM = mmap.PAGESIZE, 10
memory = mmap.mmap(-1, 64 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.write(b"a" * len(memory))
place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
known = pages.Pages(ctypes.CDLL(None))

def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            os._exit(1)
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    return pid

def writes():
    for at in range(8, 64):
        ctypes.memset(place + at * size, 98, 1)

def gets_them():
    known.make_own(os.pipe()[0])
    with open("/proc/self/pagemap", "rb") as table:
        entries = [entry[7] & pages.OWN for entry in iter_entries(table)]
    assert entries[20] and not entries[4], entries
    assert set(memory[:]) == {97}

def iter_entries(table):
    table.seek(place // size * 8)
    return [table.read(8) for _ in range(64)]

children = [child(writes)]
known.look(children[0])
assert known.copied == 10, known.copied
known.look(1 << 30)  # There is no such process.
known.add(1 << 16, 1, pages.POPULATE_WRITE)  # and no such page
known.add(place + 20 * size, 1, pages.POPULATE_WRITE)
children.append(child(gets_them))
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""


def test_pages_are_copied_up_to_a_limit_and_hold_what_they_held():
    done = subprocess.run([sys.executable, "-c", LISTING, ROOT / "client/standby"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done


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


# Runs before each fork. The process between the parent and the standby worker kills the parent, once, before its own fork.
# Python is told nothing of that: it would refuse a signal.
KILLER = """
import ctypes, os
def kill_parent():
    with open("/proc/%d/comm" % os.getppid()) as file:
        is_between = file.read() == "muster-parent\\n"
    if is_between and os.path.exists("armed"):
        ctypes.CDLL(None).unlink(b"armed")
        ctypes.CDLL(None).kill(os.getppid(), 9)
os.register_at_fork(before=kill_parent)
"""


def test_a_parent_that_is_killed_between_its_forks_costs_nothing_but_another_one(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, **with_library(scratch, killer=KILLER))
    (scratch / "armed").write_text("")
    workers = next_attempt(job, 1, workers)
    job.wait_for(lambda: job.said(ANEW + ": it has ended by signal 9") == 1)
    assert not (scratch / "armed").exists()
    job.wait_until_ready(2)
    job.wait_for(lambda: len(job.parents()) == 1 and len(job.spares()) == 2)
    next_attempt(job, 2, workers)
    end(job, 2)


# What the kernel says where a limit on processes is reached.
CANNOT = """
import os
def fork():
    raise BlockingIOError(11, "Resource temporarily unavailable")
if "muster-standby" in os.readlink("/proc/self/fd/1"):
    os.fork = fork
"""


def test_where_the_kernel_refuses_a_fork_each_standby_worker_imports_by_itself(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, **with_library(scratch, cannot=CANNOT))
    assert job.said(SEPARATE + "it cannot fork: Resource temporarily unavailable (--standby-parent)") == 1
    assert job.parents() == []
    next_attempt(job, 1, workers)
    end(job, 1)


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


# What a program sees of the process that it is in, each line behind the word `seen`, and written at once: workers share the file.
SEES = """
import asyncio, atexit, faulthandler, logging, multiprocessing, os, signal, subprocess, sys, threading, time, warnings
def see(*words):
    sys.stdout.write(" ".join(map(str, ["seen", os.environ["RANK"], *words])) + "\\n")
    sys.stdout.flush()
logging.basicConfig(stream=sys.stdout, format="seen %(name)s %(processName)s %(threadName)s %(message)s")
logging.getLogger("own").warning("logged by %s", os.environ["RANK"])
record = logging.getLogger("own").makeRecord("own", 30, "file", 1, "text", (), None)
see(record.process == os.getpid(), record.thread == threading.get_ident(), logging.root.handlers[0].level)
see(faulthandler.is_enabled(), threading.main_thread() is threading.current_thread(), threading.main_thread().native_id == os.getpid())
see(multiprocessing.current_process().name, multiprocessing.current_process().pid == os.getpid(), multiprocessing.parent_process())
see(multiprocessing.active_children(), [str(signal.getsignal(number)) for number in range(1, 32)], signal.getitimer(signal.ITIMER_REAL))
signal.signal(signal.SIGUSR1, lambda number, frame: see("signal", number))
os.kill(os.getpid(), signal.SIGUSR1)
for number, code in ((3, "raise SystemExit(3)"), (-6, "import os; os.abort()"), (1, "1 / 0")):
    see(subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == number)
for code in (5, 0):
    pid = os.fork()
    if pid == 0:
        os._exit(code)
    see(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
async def ask():
    process = await asyncio.create_subprocess_exec("echo", "asked", stdout=subprocess.PIPE)
    see((await process.communicate())[0])
asyncio.run(ask())
thread = threading.Thread(target=see, args=["thread"])
thread.start()
thread.join()
see(time.process_time() < 60, sys.flags, sys.warnoptions, warnings.filters, sys.gettrace(), sys.getrecursionlimit())
atexit.register(see, "at the exit, first")
atexit.register(see, "at the exit, last")
"""


def test_what_a_program_sees_of_its_process_is_the_same_in_a_worker_that_was_forked(muster, scratch):
    job, workers, _ = ready_job(muster, scratch, script=SEES + WORKER)
    job.wait_for(lambda: job.running.out().count("\nseen ") + job.running.out().startswith("seen ") == 28)
    cold = sorted(line for line in job.running.out().splitlines() if line.startswith("seen "))
    next_attempt(job, 1, workers)
    lines = end(job, 1).out.splitlines()
    both = [line for line in lines if line.startswith("seen ")]
    for rank in "01":
        exits = [line for line in both if line.startswith(f"seen {rank} at the exit")]
        assert exits == [f"seen {rank} at the exit, {which}" for which in ("last", "first")]
    assert sorted(line for line in both if "at the exit" not in line) == sorted(2 * cold)


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
