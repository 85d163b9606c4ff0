# SPDX-License-Identifier: BSD-3-Clause
"""A worker that fails is known to fail while the kernel still takes its memory down: the others need not wait for that.

Its memory is large here, so that this takes long. What came first is seen in the agent's transcript.
"""

import platform
import re
import signal

import pytest

from support.standby_jobs import WORKER, Job, exists, kill

# The hook needs ctypes, and sees that it is there when something else is imported after it.
SCRIPT = """
import ctypes, colorsys
import os, signal, subprocess, sys, time
large = b"x" * (int(os.environ["LARGE_MIB"]) << 20) if os.environ["RANK"] == "0" else b""
ctypes.pythonapi.Py_IncRef(ctypes.py_object(large))  # The interpreter does not give it back when it ends.
""" + WORKER.rpartition("while not")[0] + """
asked = "asked." + environment["RANK"]
while not os.path.exists("end." + environment["TORCHELASTIC_RESTART_COUNT"]):
    if os.path.exists(asked):
        with open(asked) as file:
            text = file.read()
        os.unlink(asked)
        exec(text)
        open("done", "w").close()
    time.sleep(0.01)
"""
LARGE_MIB = 256


class Dying(Job):
    """A job whose workers do what they are asked for."""

    def __init__(self, muster, scratch, **keywords):
        settings = {"LARGE_MIB": LARGE_MIB, **keywords}
        super().__init__(muster, scratch, script=SCRIPT, LOGLEVEL="DEBUG", **settings)

    def ask(self, rank, what):
        """Not before it is there as a whole."""
        path = self.scratch / f"asked.{rank}"
        path.with_suffix(".new").write_text(what)
        path.with_suffix(".new").rename(path)

    def await_done(self):
        self.wait_for((self.scratch / "done").exists)
        (self.scratch / "done").unlink()

    def lines(self, *patterns):
        """Where each of these lines of the transcript is, which is there once."""
        places = []
        for pattern in patterns:
            found = [match.start() for match in re.finditer(pattern, self.running.err())]
            assert len(found) == 1, (pattern, found, self.running.err())
            places += found
        return places


@pytest.fixture
def job(muster, scratch):
    job = Dying(muster, scratch)
    job.first = job.attempt(0)
    job.wait_until_ready()
    return job


def check_early(job, rank, end, code, restart=1):
    """The failure of the rank was known before the kernel said that it is over, and counted once."""
    ending, signalled, over = job.lines(
        rf"running <- worker_ending rank={rank} {end}\n", r"stopping -> signal_workers 15\n",
        rf"stopping <- worker_exited rank={rank} {end}\n",
    )[-3:]
    assert ending < signalled < over
    assert job.said(f"failed (exitcode: {code}) local_rank: {rank}") == 1 == job.said("failed (exitcode: ")
    assert job.said("restarting the workers: ") == restart


@pytest.mark.parametrize("is_warm", [False, True], ids=["cold", "from standby"])
def test_the_others_are_told_to_end_before_a_killed_worker_is_gone(muster, scratch, is_warm):
    job = Dying(muster, scratch)
    for attempt in range(2 if is_warm else 1):
        workers = job.attempt(attempt)
        job.wait_until_ready(attempt + 1)
        before = len(job.running.err())
        kill(workers[0]["pid"])
        job.attempt(attempt + 1)
    told = job.running.err()[before:]
    places = [told.index(f"{line}\n") for line in (
        "running <- worker_ending rank=0 signal=9", "stopping -> signal_workers 15", "stopping <- worker_exited rank=0 signal=9",
    )]
    assert places == sorted(places)
    assert job.said("failed (exitcode: -9) local_rank: 0") == attempt + 1 == job.said("failed (exitcode: ")
    assert job.said(f"restart {attempt + 1} of 3") == 1
    end = job.end(attempt + 1)
    assert end.status == 0, end


FAILURES = {
    "leaves": ("os._exit(3)", "code=3", 3),
    "exits": ("sys.exit(1)", "code=1", 1),
    "raises": ("raise ValueError('wrong')", "code=1", 1),
    "aborts": ("import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()", "signal=6", -6),
    "is terminated": ("os.kill(os.getpid(), signal.SIGTERM)", "signal=15", -15),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_each_kind_of_failure_is_known_early(job, kind):
    what, end, code = FAILURES[kind]
    job.ask(0, what)
    job.attempt(1)
    check_early(job, 0, end, code)
    assert job.end(1).status == 0


def test_the_report_tells_a_failure_that_was_known_early_once(muster, scratch):
    job = Dying(muster, scratch, restarts=1)
    job.attempt(0)
    job.wait_until_ready()
    job.ask(0, "os._exit(3)")
    job.attempt(1)
    job.ask(0, "os._exit(5)")
    end = job.running.finish()
    assert end.status == 1, end
    assert end.err.count("worker_ending rank=0") == 2
    report = end.err.rpartition("Root Cause")[2]
    assert re.findall(r"\(local_rank: (\d)\)\n *exitcode +: (-?\d+)", report) == [("0", "5"), ("1", "-15")], end.err


def test_a_success_and_a_child_are_no_failure(job):
    job.ask(0, "subprocess.call([sys.executable, '-c', 'exit(3)'])\nif os.fork() == 0:\n    os._exit(3)\nos.wait()\n")
    job.await_done()
    assert job.said("worker_ending") == 0
    job.ask(0, "sys.exit(0)")
    job.wait_for(lambda: job.said("worker_exited rank=0 code=0"))
    end = job.end(0)
    assert end.status == 0, end
    assert end.err.count("worker_ending") == 0


def test_a_failure_is_known_early_after_children_have_ended(job):
    job.ask(0, "if os.fork() == 0:\n    sys.exit(3)\nos.wait()\n")
    job.await_done()
    job.ask(0, "os._exit(4)")
    job.attempt(1)
    check_early(job, 0, "code=4", 4)
    assert job.end(1).status == 0


def test_another_program_in_the_workers_place_ends_as_ever(job):
    job.ask(0, "os.execv(sys.executable, [sys.executable, '-c', 'import os; os._exit(4)'])")
    job.attempt(1)
    assert job.said("worker_ending") == 0
    assert job.said("running <- worker_exited rank=0 code=4\n") == 1
    assert job.end(1).status == 0


LIAR = """
(start,) = [int(line.partition("-")[0], 16) for line in open("/proc/self/maps") if "muster-standby-record" in line]
page = (ctypes.c_uint32 * 16).from_address(start)
for at, word in enumerate(page):
    page[at] = word | 0x40000000 if at < 2 else word
libc = ctypes.CDLL(None)
for at in range(2):
    libc.syscall(%d, ctypes.c_void_p(start + 4 * at), 1, 1 << 20, None, None, 0)
"""
FUTEX = {"x86_64": 202}.get(platform.machine(), 98)  # elsewhere the number that newer architectures share


def test_a_worker_that_lies_is_not_believed(job):
    job.ask(0, LIAR % FUTEX)
    job.await_done()
    assert job.said("worker_ending") == 0
    kill(job.first[0]["pid"])
    job.attempt(1)
    # An agent that looks after the lie only now may see that the worker does end.
    assert job.said("running <- worker_ending rank=0 signal=9\n") + job.said("running <- worker_exited rank=0 signal=9\n") == 1
    assert job.end(1).status == 0


def test_workers_have_no_further_descriptor(job):
    worker, = (line["pid"] for line in job.first if line["rank"] == 0)
    job.ask(0, "json.dump([os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') "
               "if os.path.lexists('/proc/self/fd/' + fd)], open('files', 'w'))")
    job.await_done()
    assert (job.scratch / "files").read_text().count("/memfd:") == 1
    assert exists(worker)
    assert job.end(0).status == 0


def test_two_workers_that_die_together_are_one_failure(job):
    kill(job.running.pid, signal.SIGSTOP)  # so that it sees both at once
    for worker in job.first:
        kill(worker["pid"], signal.SIGKILL)
    kill(job.running.pid, signal.SIGCONT)
    job.attempt(1)
    assert job.said("restarting the workers: restart 1 of 3") == 1 == job.said("failed (exitcode: -9)")
    assert job.end(1).status == 0


def test_without_ctypes_the_end_is_told_as_ever(muster, scratch):
    job = Job(muster, scratch, LOGLEVEL="DEBUG")
    first = job.attempt(0)
    job.wait_until_ready()
    kill(first[0]["pid"])
    job.attempt(1)
    assert job.said("worker_ending") == 0
    assert job.end(1).status == 0
